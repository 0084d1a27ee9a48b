//! A drain's next step: begins its next move, notes what is blocked, or ends it. Which of these is decided here, on one
//! revision.

use crate::drains::{self, Next};
use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{DrainId, MoveId};
use crate::limits;
use crate::model::{Drain, DrainStatus};
use crate::rejected::Rejected;
use crate::state::{MoveStart, State};

/// Takes a step of a drain, if nothing happened to it since the proposer looked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AdvanceDrain {
    /// The drain.
    #[prost(message, required, tag = "1")]
    pub id: DrainId,
    /// Its step count when the proposer looked.
    #[prost(uint32, tag = "2")]
    pub expect_step: u32,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: AdvanceDrain) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    let drain = state.drain(&cmd.id).ok_or_else(|| Rejected::UnknownDrain { id: cmd.id.to_string() })?;
    if !drain.is_running() {
        return Err(Rejected::DrainOver { id: cmd.id.to_string(), status: drain.status.to_string() });
    }
    if drain.step_count != cmd.expect_step {
        return Err(Rejected::StaleDrain {
            id: cmd.id.to_string(),
            given: cmd.expect_step.to_string(),
            current: drain.step_count.to_string(),
        });
    }
    let advanced = Event::DrainAdvanced { id: cmd.id.clone(), node: drain.node.clone(), name: drain.node_name.clone() };
    match drains::next(state, drain) {
        Next::Wait(reason) => Err(Rejected::DrainWaits { id: cmd.id.to_string(), reason }),
        Next::Block(blocked) => {
            state.edit_drain(cx, &cmd.id, |drain| {
                drain.step_count = drain.step_count.saturating_add(1);
                drain.plan.retain(|uid| *uid != blocked.workload);
                drain.blocked.push(blocked);
            });
            Ok(vec![advanced])
        }
        Next::Start { .. } if drain.moves.len() >= limits::DRAIN_MOVES_MAX => {
            let error = format!("it had {} moves: start another drain for the rest", limits::DRAIN_MOVES_MAX);
            Ok(state.end_drain(cx, &cmd.id, DrainStatus::Failed, error))
        }
        Next::Start { uid, target, auto_target } => {
            let (id, settings) = (move_id(state, drain), drain.settings.clone());
            state.edit_drain(cx, &cmd.id, |drain| {
                drain.step_count = drain.step_count.saturating_add(1);
                drain.moves.push(id.clone());
            });
            let mut events = vec![advanced];
            events.extend(
                state.begin_move(cx, MoveStart { id, uid, target, auto_target, drain: Some(cmd.id), settings }),
            );
            Ok(events)
        }
        Next::Finish(status, error) => Ok(state.end_drain(cx, &cmd.id, status, error)),
    }
}

/// The drain's id and the number of the move: apply has no chance to draw an id by.
fn move_id(state: &State, drain: &Drain) -> MoveId {
    let id = |number: usize| MoveId::new(format!("{}-{number}", drain.id));
    let mut number = drain.moves.len() + 1;
    while state.get_move(&id(number)).is_some() {
        number += 1;
    }
    id(number)
}
