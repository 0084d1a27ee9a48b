//! One seed's run: set up, work under faults, heal, converge, judge.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cara_netsim::{WorldError, trace};

use crate::checker::fences::Fences;
use crate::checker::servers::Servers;
use crate::checker::{converged, copies, durable, linear};
use crate::nemesis::Nemesis;
use crate::outcome::Outcome;
use crate::workload::Phase;
use crate::world::{Cluster, Size};

/// A cluster without faults is set up within this.
const SETUP_MAX: Duration = Duration::from_secs(60);
/// After the last fault: keepalives find dead connections (20 s), agents come back, everything runs.
const CONVERGE_MAX: Duration = Duration::from_secs(120);
/// How often states and ledgers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// More violations of one run than these teach nothing.
const VIOLATIONS_MAX: usize = 20;

/// What one run shall be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// How long faults go on.
    pub duration: Duration,
    /// How large the world is.
    pub size: Size,
    /// Something planted that must make the run fail.
    pub canary: Option<Canary>,
}

/// A fault that no correct cluster survives. A run with one that passes shows that the checkers are blind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Canary {
    /// Disks acknowledge syncs that they don't keep; then all servers lose power.
    LyingDisks,
    /// Clients read with `consistency=stale` and are judged as if they had not.
    StaleReads,
}

/// A run as it goes, with the checkers that follow it.
pub struct Run {
    /// The cluster.
    pub cluster: Cluster,
    /// Follows the servers' states.
    pub servers: Servers,
    /// Follows the agents' ledgers.
    pub fences: Fences,
    /// What is wrong so far.
    pub violations: Vec<String>,
    next_look: Duration,
    seen: BTreeMap<String, u64>,
}

/// Panics so far in this process. Libraries catch some of them, so they are collected where they happen.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs a seed from begin to end.
pub fn run(plan: &Plan) -> Outcome {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(format!("panic: {info}"));
        usual(info);
    }));
    let mut run = Run::new(plan.seed, &plan.size);
    let mut nemesis = None;
    let going = AssertUnwindSafe(|| whole(&mut run, plan, &mut nemesis));
    if let Ok(Err(error)) = std::panic::catch_unwind(going) {
        run.violations.push(error.to_string());
    }
    run.take_panics();
    run.outcome(plan.seed, nemesis.as_ref())
}

fn whole(run: &mut Run, plan: &Plan, nemesis: &mut Option<Nemesis>) -> Result<(), WorldError> {
    if !run.set_up()? {
        return Ok(());
    }
    if plan.canary == Some(Canary::LyingDisks) {
        run.cluster.servers.clone().iter().for_each(|server| run.cluster.world.disk_lies(server, true));
    }
    run.cluster.shared.set_stale_reads(plan.canary == Some(Canary::StaleReads));
    run.cluster.shared.set_phase(Phase::Work);
    let until = run.now() + plan.duration;
    let mut blackout = (plan.canary == Some(Canary::LyingDisks)).then(|| run.now() + plan.duration / 2);
    let nemesis = nemesis.insert(Nemesis::new(plan.seed, run.now() + Duration::from_secs(1)));
    while run.now() < until && run.violations.is_empty() {
        if blackout.is_some_and(|at| at <= run.now()) {
            blackout = None;
            nemesis.blackout(&mut run.cluster);
        }
        nemesis.act(&mut run.cluster);
        run.step()?;
    }
    nemesis.heal(&mut run.cluster);
    if run.violations.is_empty() && run.settle()? {
        run.judge();
    }
    Ok(())
}

impl Run {
    /// A new world.
    pub fn new(seed: u64, size: &Size) -> Self {
        Self {
            cluster: Cluster::new(seed, size),
            servers: Servers::default(),
            fences: Fences::default(),
            violations: Vec::new(),
            next_look: Duration::ZERO,
            seen: BTreeMap::new(),
        }
    }

    /// Simulated time.
    pub fn now(&self) -> Duration {
        self.cluster.world.now()
    }

