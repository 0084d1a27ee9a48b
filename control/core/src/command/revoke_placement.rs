//! Takes the placement of a stateless workload back, so that it can be placed elsewhere. A workload with state keeps
//! its claim: two running copies would damage its data.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Generation, WorkloadUid};
use crate::rejected::Rejected;
use crate::state::State;

/// Takes a placement back, if it is still the one that the proposer saw.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RevokePlacement {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Its `last_generation` when the proposer looked.
    #[prost(message, required, tag = "2")]
    pub expect_generation: Generation,
    /// Why, for people.
    #[prost(string, tag = "3")]
    pub reason: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RevokePlacement) -> Result<Vec<Event>, Rejected> {
    super::check_message("reason", &cmd.reason)?;
    let workload =
        state.workload(&cmd.uid).ok_or_else(|| Rejected::UnknownWorkload { workload: cmd.uid.to_string() })?;
    super::check_generation(workload, cmd.expect_generation)?;
    let Some(placement) = &workload.placement else {
        return Err(Rejected::NotPlaced { workload: workload.name.clone() });
    };
    if workload.deleting {
        return Err(Rejected::WorkloadDeleting { name: workload.name.clone() });
    }
    super::check_not_moving(state, workload)?;
    if workload.is_stateful() {
        let node = state.node(&placement.node).map_or(placement.node.to_string(), |n| n.name.clone());
        return Err(Rejected::StatefulClaim { workload: workload.name.clone(), node });
    }
    let (kind, name, node) = (workload.kind, workload.name.clone(), placement.node.clone());
    state.edit_workload(cx, &cmd.uid, |workload| {
        workload.placement = None;
        workload.status = None;
    });
    Ok(vec![Event::WorkloadUnplaced { uid: cmd.uid, kind, name, node, reason: cmd.reason }])
}
