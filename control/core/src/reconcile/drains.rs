//! Carries every running drain on: asks for its next step unless something must end first.

use super::Decision;
use crate::command::AdvanceDrain;
use crate::drains::{self, Next};
use crate::state::State;

pub(super) fn decide(state: &State, decision: &mut Decision) {
    for drain in state.running_drains() {
        match drains::next(state, drain) {
            Next::Wait(_) => {}
            Next::Start { .. } | Next::Block(_) | Next::Finish(..) => {
                decision.reasons.push(format!("drain {} of {} goes on", drain.id, drain.node_name));
                decision.commands.push(AdvanceDrain { id: drain.id.clone(), expect_step: drain.step_count }.into());
            }
        }
    }
}
