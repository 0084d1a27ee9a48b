//! How moves and drains change the state: begin, go on, roll back, end; and what giving a node up takes back.
//!
//! Whether a move may go on is `crate::moves`' to say; here is only what follows.

use super::State;
use crate::entry::Context;
use crate::event::Event;
use crate::id::{DrainId, MoveId, NodeId, WorkloadUid};
use crate::limits;
use crate::model::{DrainStatus, Move, MovePhase, MoveSettings, MoveStatus, MoveStep, Placement, StepOutcome};
use crate::moves::{self, Next};
use crate::planted::planted;

/// What a new move begins with.
pub(crate) struct MoveStart {
    pub id: MoveId,
    pub uid: WorkloadUid,
    pub target: NodeId,
    pub auto_target: bool,
    pub drain: Option<DrainId>,
    pub settings: MoveSettings,
}

impl State {
    /// Begins a move of a placed workload: its target takes the next generation. The caller has checked everything.
    pub(crate) fn begin_move(&mut self, cx: &Context, start: MoveStart) -> Vec<Event> {
        let Some(workload) = self.workload(&start.uid) else { return Vec::new() };
        let Some(placement) = workload.placement.clone() else { return Vec::new() };
        let target_generation = workload.last_generation.next();
        let stateful = workload.is_stateful();
        let copies = stateful && workload.spec.managed_volumes().next().is_some();
        let mv = Move {
            id: start.id,
            workload: start.uid.clone(),
            kind: workload.kind,
            name: workload.name.clone(),
            stateful,
            source: placement.node,
            target: start.target,
            auto_target: start.auto_target,
            drain: start.drain,
            source_generation: placement.generation,
            target_generation,
            source_data_generation: workload.data_generation,
            settings: start.settings,
            attempt: 1,
            round: u32::from(copies),
            started_at_ms: cx.at_ms,
            ..Move::default()
        };
        let started = Event::MoveStarted { id: mv.id.clone(), uid: start.uid.clone(), name: mv.name.clone() };
        self.edit_workload(cx, &start.uid, |workload| workload.last_generation = target_generation);
        self.put_move(cx, mv);
        self.forget_old_moves();
        vec![started]
    }

    /// Takes the step that the verdict allows.
    pub(crate) fn advance_move(&mut self, cx: &Context, id: &MoveId, next: Next, detail: String) -> Vec<Event> {
        self.note_step(cx, id, StepOutcome::Ok, detail);
        match next {
            Next::Round => {
                self.edit_move(cx, id, |mv| {
                    mv.round += 1;
                    mv.attempt = 1;
                    mv.bytes_at_error = 0;
                });
                self.move_changed(id)
            }
            Next::Release => {
                self.edit_move(cx, id, |mv| mv.source_released = true);
                self.move_changed(id)
            }
            Next::Phase(phase) => self.enter(cx, id, phase),
            Next::RolledBack => self.end_rollback(cx, id),
        }
    }

    /// Tries the phase again. A copy that was finished and differs is another round, so that no late word of the old one
    /// counts; one that has failed on its way goes on in its round.
    pub(crate) fn retry_move(&mut self, cx: &Context, id: &MoveId, detail: String) -> Vec<Event> {
        self.note_step(cx, id, StepOutcome::Retry, detail);
        let again = self.get_move(id).is_some_and(|mv| moves::has_round(self, mv));
        self.edit_move(cx, id, |mv| {
            mv.attempt += 1;
            if mv.phase == MovePhase::CopyVolumes && again {
                mv.round += 1;
                mv.bytes_at_error = 0;
            }
        });
        self.move_changed(id)
    }

    /// Writes a step down; nothing else changes.
    pub(crate) fn note_step(&mut self, cx: &Context, id: &MoveId, outcome: StepOutcome, detail: String) {
        self.edit_move(cx, id, |mv| {
            let (phase, attempt) = (mv.phase, mv.attempt);
            mv.steps.push(MoveStep { phase, outcome, detail, at_ms: cx.at_ms, attempt });
            let excess = mv.steps.len().saturating_sub(limits::MOVE_STEPS_MAX);
            mv.steps.drain(..excess);
            mv.step_count = mv.step_count.saturating_add(1);
        });
    }

    pub(crate) fn move_changed(&self, id: &MoveId) -> Vec<Event> {
        let event = |mv: &Move| Event::MoveAdvanced {
            id: id.clone(),
            uid: mv.workload.clone(),
            name: mv.name.clone(),
            phase: mv.phase,
        };
        self.get_move(id).map(event).into_iter().collect()
    }

