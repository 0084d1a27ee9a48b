//! Finds a node for a workload that has none. The scheduler runs inside apply, on one revision: the node can't be
//! cordoned, lost or full in between.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Generation, WorkloadUid};
use crate::rejected::Rejected;
use crate::state::State;

/// Finds a node for a workload, if nothing was granted since the proposer looked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PlaceWorkload {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Its `last_generation` when the proposer looked.
    #[prost(message, required, tag = "2")]
    pub expect_generation: Generation,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: PlaceWorkload) -> Result<Vec<Event>, Rejected> {
    let workload =
        state.workload(&cmd.uid).ok_or_else(|| Rejected::UnknownWorkload { workload: cmd.uid.to_string() })?;
    super::check_generation(workload, cmd.expect_generation)?;
    if workload.deleting {
        return Err(Rejected::WorkloadDeleting { name: workload.name.clone() });
    }
    if let Some(placement) = &workload.placement {
        let node = state.node(&placement.node).map_or(placement.node.to_string(), |n| n.name.clone());
        return Err(Rejected::PlacementFixed { name: workload.name.clone(), node });
    }
    Ok(state.place(cx, &cmd.uid))
}
