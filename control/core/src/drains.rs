//! What a drain does next: one answer, from the state alone, for the reconciler that asks and for the command that acts.
//!
//! The order is decided anew at each step, from what is on the node now: what was deleted or moved by hand meanwhile is
//! no longer in the way.

use crate::feature::Feature;
use crate::id::{NodeId, WorkloadUid};
use crate::limits;
use crate::model::{Blocked, Connection, Drain, DrainStatus, Rejection, Workload, WorkloadKind};
use crate::schedule::{self, NoNode, Purpose};
use crate::state::State;
use std::collections::BTreeSet;

/// What follows in a running drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Something must end first.
    Wait(String),
    /// This workload goes to this node.
    Start { uid: WorkloadUid, target: NodeId, auto_target: bool },
    /// No node can take this one.
    Block(Blocked),
    /// It is over.
    Finish(DrainStatus, String),
}

/// What is next.
pub(crate) fn next(state: &State, drain: &Drain) -> Next {
    if let Some(mv) = drain.moves.last().and_then(|id| state.get_move(id)).filter(|mv| mv.is_running()) {
        return Next::Wait(format!("move {} of {} runs", mv.id, mv.name));
    }
    let blocked: BTreeSet<&WorkloadUid> = drain.blocked.iter().map(|blocked| &blocked.workload).collect();
    let mut waits = None;
    for workload in in_order(state, &drain.node) {
        if workload.deleting {
            waits = Some(format!("{} is being deleted", workload.name));
        } else if let Some(mv) = state.running_move(&workload.uid) {
            waits = Some(format!("{} is being moved by {}", workload.name, mv.id));
        } else if !blocked.contains(&workload.uid) {
            return match target(state, drain, workload) {
                Ok((_, _)) if state.running_moves().count() >= limits::MOVES_RUNNING_MAX => {
                    Next::Wait("too many moves run".into())
                }
                Ok((target, auto_target)) => Next::Start { uid: workload.uid.clone(), target, auto_target },
                Err(blocked) => Next::Block(blocked),
            };
        }
    }
    if let Some(mv) = state.incoming(&drain.node).next() {
        waits = Some(format!("{} is being moved here by {}", mv.name, mv.id));
    }
    if let Some(waits) = waits {
        return Next::Wait(waits);
    }
    match state.placed_on(&drain.node).filter(|workload| blocked.contains(&workload.uid)).count() {
        0 => Next::Finish(DrainStatus::Succeeded, String::new()),
        left => Next::Finish(DrainStatus::Failed, format!("{left} workloads can't go anywhere: see what is blocked")),
    }
}

/// The order of the moves and what can't move, as it is at the start.
pub(crate) fn plan(state: &State, drain: &Drain) -> (Vec<WorkloadUid>, Vec<Blocked>) {
    let (mut order, mut blocked) = (Vec::new(), Vec::new());
    for workload in in_order(state, &drain.node).into_iter().filter(|workload| !workload.deleting) {
        match target(state, drain, workload) {
            Ok(_) => order.push(workload.uid.clone()),
            Err(stays) => blocked.push(stays),
        }
    }
    (order, blocked)
}

/// What is on the node: databases first, so that what uses them can follow; then by uid.
fn in_order<'a>(state: &'a State, node: &NodeId) -> Vec<&'a Workload> {
    let mut there: Vec<&Workload> = state.placed_on(node).collect();
    there.sort_by_key(|workload| (workload.kind != WorkloadKind::Database, &workload.uid));
    there
}

/// Where a workload goes, and whether that was chosen here.
fn target(state: &State, drain: &Drain, workload: &Workload) -> Result<(NodeId, bool), Blocked> {
    let blocked = |reason: &str, none: NoNode| Blocked {
        workload: workload.uid.clone(),
        kind: workload.kind,
        name: workload.name.clone(),
        reason: reason.to_owned(),
        rejections: if drain.blocked.len() < limits::BLOCKED_EXPLAINED_MAX { none.rejections } else { Vec::new() },
    };
    let online = state.node(&drain.node).is_some_and(|node| node.connection == Connection::Online);
    if workload.is_stateful() && !online {
        let none = NoNode { rejections: Vec::new(), count: 0 };
        return Err(blocked("it has state, and the node is offline and can't prove that it stopped", none));
    }
    if let Err(outdated) = state.check_agent(&drain.node, Feature::Moves) {
        let none = NoNode { rejections: Vec::new(), count: 0 };
        return Err(blocked(&outdated.to_string(), none));
    }
    let purpose = Purpose::Move { source: &drain.node };
    if let Some(wanted) = &drain.target {
        let reason = match state.node(wanted) {
            Some(node) => match schedule::unfit(state, node, workload, purpose) {
                None => return Ok((wanted.clone(), false)),
                Some(unfit) => unfit.to_string(),
            },
            None => "is gone".to_owned(),
        };
        let rejections = vec![Rejection { node: wanted.clone(), reason }];
        return Err(blocked("the target can't take it", NoNode { rejections, count: 1 }));
    }
    if let Some(node) = database_node(state, workload)
        && state.node(node).is_some_and(|node| schedule::unfit(state, node, workload, purpose).is_none())
    {
        return Ok((node.clone(), true));
    }
    match schedule::choose(state, workload, purpose) {
        Ok(node) => Ok((node, true)),
        Err(none) => Err(blocked("no node can take it", none)),
    }
}

/// The node of the first placed database that the workload uses.
fn database_node<'a>(state: &'a State, workload: &Workload) -> Option<&'a NodeId> {
    let database = |name: &String| state.workload_by_name(WorkloadKind::Database, name)?.placement.as_ref();
    workload.spec.dependencies.iter().find_map(database).map(|placement| &placement.node)
}
