//! One seed's run: set up, work under faults, heal, converge, judge.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cara_checker::sometimes::{Sometimes, Want};
use cara_checker::{Verdict, converged, orphans, rules};
use cara_netsim::{Reached, WorldError, trace};
use cara_report::Recording;
use cara_scenario::Plan;

use crate::judge::{Judge, facts};
use crate::nemesis::Nemesis;
use crate::order::Order;
use crate::outcome::Outcome;
use crate::recorder::Recorder;
use crate::workload::Phase;
use crate::world::{Cluster, EngineKind};

/// A cluster without faults is set up within this.
const SETUP_MAX: Duration = Duration::from_secs(60);
/// A watcher whose stream is stuck notices after 20 s, and may have to read a list.
const TOLD_WITHIN: Duration = Duration::from_secs(60);
/// How often disks and ledgers are looked at, if they have changed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How far a node's wall clock is moved so that its certificate comes of age: two thirds of 90 days and a bit.
const OF_AGE_MS: i64 = 66 * 24 * 3600 * 1000;
/// For how long it stays there.
const OF_AGE_FOR: Duration = Duration::from_secs(20);

/// A fault that no correct cluster survives. A run with one that passes shows that the checkers are blind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Canary {
    /// Disks acknowledge syncs that they don't keep; then all servers lose power.
    LyingDisks,
    /// Clients read with `consistency=stale` and are judged as if they had not.
    StaleReads,
}

/// How a run ended, and what it leaves behind.
pub struct Ran {
    /// How it ended.
    pub outcome: Outcome,
    /// What a report draws; empty unless it was asked for.
    pub recording: Recording,
    /// When which fault hit whom, one line each.
    pub decisions: String,
}

/// A run as it goes, with the checkers that follow it.
pub struct Run {
    /// The cluster.
    pub cluster: Cluster,
    /// The one who breaks things.
    pub nemesis: Nemesis,
    /// The checkers.
    pub judge: Judge,
    recorder: Option<Recorder>,
    sometimes: Sometimes,
    /// The server that was elected last, and its term.
    leader: Option<(String, u64)>,
    terms: u64,
    voters: usize,
    next_look: Duration,
    of_age_until: BTreeMap<String, Duration>,
    plan: Plan,
}

/// Panics so far in this process. Libraries catch some of them, so they are collected where they happen.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs a plan from begin to end.
pub fn run(plan: &Plan, engine: EngineKind, canary: Option<Canary>, with_recording: bool) -> Ran {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
        usual(info);
    }));
    trace::record_messages(with_recording);
    let mut run = Run::new(plan, engine);
    if with_recording {
        run.recorder = Some(Recorder::new(&plan.name, plan.seed));
    }
    let going = AssertUnwindSafe(|| run.whole(canary));
    let ended = std::panic::catch_unwind(going);
    let now = run.now();
    if let Ok(Err(error)) = ended {
        run.judge.find(now, "world", "", error.to_string());
    }
    run.take_panics();
    run.ran()
}

impl Run {
    /// A new world.
    pub fn new(plan: &Plan, engine: EngineKind) -> Self {
        let mut cluster = Cluster::new(plan, engine);
        let nemesis = Nemesis::new(plan);
        cluster.world.watch_points(nemesis.events());
        let wants = plan.sometimes.iter().map(|want| Want {
            event: want.event.clone(),
            during: want.during.clone(),
            at_least: want.at_least,
        });
        Self {
            cluster,
            nemesis,
            judge: Judge::default(),
            recorder: None,
            sometimes: Sometimes::new(wants.collect()),
            leader: None,
            terms: 0,
            voters: 0,
            next_look: Duration::ZERO,
            of_age_until: BTreeMap::new(),
            plan: plan.clone(),
        }
    }

    /// Simulated time.
    pub fn now(&self) -> Duration {
        self.cluster.world.now()
    }

    /// The server that was elected last, and its term.
    pub fn leader(&self) -> Option<&(String, u64)> {
        self.leader.as_ref()
    }

