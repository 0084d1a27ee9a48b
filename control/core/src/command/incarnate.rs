//! Fences everything from before a restore: entries and agents of an older incarnation are refused from here on, and
//! every session is over.

use crate::entry::Context;
use crate::event::Event;
use crate::id::NodeId;
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Raises the incarnation; the entry itself still carries the old one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Incarnate {
    /// Higher than the current one.
    #[prost(uint64, tag = "1")]
    pub incarnation: u64,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: Incarnate) -> Result<Vec<Event>, Rejected> {
    let mut cluster = state.cluster().cloned().ok_or(Rejected::NotInitialised {})?;
    if cmd.incarnation <= cluster.incarnation {
        let problem = format!("must be higher than {}", cluster.incarnation);
        return Err(Problem::new("incarnation", problem).into());
    }
    cluster.incarnation = cmd.incarnation;
    state.set_cluster(cluster);
    let mut events = vec![Event::Incarnated { incarnation: cmd.incarnation }];
    let connected: Vec<NodeId> = state.nodes().filter(|n| n.session.is_some()).map(|n| n.id.clone()).collect();
    for node in connected {
        events.extend(state.end_session(cx, &node, "restored from a backup"));
    }
    Ok(events)
}
