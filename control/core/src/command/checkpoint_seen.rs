//! Writes down when nodes were last heard, a batch about every 30 s, so that "last seen" survives a change of leader.
//!
//! No event and no new revision of the node: nothing happened, and who edits the node meanwhile is not disturbed.

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

pub(crate) fn apply(state: &mut State, cmd: CheckpointSeen) -> Result<Vec<Event>, Rejected> {
    if cmd.seen.len() > limits::CHECKPOINT_NODES_MAX {
        let problem = format!("has {} nodes, at most {}", cmd.seen.len(), limits::CHECKPOINT_NODES_MAX);
        return Err(Problem::new("seen", problem).into());
    }
    for seen in cmd.seen {
        let session = state.node(&seen.node).and_then(|node| node.session.as_ref());
        if session.is_some_and(|session| session.epoch == seen.epoch) {
            state.raise_last_seen(&seen.node, seen.last_seen_ms);
        }
    }
    Ok(Vec::new())
}
