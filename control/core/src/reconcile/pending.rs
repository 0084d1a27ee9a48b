//! Nodes that were let in, or declared, and have never connected: somebody waits for them, and should hear that it is in
//! vain. Judged by the log's own times and the leader's wall clock, so that a new leader says the same.

use super::{Decision, Heard, Settings, wake};
use crate::state::State;

pub(super) fn decide(state: &State, heard: &Heard, settings: &Settings, now_ms: u64, decision: &mut Decision) {
    if heard.wall_ms == 0 {
        return;
    }
    for node in state.nodes() {
        let Some(since_ms) = node.waits_since_ms() else { continue };
        let due_ms = since_ms.saturating_add(settings.pending_stale_ms);
        if due_ms > heard.wall_ms {
            wake(decision, now_ms.saturating_add(due_ms - heard.wall_ms));
        } else {
            decision.never_connected.push(node.id.clone());
        }
    }
}
