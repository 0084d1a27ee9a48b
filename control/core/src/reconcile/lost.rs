//! Takes stateless workloads off nodes that are lost, once a grace period is over, so that they are placed elsewhere.
//!
//! The grace counts from when this leader first saw the node offline: it belongs to one incident, and starts anew under
//! another leader. A leader that suspects itself takes nothing off. Only what another node can take now is taken off.
//! What has state stays: a second running copy would damage it, and only the node itself or an operator can prove the
//! stop.

use super::{Decision, Heard, Settings, wake};
use crate::command::RevokePlacement;
use crate::model::Connection;
use crate::schedule::{self, Purpose};
use crate::state::State;

pub(super) fn decide(state: &State, heard: &Heard, settings: &Settings, now_ms: u64, decision: &mut Decision) {
    if decision.suspects_itself {
        return;
    }
    let mut asked = 0;
    for node in state.nodes().filter(|node| node.connection == Connection::Offline) {
        let Some(offline_ms) = heard.offline_since_ms.get(&node.id) else { continue };
        if state.placed_count(&node.id) == 0 {
            continue;
        }
        let lost_ms = offline_ms.saturating_add(settings.lost_grace_ms);
        if now_ms < lost_ms {
            wake(decision, lost_ms);
            continue;
        }
        for workload in state.placed_on(&node.id) {
            let held = workload.deleting || workload.is_stateful() || state.running_move(&workload.uid).is_some();
            if held || schedule::choose(state, workload, Purpose::Place).is_err() {
                continue;
            }
            if asked == settings.commands_per_pass_max {
                return;
            }
            asked += 1;
            decision.reasons.push(format!("workload {} is on the lost node {}", workload.name, node.name));
            decision.commands.push(
                RevokePlacement {
                    uid: workload.uid.clone(),
                    expect_generation: workload.last_generation,
                    reason: format!("node {} is lost", node.name),
                }
                .into(),
            );
        }
    }
}
