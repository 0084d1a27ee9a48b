//! Ends a drain on somebody's word. The node stays cordoned; the move that runs ends by itself.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::DrainId;
use crate::model::DrainStatus;
use crate::rejected::Rejected;
use crate::state::State;

/// Ends a drain.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CancelDrain {
    /// The drain.
    #[prost(message, required, tag = "1")]
    pub id: DrainId,
    /// Why, for people; may be empty.
    #[prost(string, tag = "2")]
    pub reason: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: CancelDrain) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    super::check_message("reason", &cmd.reason)?;
    let drain = state.drain(&cmd.id).ok_or_else(|| Rejected::UnknownDrain { id: cmd.id.to_string() })?;
    if !drain.is_running() {
        return Err(Rejected::DrainOver { id: cmd.id.to_string(), status: drain.status.to_string() });
    }
    Ok(state.end_drain(cx, &cmd.id, DrainStatus::Cancelled, cmd.reason))
}
