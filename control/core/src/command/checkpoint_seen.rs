//! Writes down when nodes were last heard, a batch about every 30 s, so that "last seen" survives a change of leader.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Epoch, NodeId};
use crate::limits;
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// A batch of last-seen times. Nodes that are gone or have another session are passed over; no time goes back.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CheckpointSeen {
    /// At most 1000.
    #[prost(message, repeated, tag = "1")]
    pub seen: Vec<Seen>,
}

/// When one node was last heard.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Seen {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// The session that was heard.
    #[prost(message, required, tag = "2")]
    pub epoch: Epoch,
    /// In ms since 1970, by the leader's clock.
    #[prost(uint64, tag = "3")]
    pub last_seen_ms: u64,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: CheckpointSeen) -> Result<Vec<Event>, Rejected> {
    if cmd.seen.len() > limits::CHECKPOINT_NODES_MAX {
        let problem = format!("has {} nodes, at most {}", cmd.seen.len(), limits::CHECKPOINT_NODES_MAX);
        return Err(Problem::new("seen", problem).into());
    }
    let mut events = Vec::new();
    for seen in cmd.seen {
        let Some(node) = state.node(&seen.node) else { continue };
        let current = node.session.as_ref().is_some_and(|session| session.epoch == seen.epoch);
        if current && seen.last_seen_ms > node.last_seen_ms {
            state.edit_node(cx, &seen.node, |node| node.last_seen_ms = seen.last_seen_ms);
            let name = state.node(&seen.node).map(|n| n.name.clone()).unwrap_or_default();
            events.push(Event::NodeUpdated { node: seen.node, name });
        }
    }
    Ok(events)
}
