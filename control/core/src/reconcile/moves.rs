//! Carries every running move on: compares what its phase wants with what the agents reported, and asks for the next
//! step, another attempt, or the way back.
//!
//! Timeouts count on the leader's monotonic clock from when this leader first saw the phase, so a new leader gives each
//! phase its full time; how long that is stands in the move.

use super::{Decision, Heard, Watched, wake};
use crate::command::AdvanceMove;
use crate::model::{Move, MovePhase, StepOutcome};
use crate::moves::{self, Verdict};
use crate::state::State;

pub(super) fn decide(state: &State, heard: &Heard, now_ms: u64, decision: &mut Decision) {
    for mv in state.running_moves() {
        let fresh = Watched { phase: mv.phase, phase_since_ms: now_ms, step: mv.step_count, step_since_ms: now_ms };
        let watched = heard.moves.get(&mv.id).copied().filter(|seen| seen.is_of(mv)).unwrap_or(fresh);
        let Some((outcome, detail)) = step(state, mv, watched, now_ms, decision) else { continue };
        decision.reasons.push(format!("move {} of {} at {}: {outcome}, {detail}", mv.id, mv.name, mv.phase));
        decision.commands.push(
            AdvanceMove {
                id: mv.id.clone(),
                expect_phase: mv.phase,
                expect_attempt: mv.attempt,
                expect_step: mv.step_count,
                outcome,
                detail,
            }
            .into(),
        );
    }
}

/// The step that is due; `None` when there is none yet.
fn step(
    state: &State,
    mv: &Move,
    watched: Watched,
    now_ms: u64,
    decision: &mut Decision,
) -> Option<(StepOutcome, String)> {
    let interval_at_ms = watched.step_since_ms.saturating_add(mv.settings.interval_ms);
    match moves::judge(state, mv) {
        Verdict::Ready(_, detail) => Some((StepOutcome::Ok, detail)),
        Verdict::Hold(_, detail, delay_ms) => {
            let end_ms = watched.phase_since_ms.saturating_add(delay_ms);
            if now_ms >= end_ms {
                return Some((StepOutcome::Ok, detail));
            }
            wake(decision, end_ms);
            None
        }
        Verdict::Fail(_) if now_ms < interval_at_ms => {
            wake(decision, interval_at_ms);
            None
        }
        Verdict::Fail(detail) if mv.attempt < mv.settings.attempts_max => Some((StepOutcome::Retry, detail)),
        Verdict::Fail(detail) => Some((StepOutcome::Failed, detail)),
        Verdict::Wait(detail) => {
            if let Some(patience_ms) = patience_ms(mv) {
                let end_ms = watched.phase_since_ms.saturating_add(patience_ms);
                if now_ms >= end_ms {
                    let over = format!("{detail}, for {} s", patience_ms / 1_000);
                    let left = mv.phase == MovePhase::StopOld;
                    let detail = if left { format!("{over}: {}", moves::LEFT_TO_SOURCE) } else { over };
                    return Some((StepOutcome::Failed, detail));
                }
                wake(decision, end_ms);
            }
            // Written down once, when it takes long enough for somebody to ask.
            let said = mv.steps.last().is_some_and(|last| {
                last.phase == mv.phase && last.outcome == StepOutcome::Waiting && last.detail == detail
            });
            if said {
                return None;
            }
            if now_ms < interval_at_ms {
                wake(decision, interval_at_ms);
                return None;
            }
            Some((StepOutcome::Waiting, detail))
        }
    }
}

/// How long the phase may wait; `None` = as long as it takes: copies make progress of their own and say when they fail,
/// and what ends a move, or is on its way back, has no other way.
fn patience_ms(mv: &Move) -> Option<u64> {
    match mv.phase {
        MovePhase::StopSource | MovePhase::Place | MovePhase::Verify | MovePhase::StopOld => {
            Some(mv.settings.verify_timeout_ms)
        }
        MovePhase::Preflight | MovePhase::CopyVolumes | MovePhase::Finalize | MovePhase::Done | MovePhase::Rollback => {
            None
        }
    }
}
