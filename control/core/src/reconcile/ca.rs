//! Takes the next step of replacing the CA as soon as nobody would be shut out by it. Waits as long as it takes: who is
//! away for good is for an operator to say.

use super::Decision;
use crate::command::AdvanceCa;
use crate::state::State;

pub(super) fn decide(state: &State, decision: &mut Decision) {
    let Some(cluster) = state.cluster() else { return };
    let Some(rotation) = &cluster.rotation else { return };
    if !state.held_back().is_empty() {
        return;
    }
    let next = cluster.newest_ca();
    decision.reasons.push(format!("CA {next}: nobody holds the step {} back any more", rotation.phase));
    decision.commands.push(AdvanceCa { expect_epoch: cluster.trust_epoch, force: false }.into());
}