    fn whole(&mut self, canary: Option<Canary>) -> Result<(), WorldError> {
        if !self.set_up()? {
            return Ok(());
        }
        if canary == Some(Canary::LyingDisks) {
            self.cluster.servers.clone().iter().for_each(|server| self.cluster.world.disk_lies(server, true));
        }
        self.cluster.shared.set_stale_reads(canary == Some(Canary::StaleReads));
        self.cluster.shared.set_phase(Phase::Work);
        let from = self.now();
        self.nemesis.begin_at(from);
        let mut blackout = (canary == Some(Canary::LyingDisks)).then(|| from + self.plan.duration / 2);
        while self.now() < from + self.plan.duration && !self.judge.has_findings() {
            if blackout.is_some_and(|at| at <= self.now()) {
                blackout = None;
                self.blackout()?;
            }
            self.step()?;
        }
        self.heal();
        if !self.judge.has_findings() && self.settle()? {
            self.judge.whole_history(&self.cluster);
        }
        Ok(())
    }

    /// All servers lose power at the same moment, and come back.
    fn blackout(&mut self) -> Result<(), WorldError> {
        let servers = self.cluster.servers.clone();
        servers.iter().for_each(|server| self.cluster.world.power_loss(server));
        self.until(Duration::from_secs(1), |_| false)?;
        servers.iter().for_each(|server| self.cluster.world.restart(server));
        Ok(())
    }

    /// Steps the world, lets the nemesis act, and looks at disks and ledgers when it is time.
    pub fn step(&mut self) -> Result<(), WorldError> {
        self.cluster.world.step()?;
        let now = self.now();
        for reached in self.cluster.world.take_points() {
            self.reached(now, &reached);
        }
        self.nemesis.act(&mut self.cluster, self.leader.as_ref().map(|(leader, _)| leader.as_str()));
        self.nemesis.take_replaced().iter().for_each(|host| self.judge.forget(host));
        for (id, began) in self.nemesis.take_changes() {
            // The times of an `every` are numbered; expectations speak of all of them.
            let id = id.split('#').next().unwrap_or_default();
            if began { self.sometimes.fault_began(id) } else { self.sometimes.fault_ended(id) }
        }
        self.cluster.add_newcomers();
        self.cluster.take_removed().iter().for_each(|host| self.judge.forget(host));
        self.age_certificates(now);
        if now >= self.next_look {
            self.next_look = now + LOOK_EVERY;
            self.look();
        }
        Ok(())
    }

    fn reached(&mut self, now: Duration, reached: &Reached) {
        match reached.point {
            "raft.elected" => {
                let term = reached.word("term").and_then(|term| term.parse().ok()).unwrap_or(0);
                if self.leader.as_ref().is_none_or(|(_, known)| *known < term) {
                    self.leader = Some((reached.host.clone(), term));
                    self.terms += 1;
                }
            }
            "raft.membership_changed" => self.voters = reached.word("voters").map_or(0, |ids| ids.split(',').count()),
            _ => {}
        }
        self.sometimes.seen(reached.point);
        if reached.point == "move.phase"
            && let Some(phase) = reached.word("phase")
        {
            self.sometimes.seen(&format!("move.phase:{phase}"));
        }
        self.nemesis.reached(now, reached);
        self.judge.reached(now, reached);
        if let Some(recorder) = &mut self.recorder {
            recorder.reached(now, reached);
        }
    }

    /// Moves the wall clocks of nodes whose certificates shall come of age, and moves them back.
    fn age_certificates(&mut self, now: Duration) {
        for number in self.cluster.shared.take_renewals() {
            let nodes = self.cluster.shared.nodes();
            let index = usize::try_from(number).unwrap_or(0) % nodes.len().max(1);
            // Not while a fault has the machine in hand: a restart would lift it.
            let is_free = |node: &&String| {
                let world = &self.cluster.world;
                !self.of_age_until.contains_key(*node) && world.is_running(node) && !world.gate(node).is_frozen()
            };
            let Some(node) = nodes.get(index).filter(is_free) else { continue };
            self.cluster.world.step_wall_clock(node, OF_AGE_MS);
            // An agent looks at its certificate when it starts, and once an hour.
            self.cluster.world.crash(node);
            self.cluster.world.restart(node);
            self.of_age_until.insert(node.clone(), now + OF_AGE_FOR);
        }
        let over: Vec<String> =
            self.of_age_until.iter().filter(|(_, until)| **until <= now).map(|(node, _)| node.clone()).collect();
        for node in over {
            self.of_age_until.remove(&node);
            self.cluster.world.step_wall_clock(&node, -OF_AGE_MS);
        }
    }

