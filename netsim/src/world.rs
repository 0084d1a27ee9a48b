//! The world: machines, the network between them, time, and the faults that can happen to them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use cara_env::{Clock, Files};

use crate::clock::{EPOCH_MS, MachineClock, Now};
use crate::disk::Disk;
use crate::files::SimFiles;
use crate::gate::Gate;
use crate::libc::{self, Active};
use crate::link::Links;
use crate::machine::{Boot, Exit, Ground, Machine};
use crate::pipe::Pipes;
use crate::points::Reached;
use crate::snapshot::Snapshot;
use crate::{Spread, trace};

/// Connections and segments that turmoil queues per socket. Less makes it panic under a frozen listener.
const TCP_CAPACITY: usize = 65_536;
/// turmoil never gives back the port of a cancelled connect, so hosts get nearly all ports there are.
const EPHEMERAL_PORTS: std::ops::RangeInclusive<u16> = 16_384..=65_535;

/// What a world is made of, beside its seed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The step of time. 1 ms is exact; 5 ms is nearly twice as fast and rounds latencies. Never below 1 ms: turmoil's
    /// clocks go wrong then.
    pub tick: Duration,
    /// How long a message takes.
    pub latency: Spread,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tick: Duration::from_millis(1), latency: Spread::default() }
    }
}

/// The simulation itself went wrong (not the code under test).
#[derive(Debug, thiserror::Error)]
#[error("the simulation stopped after {at:?}: {reason}")]
pub struct WorldError {
    /// Simulated time.
    pub at: Duration,
    /// What turmoil says.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    Running,
    /// The process is gone; the machine answers with resets.
    Stopped,
    /// The machine is silent.
    Dark,
}

/// A simulated world. One per process, run on one thread.
pub struct World {
    sim: turmoil::Sim<'static>,
    pub(crate) ground: Ground,
    machines: BTreeMap<String, Arc<Machine>>,
    power: BTreeMap<String, Power>,
    restarts: BTreeMap<String, Duration>,
    /// Processes that were told to end by themselves, and when they are killed otherwise.
    stopping: BTreeMap<String, Duration>,
    /// Of those, the ones that shall start again once they have ended.
    starting_again: BTreeSet<String>,
    exits: Vec<(String, Exit)>,
    tick: Duration,
    _libc: Active,
}

impl World {
    /// An empty world with the default settings.
    pub fn new(seed: u64) -> Self {
        Self::with_settings(seed, &Settings::default())
    }

    /// An empty world.
    pub fn with_settings(seed: u64, settings: &Settings) -> Self {
        let active = libc::activate(seed);
        // Hash maps take their keys once a thread: now, and not at a moment that depends on who made the first map.
        drop(std::hash::RandomState::new());
        trace::reset();
        let (latency_max, curve, base) = turmoil_latency(&settings.latency);
        let mut builder = turmoil::Builder::new();
        builder
            .epoch(UNIX_EPOCH + Duration::from_millis(EPOCH_MS))
            .rng_seed(seed)
            .tick_duration(settings.tick.max(Duration::from_millis(1)))
            .simulation_duration(Duration::from_secs(1 << 32))
            .min_message_latency(settings.latency.min())
            .max_message_latency(latency_max)
            .tcp_capacity(TCP_CAPACITY)
            .ephemeral_ports(EPHEMERAL_PORTS)
            .enable_random_order();
        let sim = builder.build();
        sim.set_message_latency_curve(curve);
        let ground = Ground {
            seed,
            now: Now::default(),
            links: Arc::new(Links::default()),
            pipes: Arc::new(Pipes::new(seed, base)),
            conns: Arc::default(),
            points: Arc::default(),
            connections: Arc::new(AtomicU64::new(1)),
        };
        Self {
            sim,
            ground,
            machines: BTreeMap::new(),
            power: BTreeMap::new(),
            restarts: BTreeMap::new(),
            stopping: BTreeMap::new(),
            starting_again: BTreeSet::new(),
            exits: Vec::new(),
            tick: settings.tick.max(Duration::from_millis(1)),
            _libc: active,
        }
    }

