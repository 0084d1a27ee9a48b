//! Takes a move back on somebody's word, as long as the target does not have the workload.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::MoveId;
use crate::model::MovePhase;
use crate::rejected::Rejected;
use crate::state::State;

/// Takes a move back. One that is being rolled back already stays as it is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CancelMove {
    /// The move.
    #[prost(message, required, tag = "1")]
    pub id: MoveId,
    /// Why, for people; may be empty.
    #[prost(string, tag = "2")]
    pub reason: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: CancelMove) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    super::check_message("reason", &cmd.reason)?;
    let mv = state.get_move(&cmd.id).ok_or_else(|| Rejected::UnknownMove { id: cmd.id.to_string() })?;
    if !mv.is_running() {
        return Err(Rejected::MoveOver { id: cmd.id.to_string(), status: mv.status.to_string() });
    }
    if mv.is_committed() {
        return Err(Rejected::MoveCommitted { id: cmd.id.to_string(), phase: mv.phase.to_string() });
    }
    if mv.phase == MovePhase::Rollback {
        return Ok(Vec::new());
    }
    let detail = if cmd.reason.is_empty() { "cancelled".to_owned() } else { format!("cancelled: {}", cmd.reason) };
    Ok(state.roll_back(cx, &cmd.id, detail))
}
