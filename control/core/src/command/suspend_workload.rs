//! Suspends a workload and resumes it: its containers stop, its volumes and its node stay. Each is a new grant, so that
//! a late word about the one before is not mistaken for a proof about this one.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{Revision, WorkloadUid};
use crate::rejected::Rejected;
use crate::state::State;

/// Stops a workload and keeps it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SuspendWorkload {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Refuse if the workload changed since; none = whatever it is.
    #[prost(message, optional, tag = "2")]
    pub expect_revision: Option<Revision>,
}

/// Lets a suspended workload run.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ResumeWorkload {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Refuse if the workload changed since; none = whatever it is.
    #[prost(message, optional, tag = "2")]
    pub expect_revision: Option<Revision>,
}

pub(crate) fn apply(
    state: &mut State,
    cx: &Context,
    uid: &WorkloadUid,
    expect_revision: Option<Revision>,
    suspended: bool,
) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    let workload = state.workload(uid).ok_or_else(|| Rejected::UnknownWorkload { workload: uid.to_string() })?;
    super::check_revision(|| format!("workload {}", workload.name), expect_revision, workload.revision)?;
    if workload.deleting {
        return Err(Rejected::WorkloadDeleting { name: workload.name.clone() });
    }
    super::check_not_moving(state, workload)?;
    if workload.spec.suspended == suspended {
        return Ok(Vec::new());
    }
    if let Some(placement) = workload.placement.as_ref().filter(|_| suspended) {
        state.check_agent(&placement.node, Feature::Moves)?;
    }
    let (kind, name, placement) = (workload.kind, workload.name.clone(), workload.placement.clone());
    state.edit_workload(cx, uid, |workload| {
        workload.spec.suspended = suspended;
        workload.updated_at_ms = cx.at_ms;
    });
    let mut events = vec![Event::WorkloadUpdated { uid: uid.clone(), kind, name }];
    if let Some(placement) = placement {
        events.extend(state.grant(cx, uid, placement.node, placement.auto_placed));
    }
    Ok(events)
}
