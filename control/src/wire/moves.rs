//! Moves as the API shows them.

use cara_core::model::{Move, MovePhase, MoveStatus, StepOutcome, VolumeTransfer, WorkloadKind};
use cara_core::{NodeId, State, waits_for};
use cara_proto::rest::{AppMoveStep, AppMoveView, MoveStepView, MoveTransfer, MoveView};

use super::rfc3339;
use crate::transfers::Seen;

/// The word for a kind in what spans several nodes.
pub fn kind_word(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::App => "app",
        WorkloadKind::Database => "database",
        WorkloadKind::Project => "project",
    }
}

/// The inverse of [`kind_word`].
pub fn kind_of_word(word: &str) -> Option<WorkloadKind> {
    [WorkloadKind::App, WorkloadKind::Database, WorkloadKind::Project].into_iter().find(|kind| kind_word(*kind) == word)
}

/// A node's name; its id once it is gone.
pub fn node_name(state: &State, id: &NodeId) -> String {
    state.node(id).map_or_else(|| id.to_string(), |node| node.name.clone())
}

/// The phases of a move that goes well, in order.
pub fn phases_of(stateful: bool) -> impl Iterator<Item = &'static str> {
    let all = [
        MovePhase::Preflight,
        MovePhase::StopSource,
        MovePhase::CopyVolumes,
        MovePhase::Place,
        MovePhase::Verify,
        MovePhase::StopOld,
        MovePhase::Finalize,
        MovePhase::Done,
    ];
    let only_stateful = |phase: &MovePhase| matches!(phase, MovePhase::StopSource | MovePhase::CopyVolumes);
    all.into_iter().filter(move |phase| stateful || !only_stateful(phase)).map(MovePhase::as_str)
}

/// A move. `seen` is what the leader has heard of its copying.
pub fn move_view(state: &State, mv: &Move, seen: Option<&Seen>) -> MoveView {
    MoveView {
        id: mv.id.to_string(),
        kind: kind_word(mv.kind).into(),
        name: mv.name.clone(),
        from: mv.source.to_string(),
        from_node: node_name(state, &mv.source),
        to: mv.target.to_string(),
        to_node: node_name(state, &mv.target),
        auto_target: mv.auto_target,
        drain_id: mv.drain.as_ref().map(ToString::to_string),
        stateful: mv.stateful,
        phase: mv.phase.as_str().into(),
        status: mv.status.as_str().into(),
        attempt: mv.attempt,
        round: mv.round,
        steps: mv
            .steps
            .iter()
            .map(|step| MoveStepView {
                phase: step.phase.as_str().into(),
                outcome: step.outcome.as_str().into(),
                detail: step.detail.clone(),
                at: rfc3339(step.at_ms),
                attempt: step.attempt,
            })
            .collect(),
        started_at: rfc3339(mv.started_at_ms),
        finished_at: mv.finished_at_ms.map(rfc3339),
        stopped_at: mv.stopped_at_ms.map(rfc3339),
        downtime_ms: mv.downtime_ms,
        error: Some(mv.error.clone()).filter(|error| !error.is_empty()),
        cancellable: mv.can_roll_back(),
        transfer: transfer(mv, seen),
        waiting_for: waiting_for(state, mv, seen),
    }
}

/// What the target said last; what the log has of the last finished round, when the leader has heard nothing.
fn transfer(mv: &Move, seen: Option<&Seen>) -> Option<MoveTransfer> {
    if mv.round == 0 {
        return None;
    }
    if let Some(Seen { last, .. }) = seen {
        // The bytes are of the finished round, or of a later one that runs.
        let running = mv.is_running() && last.round < mv.round;
        return Some(MoveTransfer {
            bytes_total: last.bytes_total,
            bytes_done: last.bytes_done,
            bytes_sent: last.bytes_sent,
            rate_bytes_per_second: last.rate_bytes_per_second,
            round: if running { last.round.saturating_add(1) } else { last.round },
            error: Some(last.error.clone()).filter(|error| !error.is_empty()),
        });
    }
    let recorded = mv.target_status.as_ref().map(|status| status.transfers.as_slice()).unwrap_or_default();
    let sum = |of: fn(&VolumeTransfer) -> u64| recorded.iter().fold(0u64, |sum, volume| sum.saturating_add(of(volume)));
    Some(MoveTransfer {
        bytes_total: sum(|volume| volume.bytes_total),
        bytes_done: sum(|volume| volume.bytes_total),
        bytes_sent: sum(|volume| volume.bytes_sent),
        rate_bytes_per_second: 0,
        round: recorded.iter().map(|volume| volume.round_done).min().unwrap_or(0),
        error: None,
    })
}

