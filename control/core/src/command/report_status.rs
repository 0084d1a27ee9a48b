//! What an agent says that runs on its node. Fenced by the session's epoch; what it says about a workload counts only
//! if that workload is placed there, or being moved there, under the generation it names.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{Epoch, NodeId, WorkloadUid};
use crate::limits;
use crate::model::{MovePhase, Quarantine, RemovedGrant, StatusReport, WorkloadStatus};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// A report. Says again what is known: changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReportStatus {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Its session.
    #[prost(message, required, tag = "2")]
    pub epoch: Epoch,
    /// At most 2048 together with `removed`.
    #[prost(message, repeated, tag = "3")]
    pub statuses: Vec<StatusReport>,
    /// Workloads that are being deleted and of which nothing is left on this node.
    #[prost(message, repeated, tag = "4")]
    pub removed: Vec<WorkloadUid>,
    /// Copies that were to be discarded or retired and of which nothing that could run is left on this node. Counts
    /// towards the 2048.
    #[prost(message, repeated, tag = "5")]
    pub removed_grants: Vec<RemovedGrant>,
    /// All that the node keeps in quarantine; none leaves what is known.
    #[prost(message, optional, tag = "6")]
    pub quarantine: Option<Quarantine>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: ReportStatus) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    super::check_session(node, cmd.epoch)?;
    let count = cmd.statuses.len() + cmd.removed.len() + cmd.removed_grants.len();
    if count > limits::STATUSES_PER_REPORT_MAX {
        let problem = format!("has {count} workloads, at most {}", limits::STATUSES_PER_REPORT_MAX);
        return Err(Problem::new("statuses", problem).into());
    }
    let moves = state.supports(Feature::Moves);
    let mut events = Vec::new();
    for mut report in cmd.statuses {
        if !moves {
            // Servers from before moves can't read these, and all must store the same.
            (report.status.ready, report.status.transfers, report.status.transfer_error) = (false, Vec::new(), None);
        }
        events.extend(take(state, cx, &cmd.node, report));
    }
    for uid in cmd.removed {
        let Some(workload) = state.workload(&uid) else { continue };
        let here = workload.placement.as_ref().is_some_and(|p| p.node == cmd.node);
        if here && workload.deleting {
            events.push(Event::WorkloadDeleted { uid: uid.clone(), kind: workload.kind, name: workload.name.clone() });
            state.remove_workload(&uid);
        }
    }
    if moves {
        for removed in cmd.removed_grants {
            events.extend(take_removed(state, cx, &cmd.node, &removed));
        }
        events.extend(cmd.quarantine.and_then(|quarantine| take_quarantine(state, cx, &cmd.node, quarantine)));
    }
    Ok(events)
}

fn take(state: &mut State, cx: &Context, node: &NodeId, report: StatusReport) -> Option<Event> {
    let workload = state.workload(&report.uid)?;
    let placement = workload.placement.as_ref()?;
    if placement.node != *node || placement.generation != report.status.observed_generation {
        return take_of_target(state, cx, node, report);
    }
    let status = news(cx, workload.status.as_ref(), report.status)?;
    let event =
        Event::WorkloadStatusChanged { uid: report.uid.clone(), kind: workload.kind, name: workload.name.clone() };
    state.edit_workload(cx, &report.uid, |workload| workload.status = Some(status));
    Some(event)
}

/// What the target of a move says about its grant. Anything else is about a grant that has passed.
fn take_of_target(state: &mut State, cx: &Context, node: &NodeId, report: StatusReport) -> Option<Event> {
    let mv = state.running_move(&report.uid)?;
    if mv.target != *node || mv.is_committed() || mv.target_generation != report.status.observed_generation {
        return None;
    }
    let status = news(cx, mv.target_status.as_ref(), report.status)?;
    let (id, name) = (mv.id.clone(), mv.name.clone());
    state.edit_move(cx, &id, |mv| {
        if let Some(error) = &status.transfer_error {
            // Attempts go on where the one before ended: one that got further begins the count anew.
            if error.bytes_sent > mv.bytes_at_error {
                mv.attempt = 1;
            }
            mv.bytes_at_error = error.bytes_sent;
        }
        mv.target_status = Some(status);
    });
    Some(Event::MoveUpdated { id, uid: report.uid, name })
}

