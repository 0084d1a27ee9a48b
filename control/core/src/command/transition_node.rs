//! A node's heartbeats stopped, or came back on the same session. Only edges come here; heartbeats never do.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Epoch, NodeId};
use crate::model::Connection;
use crate::planted::planted;
use crate::rejected::Rejected;
use crate::state::State;

/// Sets a node online or offline, if its session is still the one that the leader judged.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TransitionNode {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// The session that was judged.
    #[prost(message, required, tag = "2")]
    pub epoch: Epoch,
    /// Online or Offline.
    #[prost(message, required, tag = "3")]
    pub to: Connection,
    /// Why, for people.
    #[prost(string, tag = "4")]
    pub reason: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: TransitionNode) -> Result<Vec<Event>, Rejected> {
    super::check_message("reason", &cmd.reason)?;
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    if !planted("offline-edge-without-sequence") {
        super::check_session(node, cmd.epoch)?;
    }
    match (node.connection, cmd.to) {
        (from, to) if from == to => Ok(Vec::new()),
        (Connection::Online, Connection::Offline) | (Connection::Offline, Connection::Online) => {
            Ok(state.set_connection(cx, &cmd.node, cmd.to, &cmd.reason))
        }
        (from, to) => {
            Err(Rejected::BadTransition { node: node.name.clone(), from: from.to_string(), to: to.to_string() })
        }
    }
}
