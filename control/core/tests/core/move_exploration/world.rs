//! The whole: the real state and the real reconciler, two agents, and an adversary with a few faults to spend.

use super::action::Action;
use super::agent::{Agent, Mutant, Order};
use super::look::{decide, keys, status_key};
use super::memo::{Known, Memo, hash_of};
use crate::world;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;
use std::rc::Rc;

pub const UID: &str = "w1";
pub const MOVE: &str = "m1";
/// Time stands still: what passes is decided by the adversary.
const AT_MS: u64 = 1_000_000;
/// Writes of each side, so that the search ends.
const SOURCE_WRITES_MAX: u8 = 1;
const TARGET_WRITES_MAX: u8 = 1;

#[derive(Clone)]
pub struct Model {
    pub known: Known,
    memo: Rc<Memo>,
    pub agents: [Agent; 2],
    /// A report on its way, with the session that it was sent on.
    delayed: [Option<ReportStatus>; 2],
    /// A command of a leader that was replaced before it was committed.
    held: Option<Command>,
    pub faults_left: u8,
    cancelled: bool,
    /// The writes that were acknowledged to the source's users.
    pub written: u8,
    /// The writes to the target since the switch.
    pub written_after: u8,
    /// On an operator's word: what ran there does not count until it was told, and acted.
    pub excuse: [Excuse; 2],
    /// On an operator's word: nobody may expect the data.
    pub data_lost: bool,
    pub stateful: bool,
    pub mutant: Mutant,
}

/// Whether what runs on a node counts as a live copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Excuse {
    /// It counts.
    None,
    /// The node was declared lost.
    Lost,
    /// It came back and took its desired set, in which nothing from before has a grant.
    Told,
}

impl Model {
    /// A workload that runs on node 0, and a move of it to node 1 that has just begun.
    pub fn new(stateful: bool, faults: u8, mutant: Mutant) -> Model {
        let mut cluster = world::World::new();
        cluster.at_ms = AT_MS;
        cluster.ok(SetFeatureLevel { level: Feature::Moves.level() });
        let (source, target) = (cluster.node("a"), cluster.node("b"));
        let mut create = cluster.app_command("web", "nginx");
        create.uid = UID.into();
        if stateful {
            create.spec.volumes = vec![VolumeSpec { name: "data".into(), kind: VolumeKind::Managed }];
        }
        cluster.ok(ApplyWorkload { node: Some(source.clone()), ..create });
        let settings = MoveSettings { attempts_max: 2, ..Default::default() };
        cluster.ok(StartMove { id: MOVE.into(), uid: UID.into(), target: Some(target), settings });
        // What the search never looks at is left out, so that a state is cheap to copy.
        let needless = |key: &[u8]| [b"audit/".as_slice(), b"join-token/"].iter().any(|kind| key.starts_with(kind));
        let pairs = cluster.state.dump().into_iter().filter(|(key, _)| !needless(key));
        let state = State::load(pairs).expect("its own dump");
        let (id, key) = keys(&state);
        let mut model = Model {
            known: Known { state: Rc::new(state), id, key },
            memo: Rc::new(Memo::default()),
            agents: [Agent { up: true, ..Default::default() }, Agent { up: true, ..Default::default() }],
            delayed: [None, None],
            held: None,
            faults_left: faults,
            cancelled: false,
            written: 0,
            written_after: 0,
            excuse: [Excuse::None; 2],
            data_lost: false,
            stateful,
            mutant,
        };
        for action in [Action::Take(0), Action::Act(0), Action::Report(0)] {
            model = model.step(action).expect("a calm start");
        }
        model
    }

