//! Granting placements: the one place where a generation rises.

use super::State;
use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{Generation, NodeId, WorkloadUid};
use crate::model::{Placement, Workload};
use crate::planted::planted;
use crate::schedule::{self, NoNode, Purpose};

impl State {
    /// Gives the workload to a node under the next generation. Empty when there is no such workload.
    pub(crate) fn grant(&mut self, cx: &Context, uid: &WorkloadUid, node: NodeId, auto_placed: bool) -> Vec<Event> {
        let mut events = Vec::new();
        // Servers and agents from before moves know no data generation: it begins when all who name the volumes know it.
        let dated = self.supports(Feature::Moves) && self.node(&node).is_none_or(|node| node.supports(Feature::Moves));
        self.edit_workload(cx, uid, |workload| {
            let first = workload.last_generation == Generation(0);
            let mut generation = workload.last_generation.next();
            if planted("new-spec-restarts-generation") {
                generation = Generation(1);
            }
            workload.last_generation = generation;
            if first || workload.fresh_data {
                workload.data_generation = if dated { generation } else { Generation(0) };
                workload.fresh_data = false;
            }
            workload.placement =
                Some(Placement { node: node.clone(), generation, assigned_at_ms: cx.at_ms, auto_placed });
            workload.rejections = Vec::new();
            workload.rejected_count = 0;
            workload.tried = false;
            let (kind, name) = (workload.kind, workload.name.clone());
            events.push(Event::WorkloadPlaced { uid: uid.clone(), kind, name, node, generation });
        });
        events
    }

    /// Finds a node for an unplaced workload and grants it, or writes down why there is none. Reports only what is new.
    pub(crate) fn place(&mut self, cx: &Context, uid: &WorkloadUid) -> Vec<Event> {
        let Some(workload) = self.workloads.get(uid) else { return Vec::new() };
        let auto_placed = workload.explicit_node.is_none();
        match schedule::choose(self, workload, Purpose::Place) {
            Ok(node) => self.grant(cx, uid, node, auto_placed),
            Err(none) if !is_news(workload, &none) => Vec::new(),
            Err(none) => {
                let (kind, name) = (workload.kind, workload.name.clone());
                self.edit_workload(cx, uid, |workload| {
                    workload.rejections = none.rejections;
                    workload.rejected_count = none.count;
                    workload.tried = true;
                });
                vec![Event::WorkloadUnplaceable { uid: uid.clone(), kind, name }]
            }
        }
    }
}

/// True when an attempt would write down something else than what stands there.
pub(crate) fn is_news(workload: &Workload, none: &NoNode) -> bool {
    !workload.tried || workload.rejected_count != none.count || workload.rejections != none.rejections
}
