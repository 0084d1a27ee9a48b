//! Cordon and uncordon: whether a node takes new placements. What runs there stays. Uncordon ends a drain.

use crate::entry::Context;
use crate::event::Event;
use crate::id::NodeId;
use crate::model::{DrainStatus, NodeEvent};
use crate::rejected::Rejected;
use crate::state::State;

/// The node takes no new placements.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Cordon {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Why, for people; may be empty.
    #[prost(string, tag = "2")]
    pub reason: String,
}

/// The node takes placements again.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Uncordon {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Why, for people; may be empty.
    #[prost(string, tag = "2")]
    pub reason: String,
}

pub(crate) fn apply(
    state: &mut State,
    cx: &Context,
    id: NodeId,
    reason: String,
    schedulable: bool,
) -> Result<Vec<Event>, Rejected> {
    super::check_message("reason", &reason)?;
    let node = state.node(&id).ok_or_else(|| Rejected::UnknownNode { node: id.to_string() })?;
    if node.schedulable == schedulable {
        return Ok(Vec::new());
    }
    Ok(set(state, cx, &id, reason, schedulable))
}

/// Sets the flag, writes it into the node's events, and says so. A node that takes placements again is not drained.
pub(super) fn set(state: &mut State, cx: &Context, id: &NodeId, reason: String, schedulable: bool) -> Vec<Event> {
    state.edit_node(cx, id, |node| node.schedulable = schedulable);
    let word = |schedulable: bool| if schedulable { "schedulable" } else { "cordoned" }.to_owned();
    let event = NodeEvent { at_ms: cx.at_ms, from: word(!schedulable), to: word(schedulable), reason };
    state.push_node_event(id, event);
    let name = state.node(id).map(|n| n.name.clone()).unwrap_or_default();
    if !schedulable {
        return vec![Event::NodeCordoned { node: id.clone(), name }];
    }
    let mut events = vec![Event::NodeUncordoned { node: id.clone(), name }];
    if let Some(drain) = state.running_drain(id).map(|drain| drain.id.clone()) {
        events.extend(state.end_drain(cx, &drain, DrainStatus::Cancelled, "the node was uncordoned".into()));
    }
    events
}
