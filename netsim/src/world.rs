//! The world: machines, the network between them, time, and the faults that can happen to them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use cara_env::{Clock, Files};

use crate::clock::{EPOCH_MS, MachineClock, Now};
use crate::disk::{Disk, Latency};
use crate::files::SimFiles;
use crate::gate::Gate;
use crate::libc::{self, Active};
use crate::link::Links;
use crate::machine::{Boot, Exit, Ground, Machine};
use crate::points::Reached;
use crate::trace;

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
    /// Least latency of a message.
    pub latency_min: Duration,
    /// Greatest latency of a message.
    pub latency_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(1),
            latency_min: Duration::from_millis(1),
            latency_max: Duration::from_millis(10),
        }
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
    ground: Ground,
    machines: BTreeMap<String, Arc<Machine>>,
    power: BTreeMap<String, Power>,
    restarts: BTreeMap<String, Duration>,
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
        let mut builder = turmoil::Builder::new();
        builder
            .epoch(UNIX_EPOCH + Duration::from_millis(EPOCH_MS))
            .rng_seed(seed)
            .tick_duration(settings.tick.max(Duration::from_millis(1)))
            .simulation_duration(Duration::from_secs(1 << 32))
            .min_message_latency(settings.latency_min)
            .max_message_latency(settings.latency_max)
            .tcp_capacity(TCP_CAPACITY)
            .ephemeral_ports(EPHEMERAL_PORTS)
            .enable_random_order();
        let ground = Ground {
            seed,
            now: Now::default(),
            links: Arc::new(Links::default()),
            points: Arc::default(),
            connections: Arc::new(AtomicU64::new(1)),
        };
        Self {
            sim: builder.build(),
            ground,
            machines: BTreeMap::new(),
            power: BTreeMap::new(),
            restarts: BTreeMap::new(),
            exits: Vec::new(),
            tick: settings.tick.max(Duration::from_millis(1)),
            _libc: active,
        }
    }

    /// Adds a machine that runs `software` and starts it again `restart_after` it ended by itself.
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

    /// The chaos points that were reached since the last call, in order.
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
        Arc::new(MachineClock { now: self.ground.now.clone(), wall_offset_ms: machine.wall_offset_ms.clone() })
    }

    /// The machine's files, seen from outside.
    pub fn files(&self, host: &str) -> Arc<dyn Files> {
        Arc::new(SimFiles::from_outside(host, self.machine(host).files.clone()))
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
        self.end_process(host);
        self.machine(host).disk.crash();
        self.ground.links.stopped(host, true);
        self.power.insert(host.to_owned(), Power::Stopped);
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

    /// Starts a machine whose process is gone; nothing happens if it runs.
    pub fn restart(&mut self, host: &str) {
        if self.is_running(host) {
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

    /// Stops polling the machine's tasks (SIGSTOP). Its connections stay open, its clock goes on.
    pub fn freeze(&mut self, host: &str) {
        trace::event(host, "fault.freeze", &[]);
        self.machine(host).gate.freeze();
    }

    /// Polls the machine's tasks again (SIGCONT).
    pub fn thaw(&mut self, host: &str) {
        trace::event(host, "fault.thaw", &[]);
        self.machine(host).gate.thaw();
    }

    /// Limits the machine to so many task polls a tick; `None` lifts the limit.
    pub fn slow_cpu(&mut self, host: &str, polls_per_tick: Option<u64>) {
        trace::event(host, "fault.slow_cpu", &[polls_per_tick.unwrap_or(u64::MAX)]);
        self.machine(host).gate.slow(polls_per_tick);
    }

    /// Drops everything that `from` sends to `to`, or stops doing so. Each call counts once.
    pub fn cut(&mut self, from: &str, to: &str, on: bool) {
        trace::note(from, if on { "fault.cut" } else { "fault.uncut" }, to);
        self.ground.links.cut(from, to, on);
        self.apply_links();
    }

    /// Drops everything between two machines.
    pub fn partition(&mut self, a: &str, b: &str) {
        self.cut(a, b, true);
        self.cut(b, a, true);
    }

    /// Lifts one [`World::partition`].
    pub fn repair(&mut self, a: &str, b: &str) {
        self.cut(a, b, false);
        self.cut(b, a, false);
    }

    /// Delays everything between two machines until it is lifted. Each call counts once.
    pub fn hold(&mut self, a: &str, b: &str, on: bool) {
        trace::note(a, if on { "fault.hold" } else { "fault.release" }, b);
        self.ground.links.hold(a, b, on);
        self.apply_links();
    }

    /// Cuts a machine off from all others, or lifts that again.
    pub fn isolate(&mut self, host: &str, on: bool) {
        for other in self.names() {
            if other != host {
                self.cut(host, &other, on);
                self.cut(&other, host, on);
            }
        }
    }

    /// Opens every link. Machines without power stay dark.
    pub fn heal_network(&mut self) {
        trace::event("world", "heal", &[]);
        self.ground.links.heal();
        self.apply_links();
    }

    /// Steps the machine's wall clock by so many milliseconds, forward or back. Its monotonic clock does not move.
    pub fn step_wall_clock(&mut self, host: &str, by_ms: i64) {
        trace::event(host, "fault.wall_clock", &[by_ms.cast_unsigned()]);
        self.machine(host).wall_offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// How long syncs of the machine's disk take from now on.
    pub fn disk_latency(&mut self, host: &str, latency: Latency) {
        trace::event(host, "fault.disk_latency", &[latency.min_us, latency.max_us]);
        self.machine(host).disk.set_latency(latency);
    }

    /// The disk ends no sync while stalled.
    pub fn disk_stall(&mut self, host: &str, on: bool) {
        trace::event(host, "fault.disk_stall", &[u64::from(on)]);
        self.machine(host).disk.set_stalled(on);
    }

    /// Leaves the disk so much room for keys and values (bytes), and files none at zero; `None` lifts the limit.
    pub fn disk_room(&mut self, host: &str, bytes_max: Option<u64>) {
        trace::event(host, "fault.disk_room", &[bytes_max.unwrap_or(u64::MAX)]);
        self.machine(host).disk.set_bytes_max(bytes_max);
        self.machine(host).files.set_full(bytes_max == Some(0));
    }

    /// Writes, syncs or both fail with an input/output error until this is lifted or the process dies.
    pub fn disk_errors(&mut self, host: &str, writes: bool, syncs: bool) {
        trace::event(host, "fault.disk_errors", &[u64::from(writes), u64::from(syncs)]);
        self.machine(host).disk.set_failing(writes, syncs);
    }

    /// The disk acknowledges syncs and forgets them with the power: a planted fault that checkers must notice.
    pub fn disk_lies(&mut self, host: &str, on: bool) {
        trace::event(host, "fault.disk_lies", &[u64::from(on)]);
        self.machine(host).disk.set_lying(on);
    }

    fn machine(&self, host: &str) -> &Machine {
        self.machines.get(host).unwrap_or_else(|| panic!("no machine {host} in this world"))
    }

    fn apply_links(&self) {
        self.ground.links.apply(&self.sim, &self.names());
    }

    /// Drops all tasks. From before the first destructor on, the process can't touch disk or files.
    fn end_process(&mut self, host: &str) {
        let machine = self.machines[host].clone();
        machine.alive.store(0, Ordering::Relaxed);
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

    /// A process that ended by itself: its tasks go, the kernel closes its connections.
    fn bury_exited(&mut self) {
        for host in self.names() {
            let machine = self.machines[&host].clone();
            if !self.is_running(&host) {
                continue;
            }
            let Some(exit) = machine.exit() else { continue };
            trace::note(&host, "exit", exit.as_ref().err().map_or("", String::as_str));
            self.end_process(&host);
            machine.disk.crash();
            self.ground.links.stopped(&host, true);
            self.power.insert(host.clone(), Power::Stopped);
            if let Some(after) = machine.restart_after {
                self.restarts.insert(host.clone(), self.now() + after);
            }
            self.exits.push((host, exit));
        }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now()).field("power", &self.power).finish_non_exhaustive()
    }
}
