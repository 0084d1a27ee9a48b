//! Granting placements: the one place where a generation rises.

use super::State;
use crate::entry::Context;
use crate::event::Event;
use crate::id::{NodeId, WorkloadUid};
use crate::limits;
use crate::model::{Placement, Workload};
use crate::schedule;

impl State {
    /// Gives the workload to a node under the next generation. A status of an older generation goes with its grant.
    pub(crate) fn grant(&mut self, cx: &Context, uid: &WorkloadUid, node: NodeId, auto_placed: bool) -> Event {
        let mut event = Event::WorkloadDeleted { uid: uid.clone(), kind: Default::default(), name: String::new() };
        self.edit_workload(cx, uid, |workload| {
            let generation = workload.last_generation.next();
            workload.last_generation = generation;
            workload.placement =
                Some(Placement { node: node.clone(), generation, assigned_at_ms: cx.at_ms, auto_placed });
            workload.rejections = Vec::new();
            workload.rejected_count = 0;
            workload.tried = false;
            let (kind, name) = (workload.kind, workload.name.clone());
            event = Event::WorkloadPlaced { uid: uid.clone(), kind, name, node, generation };
        });
        event
    }

    /// Finds a node for an unplaced workload and grants it, or writes down why there is none. Reports only what is new.
    pub(crate) fn place(&mut self, cx: &Context, uid: &WorkloadUid) -> Vec<Event> {
        let Some(workload) = self.workloads.get(uid) else { return Vec::new() };
        let auto_placed = workload.explicit_node.is_none();
        match schedule::choose(self, workload) {
            Ok(node) => vec![self.grant(cx, uid, node, auto_placed)],
            Err(rejections) if !is_news(workload, &rejections) => Vec::new(),
            Err(mut rejections) => {
                let event =
                    Event::WorkloadUnplaceable { uid: uid.clone(), kind: workload.kind, name: workload.name.clone() };
                let count = rejections.len() as u32;
                rejections.truncate(limits::REJECTIONS_KEPT);
                self.edit_workload(cx, uid, |workload| {
                    workload.rejections = rejections;
                    workload.rejected_count = count;
                    workload.tried = true;
                });
                vec![event]
            }
        }
    }
}

/// True when an attempt would write down something else than what stands there.
pub(crate) fn is_news(workload: &Workload, rejections: &[crate::model::Rejection]) -> bool {
    let kept = &rejections[..rejections.len().min(limits::REJECTIONS_KEPT)];
    !workload.tried || workload.rejected_count as usize != rejections.len() || workload.rejections != kept
}