    /// What the action leads to; `None` when it can't be done or changes nothing.
    pub fn step(&self, action: Action) -> Option<Model> {
        if !self.may(action) {
            return None;
        }
        let mut next = self.clone();
        next.faults_left -= u8::from(action.is_fault());
        let done = match action {
            Action::Lead => next.lead(false),
            Action::LeadLate => next.lead(true),
            Action::Take(node) => next.take(node),
            Action::Act(node) => next.act(node),
            Action::Copy(node) => next.copy(node),
            Action::Write(node) => next.write(node),
            Action::Report(node) => {
                next.connected(node) && {
                    let report = next.report(node);
                    next.apply(report.into())
                }
            }
            Action::Deliver(node) => next.delayed[node].take().is_some_and(|report| {
                next.apply(report.into());
                true
            }),
            Action::Heal(node) => next.heal(node),
            Action::ApplyHeld => next.held.take().is_some_and(|command| {
                next.apply(command);
                true
            }),
            Action::HoldCommand => {
                next.held.is_none() && {
                    next.held = next.decide(true).first().cloned();
                    next.held.is_some()
                }
            }
            Action::Delay(node) => {
                next.connected(node) && next.delayed[node].is_none() && {
                    let report = next.report(node);
                    next.delayed[node] = Some(report);
                    true
                }
            }
            Action::Crash(node) => {
                next.agents[node].up && {
                    next.agents[node].crash(self.mutant);
                    true
                }
            }
            Action::RestartProcess(node) => {
                next.agents[node].up && {
                    next.agents[node].restart_process(self.mutant);
                    next.agents[node] != self.agents[node]
                }
            }
            Action::Offline(node) => next.set_offline(node),
            Action::BreakStart(node) => !std::mem::replace(&mut next.agents[node].start_broken, true),
            Action::BreakCopy(node) => next.stateful && !std::mem::replace(&mut next.agents[node].copy_broken, true),
            Action::Cancel => {
                !std::mem::replace(&mut next.cancelled, true) && {
                    next.apply(CancelMove { id: MOVE.into(), reason: String::new() }.into())
                }
            }
            Action::Lose(node) => next.lose(node),
        };
        next.forget_stale();
        done.then_some(next)
    }

    /// The cheap half of `step`: most actions can't be done in most states. Faults are spent where they can do harm:
    /// while the move runs, on a start that is due, on a copy that is due.
    fn may(&self, action: Action) -> bool {
        use Action::*;
        if action.is_fault() && (self.faults_left == 0 || !self.mv().is_running()) {
            return false;
        }
        let starts = |agent: &Agent| {
            let order = agent.ledger.as_ref().filter(|order| order.mode == Mode::Run);
            let runs = |generation| agent.container.as_ref().is_some_and(|c| c.running && c.generation == generation);
            order.is_some_and(|order| !runs(order.generation))
        };
        match action {
            Lead => !self.decide(false).is_empty(),
            LeadLate => !self.decide(true).is_empty(),
            HoldCommand => self.held.is_none() && !self.decide(true).is_empty(),
            Take(node) => self.connected(node),
            Report(node) => self.connected(node) && self.has_news(node),
            Delay(node) => self.connected(node) && self.delayed[node].is_none() && self.has_news(node),
            Act(node) | Crash(node) | RestartProcess(node) => self.agents[node].up,
            Copy(node) => self.agents[node].copy_due().is_some(),
            Write(node) => self.stateful && self.agents[node].is_running(),
            Deliver(node) => self.delayed[node].is_some(),
            Heal(node) => {
                let agent = &self.agents[node];
                !agent.up || agent.start_broken || agent.copy_broken || !self.connected(node)
            }
            ApplyHeld => self.held.is_some(),
            Offline(node) => self.node(node).connection == Connection::Online,
            BreakStart(node) => self.agents[node].up && starts(&self.agents[node]),
            BreakCopy(node) => self.agents[node].copy_due().is_some(),
            Cancel => !self.cancelled,
            Lose(node) => self.node(node).connection != Connection::Online,
        }
    }

