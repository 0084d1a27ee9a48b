//! Places what has no node. Never moves what is placed. A workload that no node can take is not asked for again until
//! the reasons change, so that this is a fixed point.

use super::{Decision, Settings};
use crate::command::PlaceWorkload;
use crate::schedule::{self, Purpose};
use crate::state::{State, is_news};

pub(super) fn decide(state: &State, settings: &Settings, decision: &mut Decision) {
    let mut asked = 0;
    for workload in state.unplaced() {
        if asked == settings.commands_per_pass_max {
            decision.reasons.push(format!("more than {asked} workloads wait for a node: the rest in the next pass"));
            return;
        }
        let reason = match schedule::choose(state, workload, Purpose::Place) {
            Ok(_) => format!("workload {} has no node", workload.name),
            Err(none) if is_news(workload, &none) => {
                format!("workload {} has no node; why has changed", workload.name)
            }
            Err(_) => continue,
        };
        asked += 1;
        decision.reasons.push(reason);
        let (uid, expect_generation) = (workload.uid.clone(), workload.last_generation);
        decision.commands.push(PlaceWorkload { uid, expect_generation }.into());
    }
}