    /// Steps the world and looks at states and ledgers when it is time.
    pub fn step(&mut self) -> Result<(), WorldError> {
        self.cluster.world.step()?;
        if self.now() >= self.next_look {
            self.next_look = self.now() + LOOK_EVERY;
            self.look();
        }
        Ok(())
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

    /// Waits until all servers vote, all nodes are online and a leader is known.
    pub fn set_up(&mut self) -> Result<bool, WorldError> {
        let mut next = Duration::ZERO;
        let mut open = Vec::new();
        let ready = self.until(SETUP_MAX, |run| {
            if run.now() < next {
                return false;
            }
            next = run.now() + LOOK_EVERY;
            open = run.not_ready();
            open.is_empty()
        })?;
        if !ready {
            self.violations.push(format!("the cluster was not set up within {SETUP_MAX:?}: {}", open.join("; ")));
        }
        trace::event("world", "set up", &[u64::from(ready)]);
        Ok(ready)
    }

    fn not_ready(&self) -> Vec<String> {
        let mut open = converged::check(&self.cluster);
        if self.cluster.shared.observed().leader().is_none() {
            open.push("no leader".into());
        }
        let voters = self.cluster.voters();
        if voters != self.cluster.servers.len() {
            open.push(format!("{voters} servers vote"));
        }
        open
    }

    /// After the heal: lets clients end what they began, waits for convergence, reads everything once more.
    pub fn settle(&mut self) -> Result<bool, WorldError> {
        self.cluster.shared.set_phase(Phase::Rest);
        let idle = self.until(CONVERGE_MAX, |run| run.cluster.shared.history().pending == 0)?;
        if !idle {
            self.violations.push(format!("a client's operation did not end within {CONVERGE_MAX:?} after the heal"));
            return Ok(false);
        }
        let mut next = Duration::ZERO;
        let mut open = Vec::new();
        let done = self.until(CONVERGE_MAX, |run| {
            if run.now() < next {
                return false;
            }
            next = run.now() + LOOK_EVERY;
            open = converged::check(&run.cluster);
            open.is_empty()
        })?;
        if !done {
            open.truncate(VIOLATIONS_MAX);
            self.violations.push(format!("not converged {CONVERGE_MAX:?} after the heal: {}", open.join("; ")));
            return Ok(false);
        }
        self.cluster.shared.set_phase(Phase::Final);
        self.until(CONVERGE_MAX, |run| run.cluster.shared.history().final_apps.is_some())
    }

    /// The checkers that need the whole history.
    pub fn judge(&mut self) {
        let history = self.cluster.shared.history().clone();
        self.violations.extend(linear::check(&history.calls));
        self.violations.extend(durable::check(&history));
        self.violations.extend(history.strange.iter().map(|text| format!("strange answer: {text}")));
        let starts: Vec<_> =
            self.cluster.agents.iter().cloned().zip(self.cluster.engines.iter().map(|e| e.starts())).collect();
        self.violations.extend(copies::check(&starts));
    }

    fn take_panics(&mut self) {
        self.violations.append(&mut PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Looks at every state and ledger that has changed.
    fn look(&mut self) {
        self.take_panics();
        for server in self.cluster.servers.clone() {
            let written = self.cluster.world.disk(&server).written();
            if self.seen.insert(server.clone(), written) == Some(written) {
                continue;
            }
            match self.cluster.state_of(&server) {
                Ok(Some(state)) => self.violations.extend(self.servers.look(&server, state)),
                Ok(None) => {}
                Err(error) => self.violations.push(error),
            }
        }
        for agent in self.cluster.agents.clone() {
            let files = self.cluster.world.files(&agent);
            self.violations.extend(self.fences.look(&agent, files, Cluster::ledger_file()));
        }
        for (host, exit) in self.cluster.world.take_exits() {
            // A process may end on a broken disk, and is started again. It is in the trace.
            if let Err(reason) = exit
                && reason.contains("damaged")
            {
                self.violations.push(format!("{host} ended: {reason}"));
            }
        }
        self.violations.truncate(VIOLATIONS_MAX);
    }

    fn outcome(&self, seed: u64, nemesis: Option<&Nemesis>) -> Outcome {
        let digest = trace::digest();
        let history = self.cluster.shared.history();
        let faults = nemesis.map(|n| n.counts().clone()).unwrap_or_default();
        Outcome {
            seed,
            violations: self.violations.clone(),
            sim_seconds: self.now().as_secs_f64(),
            events: digest.events,
            wire_bytes: digest.wire_bytes,
            hash: format!("{:016x}", digest.hash),
            seconds: digest.seconds.iter().map(|hash| format!("{hash:016x}")).collect(),
            leader_changes: (self.cluster.shared.observed().terms.len() as u64).saturating_sub(1),
            acknowledged: history.acknowledged,
            calls: history.calls.len() as u64,
            faults: faults.iter().map(|(kind, count)| (format!("{kind:?}"), *count)).collect(),
        }
    }
}