    fn enter(&mut self, cx: &Context, id: &MoveId, phase: MovePhase) -> Vec<Event> {
        let Some(mv) = self.get_move(id).cloned() else { return Vec::new() };
        let workload = self.workload(&mv.workload);
        let suspended = workload.is_some_and(|workload| workload.spec.suspended);
        let stopped_at_ms = workload.and_then(|w| w.status.as_ref()).map(|status| status.changed_at_ms);
        self.edit_move(cx, id, |mv| {
            mv.phase = phase;
            mv.attempt = 1;
            mv.bytes_at_error = 0;
            match phase {
                MovePhase::CopyVolumes => {
                    mv.stopped_at_ms = stopped_at_ms.filter(|_| !suspended);
                    mv.round += u32::from(mv.round > 0);
                }
                MovePhase::Place => mv.ordered_to_run = true,
                MovePhase::StopOld => mv.downtime_ms = mv.stopped_at_ms.map(|from| cx.at_ms.saturating_sub(from)),
                MovePhase::Preflight
                | MovePhase::StopSource
                | MovePhase::Verify
                | MovePhase::Finalize
                | MovePhase::Done
                | MovePhase::Rollback => {}
            }
        });
        let mut events = self.move_changed(id);
        match phase {
            MovePhase::StopOld => events.extend(self.commit_move(cx, &mv)),
            MovePhase::Done => {
                events.extend(self.restart_dependants(cx, &mv.workload));
                events.extend(self.end_move(cx, id, MoveStatus::Succeeded, String::new()));
            }
            MovePhase::Preflight
            | MovePhase::StopSource
            | MovePhase::CopyVolumes
            | MovePhase::Place
            | MovePhase::Verify
            | MovePhase::Finalize
            | MovePhase::Rollback => {}
        }
        events
    }

    /// The switch: the target has the workload, under the grant that it took when the move began, with the data that it
    /// staged.
    fn commit_move(&mut self, cx: &Context, mv: &Move) -> Vec<Event> {
        let (node, generation) = (mv.target.clone(), mv.target_generation);
        let mut events = Vec::new();
        self.edit_workload(cx, &mv.workload, |workload| {
            // A node that the user named follows, so that the move is not undone by the next look at the spec.
            workload.explicit_node = workload.explicit_node.take().map(|_| node.clone());
            let placement =
                Placement { node: node.clone(), generation, assigned_at_ms: cx.at_ms, auto_placed: mv.auto_target };
            workload.placement = Some(placement);
            workload.data_generation = generation;
            workload.status = mv.target_status.clone();
            let (uid, kind, name) = (workload.uid.clone(), workload.kind, workload.name.clone());
            events.push(Event::WorkloadPlaced { uid, kind, name, node, generation });
        });
        events
    }

    /// Ends the wait for the source's word about its old copy, after the switch.
    pub(crate) fn leave_old_copy(&mut self, cx: &Context, id: &MoveId, detail: String) -> Vec<Event> {
        self.note_step(cx, id, StepOutcome::Ok, detail);
        self.enter(cx, id, MovePhase::Finalize)
    }

    /// Whoever uses a database that has another node is granted anew where it is: it starts again and finds the new
    /// address. What is being moved itself waits for the end of its move.
    pub(crate) fn restart_dependants(&mut self, cx: &Context, uid: &WorkloadUid) -> Vec<Event> {
        let Some(database) = self.workload(uid) else { return Vec::new() };
        let dependants: Vec<WorkloadUid> = moves::dependants(self, database).map(|d| d.uid.clone()).collect();
        let mut events = Vec::new();
        for uid in dependants {
            match self.running_move(&uid).map(|mv| (mv.id.clone(), mv.name.clone())) {
                None => events.extend(self.grant_again(cx, &uid)),
                Some((id, name)) => {
                    self.edit_move(cx, &id, |mv| mv.database_placed_in = Some(mv.phase));
                    events.push(Event::MoveUpdated { id, uid, name });
                }
            }
        }
        events
    }

    /// A new grant where the workload is, so that it starts again; none when it has no node that could start it.
    fn grant_again(&mut self, cx: &Context, uid: &WorkloadUid) -> Vec<Event> {
        let placement = self.workload(uid).filter(|workload| !workload.deleting).and_then(|w| w.placement.clone());
        let Some(placement) = placement.filter(|p| self.node(&p.node).is_some_and(|node| !node.lost)) else {
            return Vec::new();
        };
        self.grant(cx, uid, placement.node, placement.auto_placed)
    }

    /// Takes a move back. What was never stopped goes on; what was stopped runs again under a new generation, at once if
    /// the target was never told to run, and otherwise when its copy is proven gone.
    pub(crate) fn roll_back(&mut self, cx: &Context, id: &MoveId, detail: String) -> Vec<Event> {
        self.note_step(cx, id, StepOutcome::Failed, detail.clone());
        let Some(mv) = self.get_move(id).cloned() else { return Vec::new() };
        self.edit_move(cx, id, |mv| {
            mv.phase = MovePhase::Rollback;
            mv.attempt = 1;
            mv.error = detail;
        });
        let mut events = self.move_changed(id);
        let lost = self.node(&mv.source).is_none_or(|node| node.lost);
        if lost && !mv.target_may_run() {
            events.extend(self.end_rollback(cx, id));
        } else if !mv.target_may_run() && mv.phase != MovePhase::Preflight {
            events.extend(self.restore_source(cx, &mv));
        }
        events
    }

