//! A node's manifest: labels, annotations, cordon. A manifest may come before the machine; the machine that enrols
//! under its name finds its labels.

use super::enroll_node::new_node;
use crate::entry::Context;
use crate::event::Event;
use crate::id::{NodeId, Revision};
use crate::limits;
use crate::name;
use crate::rejected::Rejected;
use crate::state::State;
use std::collections::BTreeMap;

/// Creates or updates a node by name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ApplyNode {
    /// The id if the node turns out to be new.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// The manifest's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// All of them.
    #[prost(btree_map = "string, string", tag = "3")]
    pub labels: BTreeMap<String, String>,
    /// All of them.
    #[prost(btree_map = "string, string", tag = "4")]
    pub annotations: BTreeMap<String, String>,
    /// Cordon; none leaves it as it is (a new node takes placements).
    #[prost(bool, optional, tag = "5")]
    pub unschedulable: Option<bool>,
    /// Where the machine is reached; empty leaves it.
    #[prost(string, tag = "6")]
    pub address: String,
    /// Refuse if the node changed since; 0 = it must not exist; none = whatever it is.
    #[prost(message, optional, tag = "7")]
    pub expect_revision: Option<Revision>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: ApplyNode) -> Result<Vec<Event>, Rejected> {
    super::check_node_name(state, "metadata.name", &cmd.name)?;
    name::check_labels("metadata.labels", &cmd.labels)?;
    name::check_annotations("metadata.annotations", &cmd.annotations)?;
    super::check_text("spec.hostname", &cmd.address, 0)?;
    let known = state.node_by_name(&cmd.name);
    let revision = known.map_or(Revision(0), |n| n.revision);
    super::check_revision(|| format!("node {}", cmd.name), cmd.expect_revision, revision)?;
    let mut events = Vec::new();
    let id = match known {
        Some(node) => {
            let same = node.labels == cmd.labels && node.annotations == cmd.annotations && node.declared;
            if !same || !(cmd.address.is_empty() || cmd.address == node.address) {
                events.push(Event::NodeUpdated { node: node.id.clone(), name: cmd.name.clone() });
            }
            node.id.clone()
        }
        None => {
            super::check_id("node", cmd.node.as_str())?;
            if state.node(&cmd.node).is_some() {
                return Err(Rejected::NodeIdTaken { node: cmd.node.to_string() });
            }
            if state.nodes().len() >= limits::NODES_MAX {
                return Err(Rejected::TooMany { what: "nodes".into(), limit: limits::NODES_MAX.to_string() });
            }
            state.put_node(cx, new_node(cx, cmd.node.clone(), cmd.name.clone()));
            events.push(Event::NodeDeclared { node: cmd.node.clone(), name: cmd.name });
            cmd.node
        }
    };
    if !events.is_empty() {
        state.edit_node(cx, &id, |node| {
            node.declared = true;
            node.labels = cmd.labels;
            node.annotations = cmd.annotations;
            if !cmd.address.is_empty() {
                node.address = cmd.address;
            }
        });
    }
    let schedulable = state.node(&id).is_some_and(|n| n.schedulable);
    if let Some(unschedulable) = cmd.unschedulable
        && schedulable == unschedulable
    {
        events.extend(super::cordon::set(state, cx, &id, "manifest applied".into(), !unschedulable));
    }
    Ok(events)
}
