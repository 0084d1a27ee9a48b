//! A move's next step. The proposer says which step it saw; whether the step may be taken is judged again here, on one
//! revision: nothing that protects data rests on what the proposer believed.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::MoveId;
use crate::model::{Move, MovePhase, StepOutcome};
use crate::moves::{self, Verdict};
use crate::rejected::Rejected;
use crate::state::State;

/// Takes a step of a move, if nothing happened to it since the proposer looked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AdvanceMove {
    /// The move.
    #[prost(message, required, tag = "1")]
    pub id: MoveId,
    /// Its phase when the proposer looked.
    #[prost(message, required, tag = "2")]
    pub expect_phase: MovePhase,
    /// Its attempt when the proposer looked.
    #[prost(uint32, tag = "3")]
    pub expect_attempt: u32,
    /// Its step count when the proposer looked.
    #[prost(uint32, tag = "4")]
    pub expect_step: u32,
    /// `ok`: on to the next phase or round. `retry`: another attempt. `waiting`: only written down. `failed`: back; after
    /// the switch, where there is no way back, on without the source's word.
    #[prost(message, required, tag = "5")]
    pub outcome: StepOutcome,
    /// For people; with `ok` the reason is the state's own.
    #[prost(string, tag = "6")]
    pub detail: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: AdvanceMove) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    super::check_message("detail", &cmd.detail)?;
    let mv = state.get_move(&cmd.id).ok_or_else(|| Rejected::UnknownMove { id: cmd.id.to_string() })?;
    if !mv.is_running() {
        return Err(Rejected::MoveOver { id: cmd.id.to_string(), status: mv.status.to_string() });
    }
    if (mv.phase, mv.attempt, mv.step_count) != (cmd.expect_phase, cmd.expect_attempt, cmd.expect_step) {
        let place = |phase, attempt, step| format!("{phase} (attempt {attempt}, step {step})");
        return Err(Rejected::StaleMove {
            id: cmd.id.to_string(),
            given: place(cmd.expect_phase, cmd.expect_attempt, cmd.expect_step),
            current: place(mv.phase, mv.attempt, mv.step_count),
        });
    }
    let not_ready = |mv: &Move, reason: String| Rejected::MoveNotReady {
        id: mv.id.to_string(),
        phase: mv.phase.to_string(),
        reason,
    };
    match (cmd.outcome, moves::judge(state, mv)) {
        (StepOutcome::Ok, Verdict::Ready(next, detail) | Verdict::Hold(next, detail, _)) => {
            Ok(state.advance_move(cx, &cmd.id, next, detail))
        }
        (StepOutcome::Ok, Verdict::Wait(reason) | Verdict::Fail(reason)) => Err(not_ready(mv, reason)),
        (StepOutcome::Retry | StepOutcome::Failed, Verdict::Ready(_, detail) | Verdict::Hold(_, detail, _))
        | (StepOutcome::Waiting, Verdict::Ready(_, detail) | Verdict::Hold(_, detail, _)) => {
            Err(not_ready(mv, format!("it can go on, {detail}")))
        }
        (StepOutcome::Retry, Verdict::Fail(detail)) if mv.attempt < mv.settings.attempts_max => {
            Ok(state.retry_move(cx, &cmd.id, detail))
        }
        (StepOutcome::Retry, Verdict::Fail(_)) => Err(not_ready(mv, "all attempts are used up".into())),
        (StepOutcome::Retry, Verdict::Wait(reason)) => Err(not_ready(mv, format!("nothing has failed, {reason}"))),
        (StepOutcome::Waiting, Verdict::Wait(_) | Verdict::Fail(_)) => {
            let waits = Event::MoveUpdated { id: cmd.id.clone(), uid: mv.workload.clone(), name: mv.name.clone() };
            state.note_step(cx, &cmd.id, StepOutcome::Waiting, cmd.detail);
            Ok(vec![waits])
        }
        (StepOutcome::Failed, Verdict::Wait(_) | Verdict::Fail(_)) if mv.can_roll_back() => {
            Ok(state.roll_back(cx, &cmd.id, cmd.detail))
        }
        (StepOutcome::Failed, Verdict::Wait(_)) if mv.phase == MovePhase::StopOld => {
            Ok(state.leave_old_copy(cx, &cmd.id, cmd.detail))
        }
        (StepOutcome::Failed, Verdict::Wait(reason) | Verdict::Fail(reason)) => Err(not_ready(mv, reason)),
    }
}