    /// The end of a rollback: the target has nothing any more, or nobody waits for its word.
    pub(crate) fn end_rollback(&mut self, cx: &Context, id: &MoveId) -> Vec<Event> {
        let Some(mv) = self.get_move(id).cloned() else { return Vec::new() };
        if self.node(&mv.source).is_none_or(|node| node.lost) {
            let mut events = self.give_up(cx, &mv.workload, "its node was declared lost during a move");
            let error = format!("{}; the source was declared lost meanwhile", mv.error);
            events.extend(self.end_move(cx, id, MoveStatus::Failed, error));
            return events;
        }
        let mut events = if mv.target_may_run() { self.restore_source(cx, &mv) } else { Vec::new() };
        events.extend(self.end_move(cx, id, MoveStatus::RolledBack, mv.error));
        events
    }

    /// Lets the source of what has state run again, under a new generation: a late word about the old one is about a stop.
    fn restore_source(&mut self, cx: &Context, mv: &Move) -> Vec<Event> {
        let placement = self.workload(&mv.workload).and_then(|workload| workload.placement.clone());
        let Some(placement) = placement.filter(|_| mv.stateful) else { return Vec::new() };
        self.grant(cx, &mv.workload, placement.node, placement.auto_placed)
    }

    /// Ends a move; one that did not succeed ends its drain.
    pub(crate) fn end_move(&mut self, cx: &Context, id: &MoveId, status: MoveStatus, error: String) -> Vec<Event> {
        let mut events = Vec::new();
        let mut drain = None;
        let mut outdated = None;
        self.edit_move(cx, id, |mv| {
            outdated = mv.leaves_old_address(status).then(|| mv.workload.clone());
            mv.status = status;
            mv.error = error;
            mv.finished_at_ms = Some(cx.at_ms);
            let ends_drain = status != MoveStatus::Succeeded && !planted("drain-goes-on-after-failure");
            drain = mv.drain.clone().filter(|_| ends_drain);
            events.push(Event::MoveFinished {
                id: id.clone(),
                uid: mv.workload.clone(),
                name: mv.name.clone(),
                status,
                source: mv.source.clone(),
                target: mv.target.clone(),
            });
        });
        events.extend(outdated.into_iter().flat_map(|uid| self.grant_again(cx, &uid)));
        if let Some(drain) = drain {
            let why = self.get_move(id).map(|mv| format!("move {id} of {}: {}", mv.name, mv.error)).unwrap_or_default();
            events.extend(self.end_drain(cx, &drain, DrainStatus::Failed, why));
        }
        events
    }

    /// Ends a drain that runs; the node stays cordoned, the running move ends by itself.
    pub(crate) fn end_drain(&mut self, cx: &Context, id: &DrainId, status: DrainStatus, error: String) -> Vec<Event> {
        let Some(drain) = self.drain(id).filter(|drain| drain.is_running()) else { return Vec::new() };
        let (node, name) = (drain.node.clone(), drain.node_name.clone());
        self.edit_drain(cx, id, |drain| {
            drain.status = status;
            drain.error = error;
            drain.finished_at_ms = Some(cx.at_ms);
            drain.step_count = drain.step_count.saturating_add(1);
        });
        vec![Event::DrainFinished { id: id.clone(), node, name, status }]
    }

    /// Takes a placement back although its node has not proven the stop, on an operator's word. Data are begun anew; what
    /// is being deleted is gone.
    pub(crate) fn give_up(&mut self, cx: &Context, uid: &WorkloadUid, reason: &str) -> Vec<Event> {
        let Some(workload) = self.workload(uid) else { return Vec::new() };
        let Some(placement) = workload.placement.clone() else { return Vec::new() };
        let (kind, name, deleting) = (workload.kind, workload.name.clone(), workload.deleting);
        if deleting {
            self.remove_workload(uid);
            return vec![Event::WorkloadDeleted { uid: uid.clone(), kind, name }];
        }
        self.edit_workload(cx, uid, |workload| {
            workload.placement = None;
            workload.status = None;
            workload.fresh_data = workload.is_stateful();
        });
        let (node, reason) = (placement.node, reason.to_owned());
        vec![Event::WorkloadUnplaced { uid: uid.clone(), kind, name, node, reason }]
    }

    /// Drops the oldest moves that are over, beyond what is kept.
    fn forget_old_moves(&mut self) {
        while self.moves.len() > limits::MOVES_KEPT {
            let over = self.moves.values().filter(|mv| !mv.is_running());
            let oldest = over.min_by_key(|mv| (mv.finished_at_ms, &mv.id)).map(|mv| mv.id.clone());
            let Some(oldest) = oldest else { return };
            self.remove_move(&oldest);
        }
    }

    /// Drops the oldest drains that are over, beyond what is kept.
    pub(crate) fn forget_old_drains(&mut self) {
        while self.drains.len() > limits::DRAINS_KEPT {
            let over = self.drains.values().filter(|drain| !drain.is_running());
            let oldest = over.min_by_key(|drain| (drain.finished_at_ms, &drain.id)).map(|drain| drain.id.clone());
            let Some(oldest) = oldest else { return };
            self.remove_drain(&oldest);
        }
    }
}