    /// Steps until `done`, at most for `limit`; tells which.
    pub fn until(&mut self, limit: Duration, mut done: impl FnMut(&mut Run) -> bool) -> Result<bool, WorldError> {
        let deadline = self.now() + limit;
        while self.now() < deadline {
            if done(self) {
                return Ok(true);
            }
            self.step()?;
        }
        Ok(done(self))
    }

    /// As [`Run::until`], and asks only ten times a second, because the question costs something.
    fn until_rarely(&mut self, limit: Duration, mut done: impl FnMut(&mut Run) -> bool) -> Result<bool, WorldError> {
        let mut next = Duration::ZERO;
        self.until(limit, |run| {
            if run.now() < next {
                return false;
            }
            next = run.now() + LOOK_EVERY;
            done(run)
        })
    }

    /// Waits until all servers vote, all nodes are online and a leader is known.
    pub fn set_up(&mut self) -> Result<bool, WorldError> {
        let mut open = Vec::new();
        let ready = self.until_rarely(SETUP_MAX, |run| {
            open = converged::open(&run.judge.converged(&run.cluster).0);
            if run.voters != run.cluster.servers.len() {
                open.push(format!("{} servers vote", run.voters));
            }
            open.is_empty() && run.leader.is_some()
        })?;
        if !ready {
            let text = format!("the cluster was not set up within {SETUP_MAX:?}: {}", open.join("; "));
            self.judge.find(self.now(), rules::CONVERGED, "", text);
        }
        trace::event("world", "set up", &[u64::from(ready)]);
        Ok(ready)
    }