    /// True when the node's report would tell the servers something.
    fn has_news(&self, node: usize) -> bool {
        let (status, gone) = self.agents[node].report(self.mutant);
        let workload = self.workload();
        let known = |status: &WorkloadStatus| {
            let granted = workload.placement.as_ref().map(|placement| placement.generation);
            let at =
                if granted == Some(status.observed_generation) { &workload.status } else { &self.mv().target_status };
            at.as_ref().is_some_and(|at| WorkloadStatus { changed_at_ms: 0, ..at.clone() } == *status)
        };
        gone.is_some() || status.is_some_and(|status| !known(&status))
    }

    /// Drops what is on its way and can have no effect any more: apply refuses what speaks of an older session or step.
    fn forget_stale(&mut self) {
        for node in 0..2 {
            let epoch = self.node(node).session.as_ref().map(|session| session.epoch);
            if self.delayed[node].as_ref().is_some_and(|report| Some(report.epoch) != epoch) {
                self.delayed[node] = None;
            }
        }
        let (step, running) = (self.mv().step_count, self.mv().is_running());
        let stale = |command: &Command| match command {
            Command::AdvanceMove(advance) => !running || advance.expect_step != step,
            _ => false,
        };
        if self.held.as_ref().is_some_and(stale) {
            self.held = None;
        }
    }

    fn apply(&mut self, command: Command) -> bool {
        let incarnation = self.state().incarnation();
        let entry = Entry {
            incarnation,
            at_ms: AT_MS,
            request_id: String::new(),
            actor: "test".into(),
            command,
            caller: String::new(),
        };
        let (known, happened) = self.memo.apply(&self.known, entry, keys);
        self.known = known;
        self.data_lost |= self.workload().fresh_data;
        happened
    }

    fn state(&self) -> &State {
        &self.known.state
    }

    pub fn node(&self, node: usize) -> &Node {
        self.state().nodes().nth(node).expect("two nodes, never deleted")
    }

    pub fn mv(&self) -> &Move {
        self.state().get_move(&MOVE.into()).expect("one move, never forgotten")
    }

    fn connected(&self, node: usize) -> bool {
        self.agents[node].up && self.node(node).connection == Connection::Online
    }

    /// What a leader would ask for, its timers all new or all run out. It remembers nothing else: every pass is a new
    /// leader's.
    fn decide(&self, late: bool) -> Rc<Vec<Command>> {
        self.memo.decide(&self.known, late, |state| decide(state, if late { u64::MAX / 2 } else { 0 }))
    }

    fn lead(&mut self, late: bool) -> bool {
        let commands = self.decide(late);
        if late && commands == self.decide(false) {
            return false;
        }
        for command in commands.iter() {
            assert!(self.apply(command.clone()), "the reconciler asked for what changes nothing: {command:?}");
        }
        !commands.is_empty()
    }

    fn take(&mut self, node: usize) -> bool {
        if !self.connected(node) {
            return false;
        }
        let order = desired_set(self.state(), &self.node(node).id).first().map(Order::of);
        let news = self.agents[node].ledger != order || self.excuse[node] == Excuse::Lost;
        if self.excuse[node] == Excuse::Lost {
            self.excuse[node] = Excuse::Told;
        }
        self.agents[node].take(order);
        news
    }

    fn act(&mut self, node: usize) -> bool {
        let before = self.agents[node].clone();
        if !before.up {
            return false;
        }
        self.agents[node].act(self.stateful, self.mutant);
        let told = self.excuse[node] == Excuse::Told;
        if told {
            self.excuse[node] = Excuse::None;
        }
        told || before != self.agents[node]
    }

    /// The two machines talk to each other; both must be up, whether a server hears them or not.
    fn copy(&mut self, node: usize) -> bool {
        let Some((from, to, round, is_final)) = self.agents[node].copy_due() else { return false };
        let source = &self.agents[1 - node];
        // The source serves the copy that its own ledger names.
        let served = source.ledger.as_ref().and_then(|order| order.transfer) == Some((from, to, round, is_final));
        if !source.up || !self.agents[node].up || !served || (is_final && source.is_running()) {
            return false;
        }
        let content = source.volumes.get(&from).map(|(content, _)| *content).unwrap_or_default();
        self.agents[node].copy(to, round, content, self.mutant);
        true
    }

