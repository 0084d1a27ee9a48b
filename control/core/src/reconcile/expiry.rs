//! Deletes what has outlived its `expireAt`. By the leader's wall clock: the date is the user's, minutes do not matter.

use super::{Decision, Heard, Settings, wake};
use crate::command::DeleteWorkload;
use crate::state::State;

pub(super) fn decide(state: &State, heard: &Heard, settings: &Settings, now_ms: u64, decision: &mut Decision) {
    // What is being moved is deleted when that is over.
    let due = state.by_expiry().filter(|(_, workload)| state.running_move(&workload.uid).is_none());
    for (asked, (end_ms, workload)) in due.enumerate() {
        if end_ms > heard.wall_ms {
            wake(decision, now_ms.saturating_add(end_ms - heard.wall_ms));
            return;
        }
        if asked == settings.commands_per_pass_max {
            decision.reasons.push(format!("more than {asked} workloads have expired: the rest in the next pass"));
            return;
        }
        decision.reasons.push(format!("workload {} has expired", workload.name));
        let (uid, expect_revision) = (workload.uid.clone(), Some(workload.revision));
        decision.commands.push(DeleteWorkload { uid, force: false, expect_revision }.into());
    }
}
