//! How the search looks at the real state: what its leader asks for, and what tells it from another state.

use super::memo::hash_of;
use super::world::{MOVE, UID};
use cara_core::model::*;
use cara_core::reconcile::{Heard, Heartbeat, Settings, Watched, reconcile};
use cara_core::*;

/// What a leader would ask for, were its timers this old.
pub fn decide(state: &State, age_ms: u64) -> Vec<Command> {
    let mut heard = Heard { leader_since_ms: age_ms, ..Heard::default() };
    for node in state.nodes() {
        let Some(session) = &node.session else { continue };
        // Silence is the adversary's: a node that is online is heard, one that is offline is not.
        if node.connection == Connection::Online {
            heard.nodes.insert(node.id.clone(), Heartbeat { epoch: session.epoch, at_ms: age_ms });
        }
    }
    for mv in state.running_moves() {
        let watched = Watched { phase: mv.phase, phase_since_ms: 0, step: mv.step_count, step_since_ms: 0 };
        heard.moves.insert(mv.id.clone(), watched);
    }
    // Steps that are only written down change nothing that the search looks at.
    let waits = |command: &Command| match command {
        Command::AdvanceMove(advance) => advance.outcome == StepOutcome::Waiting,
        _ => false,
    };
    let decision = reconcile(state, &heard, &Settings::default(), age_ms);
    decision.commands.into_iter().filter(|command| !waits(command)).collect()
}

/// The two keys of a state: with and without what only rises.
pub fn keys(state: &State) -> (u64, u64) {
    let mv = state.get_move(&MOVE.into()).expect("one move, never forgotten");
    let workload = state.workload(&UID.into()).expect("one workload, never deleted");
    let placement = workload.placement.as_ref().map(|p| (p.node.as_str(), p.generation));
    let nodes: Vec<_> = state.nodes().map(|node| (node.connection, node.lost, node.session.is_some())).collect();
    let of_move = (mv.phase, mv.status, mv.attempt, mv.round, mv.ordered_to_run, mv.target_removed, mv.source_removed);
    let statuses = [&mv.target_status, &workload.status].map(|status| status.as_ref().map(status_key));
    let of_workload = (placement, workload.last_generation, workload.data_generation, workload.fresh_data);
    let key = hash_of(&(of_move, statuses, of_workload, nodes));
    let epochs: Vec<_> = state.nodes().map(|node| node.last_epoch).collect();
    (hash_of(&(key, mv.step_count, epochs)), key)
}

pub fn status_key(status: &WorkloadStatus) -> u64 {
    let digests = |t: &VolumeTransfer| hash_of(&(t.round_done, &t.source_digest, &t.target_digest));
    let transfers: Vec<u64> = status.transfers.iter().map(digests).collect();
    hash_of(&(status.observed_generation, status.phase, status.ready, status.containers.len(), transfers))
}
