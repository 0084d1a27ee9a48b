//! What an agent reports, on its way into the log. Only news goes there: a report that says what the one before said, or
//! something else only about bytes under way, is not proposed.
//!
//! Invariant: that a workload is gone from a node counts for the generation under which the agent has proven it, never for
//! a newer one.

use std::time::Duration;

use cara_core::command::ReportStatus;
use cara_core::model::{MovePhase, Quarantine, QuarantinedVolume, RemovedGrant, TransferError, VolumeTransfer};
use cara_core::{Command, Epoch, Feature, Generation, NodeId, State, WorkloadUid, limits};
use cara_proto::agent::{HeldVolume, Report};
use cara_proto::workload::TransferStatus;
use tokio::sync::watch;

use crate::api::SharedApi;
use crate::error::ApiError;
use crate::wire;

/// Pause before a report that could not be recorded is proposed again.
const REPORT_RETRY: Duration = Duration::from_millis(500);

/// Records reports, the newest only, until the session ends.
pub async fn record(api: SharedApi, node: NodeId, epoch: u64, mut reports: watch::Receiver<Option<Report>>) {
    let mut recorded = None;
    while reports.changed().await.is_ok() {
        loop {
            let Some(report) = reports.borrow_and_update().clone() else { break };
            let now_ms = api.env.clock.wall_ms();
            let command = api.read_local(|state| command(state, &node, epoch, report, now_ms));
            if recorded.as_ref() == Some(&command) {
                break;
            }
            match api.propose(&format!("node:{node}"), "", Command::ReportStatus(command.clone())).await {
                Ok(_) => {
                    recorded = Some(command);
                    break;
                }
                Err(ApiError::Rejected(rejected)) => {
                    tracing::warn!(%node, epoch, %rejected, "a report was refused");
                    break;
                }
                // Also "not the leader": after a pause this server may say so once and go on leading, and then the session
                // lives on. If it was replaced, the session ends.
                Err(_) => api.env.clock.sleep(REPORT_RETRY).await,
            }
            if reports.has_changed().is_err() {
                return;
            }
        }
    }
}

fn command(state: &State, node: &NodeId, epoch: u64, report: Report, now_ms: u64) -> ReportStatus {
    let moves = state.supports(Feature::Moves);
    let statuses = report.statuses.into_iter().map(|mut status| {
        let said = status.transfer.take().unwrap_or_default();
        let uid = WorkloadUid::new(status.uid.as_str());
        let mut report = wire::status_report(status, transfers(state, node, &uid, &said));
        report.status.transfer_error = transfer_error(state, node, &uid, said);
        report
    });
    let grants = report
        .removed_generations
        .into_iter()
        .map(|(uid, generation)| RemovedGrant { uid: WorkloadUid::new(uid), generation: Generation(generation) });
    ReportStatus {
        node: node.clone(),
        epoch: Epoch(epoch),
        statuses: statuses.collect(),
        removed: report.removed.into_iter().map(WorkloadUid::new).collect(),
        removed_grants: if moves { grants.collect() } else { Vec::new() },
        quarantine: moves.then(|| quarantine(state, node, report.held, now_ms)),
    }
}

/// What the last finished round came to, for each volume of the workload. The agent counts over all of them: the first
/// one carries the bytes, each the digest. What was recorded of that round stays, so that bytes of a later one that runs
/// are no news; and it stays once the copying is over, when the target speaks of other things.
fn transfers(state: &State, node: &NodeId, uid: &WorkloadUid, said: &TransferStatus) -> Vec<VolumeTransfer> {
    let Some(workload) = state.workload(uid) else { return Vec::new() };
    let Some(mv) = state.running_move(uid).filter(|mv| mv.target == *node && !mv.is_committed()) else {
        return Vec::new();
    };
    let recorded = mv.target_status.as_ref().map(|status| status.transfers.as_slice()).unwrap_or_default();
    if matches!(mv.phase, MovePhase::Place | MovePhase::Verify) {
        return recorded.to_vec();
    }
    if said.round == 0 || mv.id.as_str() != said.move_id {
        return Vec::new();
    }
    let target_digest = said.digest.clone();
    let source_digest = if said.r#final { target_digest.clone() } else { String::new() };
    let of_this_round = |known: &VolumeTransfer| {
        known.round_done == said.round && known.target_digest == target_digest && known.source_digest == source_digest
    };
    if !recorded.is_empty() && recorded.iter().all(of_this_round) {
        return recorded.to_vec();
    }
    // The bytes are of a later round as soon as one is wanted.
    let finished = said.round == mv.round;
    let volume = |(at, name): (usize, &str)| VolumeTransfer {
        volume: name.to_owned(),
        round_done: said.round,
        bytes_total: if finished && at == 0 { said.bytes_total } else { 0 },
        bytes_sent: if finished && at == 0 { said.bytes_sent } else { 0 },
        source_digest: source_digest.clone(),
        target_digest: target_digest.clone(),
    };
    workload.spec.managed_volumes().enumerate().map(volume).collect()
}

/// Why the copying does not go on. That the source can't be dialled is none yet: the relay is tried first.
fn transfer_error(state: &State, node: &NodeId, uid: &WorkloadUid, said: TransferStatus) -> Option<TransferError> {
    let mv = state.running_move(uid).filter(|mv| mv.target == *node && mv.id.as_str() == said.move_id)?;
    let copies = matches!(mv.phase, MovePhase::Preflight | MovePhase::CopyVolumes);
    if !copies || said.error_code.is_empty() || said.unreachable {
        return None;
    }
    Some(TransferError { code: said.error_code, message: said.error, bytes_sent: said.bytes_sent })
}

/// The volumes in quarantine. Since when is this side's to say: it stays what it was when it was said first.
fn quarantine(state: &State, node: &NodeId, held: Vec<HeldVolume>, now_ms: u64) -> Quarantine {
    let known = state.node(node).map(|node| node.quarantine.as_slice()).unwrap_or_default();
    let volume = |held: HeldVolume| {
        let (workload, data_generation) = (WorkloadUid::new(held.uid), Generation(held.data_generation));
        let same = |known: &&QuarantinedVolume| {
            known.workload == workload && known.volume == held.volume && known.data_generation == data_generation
        };
        let known = known.iter().find(same);
        // An agent that was started again measures again; until then what was measured before holds.
        let bytes = if held.bytes > 0 { held.bytes } else { known.map_or(0, |known| known.bytes) };
        QuarantinedVolume {
            workload,
            volume: held.volume,
            data_generation,
            bytes,
            since_ms: known.map_or(now_ms, |known| known.since_ms),
            engine_name: held.engine_name,
            workload_name: held.workload,
            removal_asked_at_ms: None, // Not the agent's to say.
        }
    };
    let mut volumes: Vec<_> = held.into_iter().map(volume).collect();
    volumes
        .sort_by(|a, b| (&a.workload, &a.volume, a.data_generation).cmp(&(&b.workload, &b.volume, b.data_generation)));
    volumes.truncate(limits::QUARANTINE_MAX); // As apply would, and the entry stays small.
    Quarantine { volumes }
}
