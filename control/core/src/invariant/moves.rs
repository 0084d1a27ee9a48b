//! What is always true of moves, drains, data and resources.

use super::{Found, InvariantId};
use crate::desired::{Mode, desired_set};
use crate::id::NodeId;
use crate::limits;
use crate::model::{Connection, Move, MovePhase, MoveStatus, Node, Phase, Workload};
use crate::quarantine::removals;
use crate::state::State;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(state: &State, found: &mut Found) {
    let mut held = BTreeSet::new();
    for mv in state.moves() {
        let at = || format!("move {}", mv.id);
        let over = mv.is_running() == mv.finished_at_ms.is_none();
        let done = (mv.phase == MovePhase::Done) == (mv.status == MoveStatus::Succeeded);
        found.expect(over && done, InvariantId::MoveOver, at);
        found.expect(mv.steps.len() <= limits::MOVE_STEPS_MAX, InvariantId::Bounded, at);
        if !mv.is_running() {
            continue;
        }
        found.expect(held.insert(&mv.workload), InvariantId::RunningMoveOnce, at);
        let ends = mv.source != mv.target && [&mv.source, &mv.target].iter().all(|end| state.node(end).is_some());
        found.expect(ends, InvariantId::MoveEndsExist, at);
        let end = if mv.is_committed() { &mv.target } else { &mv.source };
        let holds = state.workload(&mv.workload).is_some_and(|workload| {
            !workload.deleting && workload.placement.as_ref().is_some_and(|placement| placement.node == *end)
        });
        found.expect(holds, InvariantId::MoveHoldsWorkload, at);
        found.expect(is_served(state, mv), InvariantId::ServedThroughout, at);
    }
    let mut drained = BTreeSet::new();
    for drain in state.drains() {
        let at = || format!("drain {}", drain.id);
        found.expect(drain.is_running() == drain.finished_at_ms.is_none(), InvariantId::MoveOver, at);
        let once = !drain.is_running() || drained.insert(&drain.node);
        found.expect(once, InvariantId::RunningDrainOnce, at);
        let failed = |mv: &Move| !mv.is_running() && mv.status != MoveStatus::Succeeded;
        let stops = !drain.is_running() || !drain.moves.iter().filter_map(|id| state.get_move(id)).any(failed);
        found.expect(stops, InvariantId::DrainStops, at);
        found.expect(drain.moves.len() <= limits::DRAIN_MOVES_MAX, InvariantId::Bounded, at);
    }
    for node in state.nodes() {
        found.expect(node.quarantine.len() <= limits::QUARANTINE_MAX, InvariantId::Bounded, || node.name.clone());
        let needed = |workload: &Workload| state.running_move(&workload.uid).is_some_and(|mv| mv.source == node.id);
        let silent = !node.lost
            || (node.session.is_none()
                && node.connection != Connection::Online
                && state.placed_on(&node.id).all(needed));
        found.expect(silent, InvariantId::LostIsSilent, || format!("node {}", node.name));
    }
    check_roles(state, found);
}

/// Is the source of a running move told to run what has no state, as long as it must?
fn is_served(state: &State, mv: &Move) -> bool {
    let Some(workload) = state.workload(&mv.workload) else { return true };
    let lost = state.node(&mv.source).is_none_or(|node| node.lost);
    if mv.stateful || workload.spec.suspended || lost || (mv.is_committed() && !mv.old_copy_serves(workload)) {
        return true;
    }
    desired_set(state, &mv.source).iter().any(|a| a.uid == mv.workload && a.mode == Mode::Run)
}

/// What the desired sets of all nodes together say.
fn check_roles(state: &State, found: &mut Found) {
    let (mut runners, mut needed) = (BTreeMap::new(), BTreeSet::new());
    for mv in state.running_moves() {
        needed.extend([mv.source_data_generation, mv.target_generation].map(|data| (mv.workload.clone(), data)));
    }
    for node in state.nodes() {
        let set = desired_set(state, &node.id);
        for assignment in set.iter().filter(|assignment| assignment.mode == Mode::Run) {
            *runners.entry(assignment.uid.clone()).or_insert(0) += 1;
        }
        needed.extend(set.into_iter().map(|assignment| (assignment.uid, assignment.data_generation)));
    }
    for node in state.nodes() {
        for volume in removals(state, &node.id) {
            let unneeded = !needed.contains(&(volume.workload.clone(), volume.data_generation));
            found.expect(unneeded, InvariantId::RemovedUnneeded, || format!("{} on {}", volume.engine_name, node.name));
        }
    }
    for (uid, count) in runners {
        let stateful = state.workload(&uid).is_some_and(Workload::is_stateful);
        found.expect(!stateful || count < 2, InvariantId::OneRunner, || format!("workload {uid}"));
    }
}

