//! Removes a node that nothing is placed on and nothing moves to or from: its identity, history and session.

use crate::event::Event;
use crate::id::NodeId;
use crate::rejected::Rejected;
use crate::state::State;

/// Removes an empty node. Check and deletion are one entry: nothing can be placed in between.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeleteNode {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
}

pub(crate) fn apply(state: &mut State, cmd: DeleteNode) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    if let Some(first) = state.placed_on(&cmd.node).next() {
        return Err(Rejected::NodeNotEmpty {
            node: name,
            workloads: state.placed_count(&cmd.node).to_string(),
            first: first.name.clone(),
        });
    }
    if let Some(mv) = state.moves_on(&cmd.node).next() {
        return Err(Rejected::NodeInMove { node: name, id: mv.id.to_string(), workload: mv.name.clone() });
    }
    if let Some(drain) = state.running_drain(&cmd.node) {
        return Err(Rejected::DrainRunning { node: name, id: drain.id.to_string() });
    }
    let session = node.session.as_ref().map(|session| session.epoch);
    let closed = session.map(|epoch| Event::NodeSessionClosed { node: cmd.node.clone(), name: name.clone(), epoch });
    state.remove_node(&cmd.node);
    Ok(closed.into_iter().chain([Event::NodeDeleted { node: cmd.node, name }]).collect())
}
