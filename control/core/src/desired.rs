//! What one node should have: its whole desired set, for the agent's session.

use crate::id::{Generation, NodeId, WorkloadUid};
use crate::model::{WorkloadKind, WorkloadSpec};
use crate::state::State;

/// One workload that a node has been given.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The workload.
    pub uid: WorkloadUid,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its grant: containers of a lower generation are replaced, those of a higher one are not ours to touch.
    pub generation: Generation,
    /// What to run.
    pub spec: WorkloadSpec,
    /// True when all of it is to be removed, and its removal reported.
    pub remove: bool,
}

/// Everything that the node should have, by uid. What of ours runs there and is not in it has no grant and is removed.
pub fn desired_set(state: &State, node: &NodeId) -> Vec<Assignment> {
    let placed = state.placed_on(node).filter_map(|workload| {
        let placement = workload.placement.as_ref()?;
        Some(Assignment {
            uid: workload.uid.clone(),
            name: workload.name.clone(),
            kind: workload.kind,
            generation: placement.generation,
            spec: workload.spec.clone(),
            remove: workload.deleting,
        })
    });
    placed.collect()
}
