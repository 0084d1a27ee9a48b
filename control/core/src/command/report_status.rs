//! What an agent says that runs on its node. Fenced by the session's epoch; what it says about a workload counts only
//! if that workload is placed there under the generation it names.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Epoch, NodeId, WorkloadUid};
use crate::limits;
use crate::model::{StatusReport, WorkloadStatus};
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
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: ReportStatus) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    super::check_session(node, cmd.epoch)?;
    let count = cmd.statuses.len() + cmd.removed.len();
    if count > limits::STATUSES_PER_REPORT_MAX {
        let problem = format!("has {count} workloads, at most {}", limits::STATUSES_PER_REPORT_MAX);
        return Err(Problem::new("statuses", problem).into());
    }
    let mut events = Vec::new();
    for report in cmd.statuses {
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
    Ok(events)
}

fn take(state: &mut State, cx: &Context, node: &NodeId, report: StatusReport) -> Option<Event> {
    let workload = state.workload(&report.uid)?;
    let placement = workload.placement.as_ref()?;
    if placement.node != *node || placement.generation != report.status.observed_generation {
        return None; // About a grant that has passed.
    }
    let before = workload.status.as_ref();
    let same_phase = before.is_some_and(|status| status.phase == report.status.phase);
    let changed_at_ms = before.filter(|_| same_phase).map_or(cx.at_ms, |status| status.changed_at_ms);
    let mut status = WorkloadStatus { changed_at_ms, ..report.status };
    clip(&mut status);
    if before == Some(&status) {
        return None;
    }
    let event =
        Event::WorkloadStatusChanged { uid: report.uid.clone(), kind: workload.kind, name: workload.name.clone() };
    state.edit_workload(cx, &report.uid, |workload| workload.status = Some(status));
    Some(event)
}

/// Cuts a report to the limits: a long error line must not keep a node from being heard.
fn clip(status: &mut WorkloadStatus) {
    super::clip(&mut status.reason, limits::MESSAGE_BYTES_MAX);
    super::clip(&mut status.message, limits::MESSAGE_BYTES_MAX);
    status.containers.truncate(limits::CONTAINERS_PER_STATUS_MAX);
    for container in &mut status.containers {
        for text in [&mut container.service, &mut container.container_id, &mut container.image] {
            super::clip(text, limits::TEXT_BYTES_MAX);
        }
        container.ports.truncate(limits::PORTS_MAX);
        container.ports.iter_mut().for_each(|port| super::clip(port, limits::TEXT_BYTES_MAX));
    }
}
