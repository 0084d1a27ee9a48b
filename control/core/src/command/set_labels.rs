//! Replaces a node's labels. Moves nothing: selectors are compared when something is placed.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{NodeId, Revision};
use crate::name;
use crate::rejected::Rejected;
use crate::state::State;
use std::collections::BTreeMap;

/// Replaces a node's labels.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SetLabels {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// All of them.
    #[prost(btree_map = "string, string", tag = "2")]
    pub labels: BTreeMap<String, String>,
    /// Refuse if the node changed since this revision; none = whatever it is.
    #[prost(message, optional, tag = "3")]
    pub expect_revision: Option<Revision>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: SetLabels) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    super::check_revision(|| format!("node {}", node.name), cmd.expect_revision, node.revision)?;
    name::check_labels("labels", &cmd.labels)?;
    if node.labels == cmd.labels {
        return Ok(Vec::new());
    }
    let event = Event::NodeUpdated { node: cmd.node.clone(), name: node.name.clone() };
    state.edit_node(cx, &cmd.node, |node| node.labels = cmd.labels);
    Ok(vec![event])
}
