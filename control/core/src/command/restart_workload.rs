//! Starts a workload again where it is, under the next generation.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{Revision, WorkloadUid};
use crate::rejected::Rejected;
use crate::state::State;

/// Starts a workload again.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RestartWorkload {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Refuse if the workload changed since; none = whatever it is.
    #[prost(message, optional, tag = "2")]
    pub expect_revision: Option<Revision>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RestartWorkload) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    let workload =
        state.workload(&cmd.uid).ok_or_else(|| Rejected::UnknownWorkload { workload: cmd.uid.to_string() })?;
    super::check_revision(|| format!("workload {}", workload.name), cmd.expect_revision, workload.revision)?;
    if workload.deleting {
        return Err(Rejected::WorkloadDeleting { name: workload.name.clone() });
    }
    super::check_not_moving(state, workload)?;
    if workload.spec.suspended {
        return Err(Rejected::WorkloadSuspended { name: workload.name.clone() });
    }
    let Some(placement) = workload.placement.clone() else {
        return Err(Rejected::NotPlaced { workload: workload.name.clone() });
    };
    Ok(state.grant(cx, &cmd.uid, placement.node, placement.auto_placed))
}
