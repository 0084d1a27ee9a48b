//! What one node should have: its whole desired set, for the agent's session.
//!
//! ```text
//! phase          source     target               phase      source     target
//! preflight      run    ⇄   receive              stop_old   retire     run
//! stop_source    stop       receive              finalize   -          run
//! copy_volumes   stop   ⇄   receive              rollback   stop, then run again   discard
//! place, verify  stop       run                  (⇄: with the transfer; stateless sources run on until they are released in stop_old)
//! ```
//! `Invariant:` of a stateful workload, at most one node is told to run.

use crate::feature::Feature;
use crate::id::{Generation, MoveId, NodeId, WorkloadUid};
use crate::model::{Move, MovePhase, Workload, WorkloadKind, WorkloadSpec};
use crate::state::State;
use crate::wire::wire_enum;
use std::collections::BTreeMap;

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
    /// Part of the names of its managed volumes; 0 = their names have no such part.
    pub data_generation: Generation,
    /// What to run.
    pub spec: WorkloadSpec,
    /// What to do with it.
    pub mode: Mode,
    /// The copy that this node is an end of.
    pub transfer: Option<Transfer>,
    /// True when all of it is to be removed, and its removal reported.
    pub remove: bool,
}

/// A copy of the managed volumes from one node to another; both ends have it in their desired sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The move that it belongs to.
    pub move_id: MoveId,
    /// Who has the volumes.
    pub source_node: NodeId,
    /// Where that node is reached; may be empty.
    pub source_address: String,
    /// Who gets them.
    pub target_node: NodeId,
    /// Of the volumes at the source.
    pub from_data_generation: Generation,
    /// Of the volumes that the target fills.
    pub to_data_generation: Generation,
    /// The round that is wanted, from 1. The target reports it as done.
    pub round: u32,
    /// True when the source is stopped: after this round both digests must be equal.
    pub is_final: bool,
}

wire_enum! {
    /// What a node is to do with a workload. In all modes but `run` nothing of it is ever started.
    Mode {
        /// Run it.
        1 => Run "run",
        /// Containers stopped, and proven so; volumes kept, readable for a transfer.
        2 => Stop "stop",
        /// No container; image and network got ready, volumes filled by the transfer.
        3 => Receive "receive",
        /// Everything of this generation removed and its removal reported; volumes that ran go into quarantine.
        4 => Discard "discard",
        /// The old copy after a move: removed and its removal reported; managed volumes go into quarantine.
        5 => Retire "retire",
    }
}

/// Everything that the node should have, by uid. What of ours runs there and is not in it has no grant and is removed.
pub fn desired_set(state: &State, node: &NodeId) -> Vec<Assignment> {
    let placed = state.placed_on(node).filter_map(|workload| placed(state, workload));
    let mut set: BTreeMap<WorkloadUid, Assignment> = placed.map(|a| (a.uid.clone(), a)).collect();
    for mv in state.moves_on(node) {
        let Some(visitor) = visitor(state, mv, node) else { continue };
        // Where the workload is placed is its live role; an old copy of it there has none of its own.
        set.entry(visitor.uid.clone()).or_insert(visitor);
    }
    let outdated = state.node(node).is_some_and(|node| !node.supports(Feature::Moves));
    set.into_values().filter(|assignment| !outdated || assignment.is_plain()).collect()
}

impl Assignment {
    /// True when an agent from before moves does the right thing about it. Of any other mode it would start containers,
    /// and what has a data generation it would start with empty volumes, under names without that part.
    fn is_plain(&self) -> bool {
        let dated = self.data_generation > Generation(0) && self.spec.managed_volumes().next().is_some();
        self.remove || (self.mode == Mode::Run && !dated)
    }
}

/// The role of the node that has the placement.
fn placed(state: &State, workload: &Workload) -> Option<Assignment> {
    let placement = workload.placement.as_ref()?;
    let mv = state.running_move(&workload.uid).filter(|mv| mv.source == placement.node);
    let held = mv.is_some_and(|mv| match mv.phase {
        MovePhase::StopSource | MovePhase::CopyVolumes | MovePhase::Place | MovePhase::Verify => mv.stateful,
        MovePhase::Rollback => mv.target_may_run(),
        MovePhase::Preflight | MovePhase::StopOld | MovePhase::Finalize | MovePhase::Done => false,
    });
    let mode = if held || workload.spec.suspended { Mode::Stop } else { Mode::Run };
    let transfer = mv.and_then(|mv| transfer(state, mv));
    Some(assignment(workload, placement.generation, workload.data_generation, mode, transfer))
}

/// The role of the end of a move that does not have the placement.
fn visitor(state: &State, mv: &Move, node: &NodeId) -> Option<Assignment> {
    let workload = state.workload(&mv.workload)?;
    let generation = mv.target_generation;
    let target = |mode| assignment(workload, generation, generation, mode, transfer(state, mv));
    let is_target = mv.target == *node;
    match mv.phase {
        MovePhase::Preflight | MovePhase::StopSource | MovePhase::CopyVolumes if is_target => {
            Some(target(Mode::Receive))
        }
        MovePhase::Place | MovePhase::Verify if is_target && workload.spec.suspended => Some(target(Mode::Stop)),
        MovePhase::Place | MovePhase::Verify if is_target => Some(target(Mode::Run)),
        MovePhase::Rollback if is_target => Some(target(Mode::Discard)),
        MovePhase::StopOld if !is_target => {
            let mode = if mv.old_copy_serves(workload) { Mode::Run } else { Mode::Retire };
            Some(assignment(workload, mv.source_generation, mv.source_data_generation, mode, None))
        }
        MovePhase::Preflight | MovePhase::StopSource | MovePhase::CopyVolumes | MovePhase::Place => None,
        MovePhase::Verify | MovePhase::Rollback | MovePhase::StopOld | MovePhase::Finalize | MovePhase::Done => None,
    }
}

fn assignment(
    workload: &Workload,
    generation: Generation,
    data_generation: Generation,
    mode: Mode,
    transfer: Option<Transfer>,
) -> Assignment {
    Assignment {
        uid: workload.uid.clone(),
        name: workload.name.clone(),
        kind: workload.kind,
        generation,
        data_generation,
        spec: workload.spec.clone(),
        mode,
        transfer,
        remove: workload.deleting,
    }
}

/// The copy that the move wants now.
fn transfer(state: &State, mv: &Move) -> Option<Transfer> {
    let is_final = mv.phase == MovePhase::CopyVolumes;
    if mv.round == 0 || !(is_final || mv.phase == MovePhase::Preflight) {
        return None;
    }
    Some(Transfer {
        move_id: mv.id.clone(),
        source_node: mv.source.clone(),
        source_address: state.node(&mv.source).map(|node| node.address.clone()).unwrap_or_default(),
        target_node: mv.target.clone(),
        from_data_generation: mv.source_data_generation,
        to_data_generation: mv.target_generation,
        round: mv.round,
        is_final,
    })
}