    /// A user's write, where the workload runs. The target's copy is reached by users only once the move has switched.
    fn write(&mut self, node: usize) -> bool {
        let agent = &mut self.agents[node];
        let Some(container) = agent.container.as_ref().filter(|container| container.running) else { return false };
        if !self.stateful || self.excuse[node] != Excuse::None {
            return false;
        }
        let data = container.data_generation;
        let Some((content, _)) = agent.volumes.get_mut(&data) else { return false };
        if node == 0 {
            if self.written == SOURCE_WRITES_MAX {
                return false;
            }
            content.by_source += 1;
            self.written += 1;
        } else {
            if content.by_target == TARGET_WRITES_MAX {
                return false;
            }
            content.by_target += 1;
            self.written_after = content.by_target;
        }
        true
    }

    fn report(&self, node: usize) -> ReportStatus {
        let (status, gone) = self.agents[node].report(self.mutant);
        let id = self.node(node).id.clone();
        let epoch = self.node(node).session.as_ref().map(|session| session.epoch).unwrap_or_default();
        ReportStatus {
            node: id,
            epoch,
            statuses: status.map(|status| StatusReport { uid: UID.into(), status }).into_iter().collect(),
            removed_grants: gone.into_iter().collect(),
            ..Default::default()
        }
    }

    fn heal(&mut self, node: usize) -> bool {
        let agent = &mut self.agents[node];
        let broken = !agent.up || agent.start_broken || agent.copy_broken;
        (agent.up, agent.start_broken, agent.copy_broken) = (true, false, false);
        let offline = self.node(node).connection != Connection::Online;
        if offline || !self.agents[node].up || broken {
            let certificate = self.node(node).certificate.as_ref().expect("it has joined");
            let open = OpenSession {
                node: self.node(node).id.clone(),
                fingerprint: certificate.fingerprint.clone(),
                server: ServerId(1),
                ..Default::default()
            };
            self.apply(open.into());
        }
        offline || broken
    }

    fn set_offline(&mut self, node: usize) -> bool {
        let Some(session) = &self.node(node).session else { return false };
        let (id, epoch) = (self.node(node).id.clone(), session.epoch);
        self.apply(TransitionNode { node: id, epoch, to: Connection::Offline, reason: String::new() }.into())
    }

    fn lose(&mut self, node: usize) -> bool {
        let id = self.node(node).id.clone();
        if self.node(node).lost || !self.apply(LoseNode { node: id, reason: String::new() }.into()) {
            return false;
        }
        self.excuse[node] = Excuse::Lost;
        true
    }

    pub fn workload(&self) -> &Workload {
        self.state().workload(&UID.into()).expect("one workload, never deleted")
    }

    /// What tells one state of the search from another: no times, no revisions, no texts. Not the faults that are left
    /// either: the search comes to each state with as many as it can first.
    pub fn key(&self) -> u64 {
        let delayed = self.delayed.each_ref().map(|delayed| {
            delayed.as_ref().map(|report| {
                let gone = report.removed_grants.first().map(|gone| gone.generation);
                (report.statuses.first().map(|report| status_key(&report.status)), gone)
            })
        });
        let held = self.held.as_ref().map(|held| match held {
            Command::AdvanceMove(advance) => hash_of(&(advance.expect_phase, advance.outcome)),
            other => hash_of(&format!("{other:?}")),
        });
        let spent = (self.cancelled, self.written, self.written_after, self.excuse, self.data_lost);
        hash_of(&(self.known.key, &self.agents, delayed, held, spent))
    }
}