fn waiting_for(state: &State, mv: &Move, seen: Option<&Seen>) -> Option<String> {
    let mut text = waits_for(state, mv)?;
    let copies = matches!(mv.phase, MovePhase::Preflight | MovePhase::CopyVolumes);
    if let Some(error) = seen.map(|seen| &seen.last.error).filter(|error| copies && !error.is_empty()) {
        text.push_str(&format!(" ({error})"));
    }
    let next = if mv.can_roll_back() {
        format!("it goes on by itself; to take it back: caractrl nodes cancel-move {}", mv.id)
    } else if mv.phase == MovePhase::Rollback && mv.target_may_run() {
        let target = node_name(state, &mv.target);
        format!("it goes on by itself once {target} has answered; if it never will: caractrl nodes lost {target}")
    } else {
        "it goes on by itself".to_owned()
    };
    Some(format!("{text}; {next}"))
}

/// An app's move in the older shape.
pub fn app_move_view(state: &State, mv: &Move) -> AppMoveView {
    let status = match mv.status {
        MoveStatus::Running => "running",
        MoveStatus::Succeeded => "succeeded",
        MoveStatus::Failed | MoveStatus::RolledBack => "failed",
    };
    AppMoveView {
        id: mv.id.to_string(),
        service_name: mv.name.clone(),
        from: mv.source.to_string(),
        to: mv.target.to_string(),
        status: status.into(),
        error: Some(mv.error.clone()).filter(|error| !error.is_empty()),
        steps: older_steps(mv, volumes(state, mv)),
    }
}

fn volumes(state: &State, mv: &Move) -> Vec<String> {
    let workload = state.workload(&mv.workload);
    workload.map(|workload| workload.spec.managed_volumes().map(str::to_owned).collect()).unwrap_or_default()
}

/// Each older step is over with the last phase of its own.
fn older_steps(mv: &Move, volumes: Vec<String>) -> Vec<AppMoveStep> {
    let mut wanted = Vec::new();
    if mv.stateful {
        wanted.push(("stop_app".to_owned(), MovePhase::StopSource));
        wanted.extend(volumes.into_iter().map(|name| (format!("move_volume:{name}"), MovePhase::CopyVolumes)));
        wanted.push(("update_placement".to_owned(), MovePhase::Place));
        wanted.push(("resume_app".to_owned(), MovePhase::Verify));
    } else {
        wanted.push(("update_placement".to_owned(), MovePhase::Verify));
    }
    let ended_ms = |phase: MovePhase| {
        let done = mv.steps.iter().rev().find(|step| step.phase == phase && step.outcome == StepOutcome::Ok);
        done.map(|step| step.at_ms)
    };
    let (mut open, mut begun_ms) = (true, mv.started_at_ms);
    let steps = wanted.into_iter().map(|(name, phase)| {
        let ended = ended_ms(phase);
        // The first step that has not ended is where the move stands, or where it failed.
        let status = match (ended, open, mv.status) {
            (Some(_), _, _) => "succeeded",
            (None, true, MoveStatus::Running) => "running",
            (None, true, MoveStatus::Failed | MoveStatus::RolledBack) => "failed",
            (None, true, MoveStatus::Succeeded) => "succeeded", // Its step is forgotten.
            (None, false, _) => "pending",
        };
        let step = AppMoveStep {
            name,
            status: status.into(),
            error: Some(mv.error.clone()).filter(|_| status == "failed"),
            started_at: (status != "pending").then(|| rfc3339(begun_ms)),
            finished_at: match (ended, status) {
                (Some(at_ms), _) => Some(rfc3339(at_ms)),
                (None, "failed") => mv.finished_at_ms.map(rfc3339),
                (None, _) => None,
            },
        };
        open &= status == "succeeded";
        begun_ms = ended.unwrap_or(begun_ms);
        step
    });
    steps.collect()
}
