//! Removes a workload. A placed one is marked; its node removes it and proves it, then it is gone. Never undone.
//! What is being moved is not removed: the move must be over, so that nobody is left with half of it.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Revision, WorkloadUid};
use crate::rejected::Rejected;
use crate::state::State;

/// Removes a workload.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeleteWorkload {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Forget it at once, without its node's proof. The node removes what it still has of it when it is next heard.
    #[prost(bool, tag = "2")]
    pub force: bool,
    /// Refuse if the workload changed since; none = whatever it is.
    #[prost(message, optional, tag = "3")]
    pub expect_revision: Option<Revision>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: DeleteWorkload) -> Result<Vec<Event>, Rejected> {
    let workload =
        state.workload(&cmd.uid).ok_or_else(|| Rejected::UnknownWorkload { workload: cmd.uid.to_string() })?;
    super::check_revision(|| format!("workload {}", workload.name), cmd.expect_revision, workload.revision)?;
    super::check_not_moving(state, workload)?;
    let (kind, name) = (workload.kind, workload.name.clone());
    if cmd.force || workload.placement.is_none() {
        state.remove_workload(&cmd.uid);
        return Ok(vec![Event::WorkloadDeleted { uid: cmd.uid, kind, name }]);
    }
    if workload.deleting {
        return Ok(Vec::new());
    }
    state.edit_workload(cx, &cmd.uid, |workload| {
        workload.deleting = true;
        workload.updated_at_ms = cx.at_ms;
    });
    Ok(vec![Event::WorkloadDeletionStarted { uid: cmd.uid, kind, name }])
}