    /// Adds a machine, before the world runs or while it does, that runs `software` and starts it again `restart_after` it ended by itself.
    pub fn host<F>(&mut self, name: &str, restart_after: Option<Duration>, software: impl Fn(Boot) -> F + 'static)
    where
        F: Future<Output = Result<(), String>> + 'static,
    {
        let machine = Arc::new(Machine::new(name, self.ground.clone(), restart_after));
        self.machines.insert(name.to_owned(), machine.clone());
        self.power.insert(name.to_owned(), Power::Running);
        self.sim.host(name, move || {
            let machine = machine.clone();
            let boot = machine.boot();
            trace::event(&machine.name, "boot", &[boot.incarnation]);
            let process = software(boot);
            let exit = machine.exit.clone();
            let life = async move {
                let ended = process.await;
                *exit.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(ended);
                // Its tasks live on until the driver, at the end of this step, ends the process as a whole.
                std::future::pending().await
            };
            cara_env::on_host(machine.gate.clone(), life)
        });
        self.apply_links(); // Machines without power are silent for a new one as well.
    }

    /// Adds a machine that runs `work` once.
    pub fn client<F>(&mut self, name: &str, work: impl Fn(Boot) -> F + 'static)
    where
        F: Future<Output = Result<(), String>> + 'static,
    {
        self.host(name, None, work);
    }

    /// One tick of time for everyone.
    ///
    /// # Panics
    /// A panic of a simulated task goes on here.
    pub fn step(&mut self) -> Result<(), WorldError> {
        let now = self.sim.elapsed();
        self.start_due(now);
        self.kill_overdue(now);
        for machine in self.machines.values() {
            machine.gate.tick();
        }
        self.sim.step().map_err(|error| WorldError { at: now, reason: error.to_string() })?;
        self.publish_time();
        self.bury_exited();
        Ok(())
    }

    fn publish_time(&self) {
        let now = self.sim.elapsed();
        self.ground.now.set(now);
        libc::publish(now);
        trace::set_now(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Steps until `deadline` of simulated time or until `done` says so; tells which.
    pub fn run_until(&mut self, deadline: Duration, mut done: impl FnMut(&World) -> bool) -> Result<bool, WorldError> {
        while self.now() < deadline {
            if done(self) {
                return Ok(true);
            }
            self.step()?;
        }
        Ok(done(self))
    }

    /// Simulated time since the world began.
    pub fn now(&self) -> Duration {
        self.sim.elapsed()
    }

    /// The step of time.
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// All machines, sorted.
    pub fn names(&self) -> Vec<String> {
        self.machines.keys().cloned().collect()
    }

    /// From now on a machine that reaches one of these chaos points is held until the end of the step, so that a fault
    /// can hit exactly there.
    pub fn watch_points(&mut self, names: BTreeSet<String>) {
        self.ground.points.watch(names);
    }

    /// The chaos points that were reached since the last call, in order. `disk.sync`, `disk.synced` and `disk.write` are so
    /// frequent that they exist only while watched.
    pub fn take_points(&mut self) -> Vec<Reached> {
        self.ground.points.take()
    }

    /// The gate of a machine.
    pub fn gate(&self, host: &str) -> &Gate {
        &self.machine(host).gate
    }

    /// The disk of a machine.
    pub fn disk(&self, host: &str) -> &Disk {
        &self.machine(host).disk
    }

    /// The machine's clock, for what outlives its processes.
    pub fn clock(&self, host: &str) -> Arc<dyn Clock> {
        let machine = self.machine(host);
        Arc::new(MachineClock { now: self.ground.now.clone(), crystal: machine.crystal.clone() })
    }

    /// The world's own clock, which no machine's error reaches: for records that are compared between machines.
    pub fn true_clock(&self) -> Arc<dyn Clock> {
        Arc::new(MachineClock { now: self.ground.now.clone(), crystal: Arc::default() })
    }

    /// The machine's files, seen from outside.
    pub fn files(&self, host: &str) -> Arc<dyn Files> {
        Arc::new(SimFiles::from_outside(host, self.machine(host).files.clone()))
    }

    /// How often the machine has started; 0 before the first time.
    pub fn incarnation(&self, host: &str) -> u64 {
        self.machine(host).incarnations()
    }

    /// Does a process run there (frozen or not)?
    pub fn is_running(&self, host: &str) -> bool {
        self.power.get(host) == Some(&Power::Running)
    }

    /// Processes that ended by themselves since the last call, with the reason.
    pub fn take_exits(&mut self) -> Vec<(String, Result<(), String>)> {
        std::mem::take(&mut self.exits)
    }

    /// Kills the process: its connections are closed by the kernel, written data stays.
    pub fn crash(&mut self, host: &str) {
        if !self.is_running(host) {
            return;
        }
        trace::event(host, "fault.crash", &[]);
        self.kill(host);
    }

    /// The process ends, whatever the reason; the kernel lives.
    fn kill(&mut self, host: &str) {
        let starts_again = self.starting_again.contains(host);
        self.end_process(host);
        self.machine(host).disk.crash();
        self.ground.links.stopped(host, true);
        self.power.insert(host.to_owned(), Power::Stopped);
        if starts_again {
            self.restarts.insert(host.to_owned(), self.now());
        }
    }

    /// Takes the power: silence, and what was not synced is gone.
    pub fn power_loss(&mut self, host: &str) {
        if !self.is_running(host) {
            return;
        }
        trace::event(host, "fault.power_loss", &[]);
        self.ground.links.dark(host, true);
        self.apply_links();
        self.end_process(host);
        self.machine(host).disk.power_loss();
        self.power.insert(host.to_owned(), Power::Dark);
    }

    /// Tells the process to end by itself ([`Boot::shutdown`]), and kills it if it has not after `grace`. It is not
    /// started again before [`World::restart`]. Nothing happens if no process runs.
    pub fn stop(&mut self, host: &str, grace: Duration) {
        if !self.is_running(host) {
            return;
        }
        trace::event(host, "fault.stop", &[u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)]);
        self.machine(host).shutdown.send_replace(true);
        self.stopping.insert(host.to_owned(), self.now() + grace);
    }

    /// Is a process being stopped there that has not ended yet?
    pub fn is_stopping(&self, host: &str) -> bool {
        self.stopping.contains_key(host)
    }

    /// Starts a machine whose process is gone. Nothing happens if it runs; if it is being stopped, it starts once it has
    /// ended.
    pub fn restart(&mut self, host: &str) {
        if self.is_running(host) {
            if self.is_stopping(host) {
                self.starting_again.insert(host.to_owned());
            }
            return;
        }
        self.restarts.remove(host);
        self.ground.links.dark(host, false);
        self.ground.links.stopped(host, false);
        self.apply_links();
        self.power.insert(host.to_owned(), Power::Running);
        self.sim.bounce(host);
    }

    /// Replaces disk and files of a stopped machine by empty ones.
    ///
    /// # Panics
    /// Panics when a process runs there.
    pub fn wipe(&mut self, host: &str) {
        assert!(!self.is_running(host), "{host} runs; only a stopped machine gets a new disk");
        trace::event(host, "fault.wipe", &[]);
        self.machine(host).disk.wipe();
        self.machine(host).files.wipe();
    }

    /// A copy of the machine's disk and files as they are now, written but unsynced data included.
    pub fn snapshot(&self, host: &str) -> Snapshot {
        let machine = self.machine(host);
        Snapshot { disk: machine.disk.image(), files: machine.files.image() }
    }

    /// Replaces disk and files of a stopped machine by a snapshot: an older one of its own (a restored backup), or one of
    /// another machine (a cloned identity).
    ///
    /// # Panics
    /// Panics when a process runs there.
    pub fn restore(&mut self, host: &str, snapshot: &Snapshot) {
        assert!(!self.is_running(host), "{host} runs; only a stopped machine gets other data");
        trace::event(host, "fault.restore", &[snapshot.fingerprint()]);
        self.machine(host).disk.restore(&snapshot.disk);
        self.machine(host).files.restore(&snapshot.files);
    }

    pub(crate) fn machine(&self, host: &str) -> &Machine {
        self.machines.get(host).unwrap_or_else(|| panic!("no machine {host} in this world"))
    }

    pub(crate) fn apply_links(&self) {
        self.ground.links.apply(&self.sim, &self.names());
    }

    /// Drops all tasks. From before the first destructor on, the process can't touch disk or files.
    fn end_process(&mut self, host: &str) {
        let machine = self.machines[host].clone();
        machine.alive.store(0, Ordering::Relaxed);
        self.stopping.remove(host);
        self.starting_again.remove(host);
        self.sim.crash(host);
        machine.gate.reset(self.ground.seed, &format!("libraries/{host}/none"));
    }

    fn start_due(&mut self, now: Duration) {
        let due: Vec<String> =
            self.restarts.iter().filter(|(_, at)| **at <= now).map(|(host, _)| host.clone()).collect();
        for host in due {
            self.restart(&host);
        }
    }

    fn kill_overdue(&mut self, now: Duration) {
        let due: Vec<String> =
            self.stopping.iter().filter(|(_, at)| **at <= now).map(|(host, _)| host.clone()).collect();
        for host in due {
            trace::event(&host, "stop.overdue", &[]);
            self.kill(&host);
        }
    }

    /// A process that ended by itself: its tasks go, the kernel closes its connections.
    fn bury_exited(&mut self) {
        for host in self.names() {
            let machine = self.machines[&host].clone();
            if !self.is_running(&host) {
                continue;
            }
            let Some(exit) = machine.exit() else { continue };
            trace::note(&host, "exit", exit.as_ref().err().map_or("", String::as_str));
            let was_told_to = self.is_stopping(&host);
            self.kill(&host);
            if let Some(after) = machine.restart_after.filter(|_| !was_told_to) {
                self.restarts.insert(host.clone(), self.now() + after);
            }
            self.exits.push((host, exit));
        }
    }
}

/// What turmoil shall draw itself: the greatest latency, and the curve below it. It knows only exponential latencies, so
/// for others it gets the minimum, and the pipes draw the rest.
fn turmoil_latency(latency: &Spread) -> (Duration, f64, Option<Spread>) {
    let (min, max) = (latency.min(), latency.max());
    match *latency {
        Spread::Uniform { .. } if min == max => (max, 1.0, None),
        Spread::Uniform { .. } => (min, 1.0, Some(*latency)),
        Spread::Exponential { mean, .. } => {
            let mean = mean.saturating_sub(min).max(Duration::from_micros(1));
            (max, (max - min).as_secs_f64().max(1e-6) / mean.as_secs_f64(), None)
        }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now()).field("power", &self.power).finish_non_exhaustive()
    }
}