/// The status as it is stored; `None` when it says nothing new.
fn news(cx: &Context, before: Option<&WorkloadStatus>, status: WorkloadStatus) -> Option<WorkloadStatus> {
    let same_phase = before.is_some_and(|before| before.phase == status.phase);
    let changed_at_ms = before.filter(|_| same_phase).map_or(cx.at_ms, |before| before.changed_at_ms);
    let mut status = WorkloadStatus { changed_at_ms, ..status };
    clip(&mut status);
    (before != Some(&status)).then_some(status)
}

/// Nothing is left of a copy. Counts only for the grant that was to go: a late word about an earlier one proves nothing.
fn take_removed(state: &mut State, cx: &Context, node: &NodeId, removed: &RemovedGrant) -> Option<Event> {
    let mv = state.running_move(&removed.uid)?;
    let of_target = mv.phase == MovePhase::Rollback
        && mv.target == *node
        && mv.target_generation == removed.generation
        && !mv.target_removed;
    let of_source = mv.phase == MovePhase::StopOld
        && mv.source == *node
        && mv.source_generation == removed.generation
        && !mv.source_removed;
    if !of_target && !of_source {
        return None;
    }
    let (id, name) = (mv.id.clone(), mv.name.clone());
    state.edit_move(cx, &id, |mv| {
        mv.target_removed |= of_target;
        mv.source_removed |= of_source;
    });
    Some(Event::MoveUpdated { id, uid: removed.uid.clone(), name })
}

fn take_quarantine(state: &mut State, cx: &Context, node: &NodeId, quarantine: Quarantine) -> Option<Event> {
    let mut volumes = quarantine.volumes;
    volumes.truncate(limits::QUARANTINE_MAX);
    let known = &state.node(node)?.quarantine;
    for volume in &mut volumes {
        for text in [&mut volume.volume, &mut volume.engine_name, &mut volume.workload_name] {
            super::clip(text, limits::TEXT_BYTES_MAX);
        }
        // That it is to go is the operator's word: a report neither brings it nor takes it back.
        let same = known.iter().find(|known| known.engine_name == volume.engine_name);
        volume.removal_asked_at_ms = same.and_then(|known| known.removal_asked_at_ms);
    }
    let name = state.node(node).filter(|node| node.quarantine != volumes)?.name.clone();
    state.edit_node(cx, node, |node| node.quarantine = volumes);
    Some(Event::NodeUpdated { node: node.clone(), name })
}

/// Cuts a report to the limits: a long error line must not keep a node from being heard.
fn clip(status: &mut WorkloadStatus) {
    super::clip(&mut status.reason, limits::MESSAGE_BYTES_MAX);
    super::clip(&mut status.message, limits::MESSAGE_BYTES_MAX);
    if let Some(error) = &mut status.transfer_error {
        super::clip(&mut error.code, limits::TEXT_BYTES_MAX);
        super::clip(&mut error.message, limits::TEXT_BYTES_MAX);
    }
    status.transfers.truncate(limits::VOLUMES_MAX);
    for transfer in &mut status.transfers {
        for text in [&mut transfer.volume, &mut transfer.source_digest, &mut transfer.target_digest] {
            super::clip(text, limits::TEXT_BYTES_MAX);
        }
    }
    status.containers.truncate(limits::CONTAINERS_PER_STATUS_MAX);
    for container in &mut status.containers {
        for text in [&mut container.service, &mut container.container_id, &mut container.image] {
            super::clip(text, limits::TEXT_BYTES_MAX);
        }
        container.ports.truncate(limits::PORTS_MAX);
        container.ports.iter_mut().for_each(|port| super::clip(port, limits::TEXT_BYTES_MAX));
    }
}