pub(super) fn check_later(before: &State, after: &State, found: &mut Found) {
    for old in before.moves() {
        let Some(new) = after.get_move(&old.id) else { continue };
        let at = || format!("move {}", old.id);
        let about = |mv: &Move| (mv.workload.clone(), mv.source.clone(), mv.target.clone(), mv.target_generation);
        let stands = about(old) == about(new) && (old.is_running() || old == new);
        found.expect(stands, InvariantId::MoveStands, at);
        found.expect(!old.is_committed() || new.is_committed(), InvariantId::CommitStands, at);
    }
    for old in before.drains() {
        let Some(new) = after.drain(&old.id) else { continue };
        let stands = (&old.node, &old.target) == (&new.node, &new.target) && (old.is_running() || old == new);
        found.expect(stands, InvariantId::MoveStands, || format!("drain {}", old.id));
    }
}

pub(super) fn check_step(before: &State, after: &State, found: &mut Found) {
    for old in before.moves().filter(|mv| mv.stateful) {
        let Some(new) = after.get_move(&old.id) else { continue };
        check_stateful(before, after, old, new, found);
    }
    for old in before.workloads() {
        let Some(new) = after.workload(&old.uid) else { continue };
        check_workload(before, after, old, new, found);
    }
    for node in after.nodes() {
        check_booked(before, after, node, found);
    }
}

fn check_stateful(before: &State, after: &State, old: &Move, new: &Move, found: &mut Found) {
    let at = || format!("move {}", old.id);
    if old.phase != MovePhase::CopyVolumes && new.phase == MovePhase::CopyVolumes {
        let status = before.workload(&old.workload).and_then(|workload| workload.status.as_ref());
        let stopped =
            status.is_some_and(|s| s.phase == Phase::Stopped && s.observed_generation == old.source_generation);
        found.expect(stopped, InvariantId::StopBeforeStart, at);
    }
    if new.ordered_to_run && !old.ordered_to_run {
        found.expect(old.phase == MovePhase::CopyVolumes, InvariantId::StopBeforeStart, at);
    }
    let runs = |state: &State, node: &NodeId| {
        desired_set(state, node).iter().any(|a| a.uid == old.workload && a.mode == Mode::Run)
    };
    if old.is_running() && old.ordered_to_run && !new.is_committed() && runs(after, &old.source) {
        let gone = new.target_removed || after.node(&old.target).is_none_or(|node| node.lost);
        found.expect(gone, InvariantId::GoneBeforeReturn, at);
    }
}

fn check_workload(before: &State, after: &State, old: &Workload, new: &Workload, found: &mut Found) {
    let at = || format!("workload {}", old.name);
    let mv = before.running_move(&old.uid);
    let node = |workload: &Workload| workload.placement.as_ref().map(|placement| placement.node.clone());
    // Only who had state before and after: a spec may gain and lose volumes.
    if let Some(from) = node(old).filter(|_| old.is_stateful() && new.is_stateful())
        && node(new).as_ref() != Some(&from)
    {
        let switched =
            mv.is_some_and(|mv| mv.ordered_to_run && mv.source == from && node(new).as_ref() == Some(&mv.target));
        let given_up = node(new).is_none() && after.node(&from).is_none_or(|node| node.lost);
        found.expect(switched || given_up, InvariantId::StopBeforeGrant, at);
    }
    if old.data_generation != new.data_generation {
        let switched = mv.is_some_and(|mv| mv.target_generation == new.data_generation);
        let first = old.last_generation.0 == 0;
        let stands = first || switched || (old.fresh_data && !new.fresh_data);
        found.expect(stands, InvariantId::DataGenerationStands, at);
    }
}

fn check_booked(before: &State, after: &State, node: &Node, found: &mut Found) {
    let amounts = after.booked(&node.id).amounts().into_iter().zip(before.booked(&node.id).amounts());
    for ((name, booked, written), (_, booked_before, _)) in amounts {
        let Some(allocatable) = node.facts.allocatable.get(name) else { continue };
        let fits = booked <= booked_before || booked <= u128::from(*allocatable);
        found.expect(fits, InvariantId::BookedFits, || format!("node {}: {} {name}", node.name, written(booked)));
    }
}
