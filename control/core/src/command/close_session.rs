//! A node's agent said goodbye. Closing an old session can't touch a newer one.
//!
//! A stream that only broke is not closed here: the fault may be the leader's own, so it is left to the heartbeat
//! timeout and its brake.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Epoch, NodeId};
use crate::rejected::Rejected;
use crate::state::State;

/// Closes a session. One that is over already changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CloseSession {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// The session.
    #[prost(message, required, tag = "2")]
    pub epoch: Epoch,
    /// Why, for people.
    #[prost(string, tag = "3")]
    pub reason: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: CloseSession) -> Result<Vec<Event>, Rejected> {
    super::check_message("reason", &cmd.reason)?;
    let session = state.node(&cmd.node).and_then(|node| node.session.as_ref());
    if session.is_none_or(|session| session.epoch != cmd.epoch) {
        return Ok(Vec::new());
    }
    Ok(state.end_session(cx, &cmd.node, &cmd.reason))
}