    /// Lifts all faults.
    pub fn heal(&mut self) {
        self.nemesis.heal(&mut self.cluster);
        self.nemesis.take_replaced().iter().for_each(|host| self.judge.forget(host));
        for node in std::mem::take(&mut self.of_age_until).into_keys() {
            self.cluster.world.step_wall_clock(&node, -OF_AGE_MS);
        }
        let now = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.mark(now, "", "heal", "all faults are lifted");
        }
    }

    /// After the heal: lets clients end what they began, waits for convergence, reads everything once more. The bound is
    /// the scenario's.
    pub fn settle(&mut self) -> Result<bool, WorldError> {
        let bound = self.plan.converge_within;
        self.cluster.shared.set_phase(Phase::Rest);
        self.cluster.shared.order(Order::UncordonAll);
        let idle = self.until(bound, |run| {
            run.cluster.shared.history().pending.is_empty() && run.cluster.shared.has_no_orders()
        })?;
        if !idle {
            let pending = self.cluster.shared.history().pending.clone();
            let text = format!("operations did not end within {bound:?} after the heal: {pending:?}");
            self.judge.find(self.now(), rules::CONVERGED, "", text);
            return Ok(false);
        }
        let mut last = None;
        let done = self.until_rarely(bound, |run| {
            let (facts, state) = run.judge.converged(&run.cluster);
            let is_done = converged::open(&facts).is_empty();
            let left = state.filter(|_| is_done).map(|state| facts::left(&run.cluster, state));
            last = Some((facts, left));
            is_done
        })?;
        let now = self.now();
        let (facts, left) = last.unwrap_or_default();
        if !done {
            self.judge.add(converged::check(now, bound, &facts));
            return Ok(false);
        }
        if let Some((left, wanted)) = left {
            self.judge.add(orphans::check(now, &left, &wanted));
            self.tell_watchers()?;
        }
        self.cluster.shared.set_phase(Phase::Final);
        self.until(bound, |run| run.cluster.shared.history().at_the_end.is_some())
    }

    /// Gives watchers the time to be told of all that has changed up to now. Whoever isn't by then is found by the judge.
    fn tell_watchers(&mut self) -> Result<(), WorldError> {
        let audited = self.judge.newest().and_then(|state| state.audit().next_back()).map(|record| record.revision.0);
        let must = audited.max(self.cluster.shared.history().told_to());
        self.judge.must_be_told = must;
        self.until_rarely(TOLD_WITHIN, |run| run.cluster.shared.history().are_all_told(must.unwrap_or(0)))?;
        Ok(())
    }

    fn take_panics(&mut self) {
        let now = self.now();
        for text in PANICS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.judge.find(now, "panic", "", text);
        }
    }

    /// Looks at everything that has changed.
    fn look(&mut self) {
        self.take_panics();
        self.judge.look(&self.cluster);
        let now = self.now();
        for text in self.cluster.disagreements() {
            self.judge.find(now, "engine.differs", "", text);
        }
        for (host, exit) in self.cluster.world.take_exits() {
            // A process may end on a broken disk, and is started again. It is in the trace.
            let reason = exit.err().unwrap_or_default();
            if reason.contains("damaged") && !self.nemesis.has_damaged(&host) {
                self.judge.find(now, rules::CORE_INVARIANTS, &host, format!("it ended: {reason}"));
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.mark(now, &host, "exit", &reason);
            }
        }
        self.record_machines(now);
    }

    fn record_machines(&mut self, now: Duration) {
        let Some(recorder) = &mut self.recorder else { return };
        let world = &self.cluster.world;
        let kinds = [("server", self.cluster.server_machines()), ("agent", self.cluster.agents.clone())];
        let clients = [("client", self.cluster.clients.clone())];
        for (kind, hosts) in kinds.into_iter().chain(clients) {
            for host in hosts {
                recorder.host(&host, kind);
                let process = match (world.is_running(&host), world.gate(&host).is_frozen()) {
                    (false, _) => "down",
                    (true, true) => "frozen",
                    (true, false) => "running",
                };
                recorder.now(now, &host, "process", Some(process));
                if process == "down" {
                    recorder.now(now, &host, "role", None);
                }
            }
        }
    }

    fn ran(mut self) -> Ran {
        let now = self.now();
        for (event, most) in self.plan.at_most.clone() {
            let count = self.sometimes.counts().get(&event).copied().unwrap_or_default();
            if count > most {
                let text = format!("{event} happened {count} times, at most {most} were expected");
                self.judge.find(now, "events.at-most", "", text);
            }
        }
        let unmet = if self.judge.has_findings() {
            Vec::new()
        } else {
            self.sometimes.unmet().into_iter().chain(self.nemesis.missed()).collect()
        };
        self.judge.judgement.unsure(unmet);
        let outcome = self.outcome();
        let recording = self.recorder.take().map(|mut recorder| {
            for fault in self.nemesis.ledger().iter().filter(|fault| fault.skipped.is_none()) {
                let label = format!("{} ({})", fault.kind, fault.id);
                fault.hosts.iter().for_each(|host| recorder.fault(host, &label, fault.from, fault.to.unwrap_or(now)));
            }
            for (node, engine) in self.cluster.every_engine() {
                recorder.containers(node, &engine.starts(), now);
            }
            let history = self.cluster.shared.history();
            recorder.calls(&history.calls, &self.judge.keys);
            recorder.finish(now, &outcome.verdict.to_string(), &outcome.findings, &self.plan.choices)
        });
        Ran { outcome, recording: recording.unwrap_or_default(), decisions: self.nemesis.decisions() }
    }

    fn outcome(&self) -> Outcome {
        let digest = trace::digest();
        let history = self.cluster.shared.history();
        let judgement = &self.judge.judgement;
        Outcome {
            seed: self.plan.seed,
            scenario: self.plan.name.clone(),
            verdict: judgement.verdict(),
            findings: judgement.findings.clone(),
            unmet: if judgement.verdict() == Verdict::Unknown { judgement.unknown.clone() } else { Vec::new() },
            sim_seconds: self.now().as_secs_f64(),
            events: digest.events,
            wire_bytes: digest.wire_bytes,
            hash: format!("{:016x}", digest.hash),
            seconds: digest.seconds.iter().map(|hash| format!("{hash:016x}")).collect(),
            leader_changes: self.terms.saturating_sub(1),
            acknowledged: history.acknowledged,
            calls: history.calls.len() as u64,
            faults: self.nemesis.counts(),
            points: self.sometimes.counts().clone().into_iter().collect(),
            cells: self.nemesis.cells(),
            choices: self.plan.choices.clone(),
        }
    }
}
