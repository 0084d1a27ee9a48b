//! A second machine with a copy of a node's identity was refused: kept, so that people see it and the next leader knows it.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::NodeId;
use crate::limits;
use crate::model::{CloneSeen, NodeEvent};
use crate::rejected::Rejected;
use crate::state::State;

/// Notes a process that was proven to be a second one. Noted a moment ago already, it changes nothing: it asks every minute.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NoteClone {
    /// The node whose identity it has.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// The process that was refused.
    #[prost(string, tag = "2")]
    pub instance: String,
    /// The process that has the session, when the leader judged.
    #[prost(string, tag = "3")]
    pub expect_instance: String,
    /// What its machine calls itself.
    #[prost(string, tag = "4")]
    pub hostname: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: NoteClone) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    super::check_text("instance", &cmd.instance, 1)?;
    if node.instance != cmd.expect_instance || node.instance == cmd.instance {
        return Err(Rejected::InstanceChanged { node: name });
    }
    let known = node.clone_seen.as_ref().filter(|seen| seen.instance == cmd.instance);
    if known.is_some_and(|seen| cx.at_ms.saturating_sub(seen.seen_at_ms) < limits::CLONE_NOTED_EVERY_MS) {
        return Ok(Vec::new());
    }
    let mut hostname = cmd.hostname;
    super::clip(&mut hostname, limits::TEXT_BYTES_MAX);
    let word = node.connection.to_string();
    let reason = format!("a second machine ({hostname}) with a copy of this node's identity was refused");
    state.push_node_event(&cmd.node, NodeEvent { at_ms: cx.at_ms, from: word.clone(), to: word, reason });
    let seen = CloneSeen { instance: cmd.instance, seen_at_ms: cx.at_ms, hostname: hostname.clone() };
    state.edit_node(cx, &cmd.node, |node| node.clone_seen = Some(seen));
    Ok(vec![Event::NodeCloneRefused { node: cmd.node, name, hostname }])
}
