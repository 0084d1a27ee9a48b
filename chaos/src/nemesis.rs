//! Carries out what the schedule decides: faults begin, and are lifted, on the machines of the world.
//!
//! When which fault hits whom is the schedule's (`cara-scenario`, pure); here is only how.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_agent::runtime::memory::Failing;
use cara_env::Cf;
use cara_netsim::{Latency, Reached, Snapshot, Spread, World};
use cara_scenario::{Action, Installed, Kind, Plan, Schedule, View, What};

use crate::order::Order;
use crate::world::Cluster;

/// How long a process has to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// A slow processor polls so many tasks a tick.
const SLOW_POLLS: u64 = 5;
/// A slow volume takes so much longer.
const SLOW_VOLUME: Duration = Duration::from_secs(4);

/// Chaos points at which an agent is one end of a move.
const OF_MOVES: [&str; 3] = ["move.", "transfer.", "container.stop_confirmed"];

/// The one who breaks things.
pub struct Nemesis {
    schedule: Schedule,
    /// Copies of data that a machine shall get back later.
    copies: BTreeMap<String, Snapshot>,
    /// Machines whose data a fault has damaged on purpose.
    damaged: BTreeSet<String>,
    /// Machines whose data were wiped or replaced, until somebody asks.
    replaced: Vec<String>,
    /// Fault ids that began (`true`) or ended, until somebody asks.
    changes: Vec<(String, bool)>,
    /// Step, fault and role of each fault that hung on a chaos point.
    cells: BTreeSet<(String, String, String)>,
    clones: u64,
    /// Source and target of the move that took a step last.
    move_ends: Option<(String, String)>,
}

/// The cluster, as the schedule wants to see it.
struct Seen<'a> {
    cluster: &'a Cluster,
    leader: Option<&'a str>,
    move_ends: Option<&'a (String, String)>,
}

impl View for Seen<'_> {
    fn leader(&self) -> Option<String> {
        self.leader.map(str::to_owned)
    }

    fn servers(&self) -> Vec<String> {
        self.cluster.servers.clone()
    }

    fn agents(&self) -> Vec<String> {
        self.cluster.agents.iter().filter(|agent| !self.cluster.excused.contains(*agent)).cloned().collect()
    }

    fn clients(&self) -> Vec<String> {
        self.cluster.clients.clone()
    }

    fn spares(&self) -> Vec<String> {
        self.cluster.spares.clone()
    }

    fn move_ends(&self) -> Option<(String, String)> {
        self.move_ends.cloned()
    }

    fn is_running(&self, host: &str) -> bool {
        self.cluster.world.is_running(host)
    }
}

impl Nemesis {
    /// Nothing has begun yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            schedule: Schedule::new(plan),
            copies: BTreeMap::new(),
            damaged: BTreeSet::new(),
            replaced: Vec::new(),
            changes: Vec::new(),
            cells: BTreeSet::new(),
            clones: 0,
            move_ends: None,
        }
    }

    /// The chaos points that faults hang on.
    pub fn events(&self) -> BTreeSet<String> {
        self.schedule.events()
    }

    /// The work begins now.
    pub fn begin_at(&mut self, now: Duration) {
        self.schedule.begin(now);
    }

    /// A chaos point was reached.
    pub fn reached(&mut self, now: Duration, reached: &Reached) {
        if reached.point == "move.phase" {
            let end = |key| reached.word(key).map(str::to_owned);
            self.move_ends = end("source").zip(end("target"));
        }
        self.schedule.reached(now, &reached.host, reached.point, &reached.detail);
    }

    /// Does what is due. `leader` was elected last.
    pub fn act(&mut self, cluster: &mut Cluster, leader: Option<&str>) {
        self.keep_copies(cluster);
        let now = cluster.world.now();
        let actions = self.schedule.due(now, &Seen { cluster, leader, move_ends: self.move_ends.as_ref() });
        for action in actions {
            self.note(&action, leader);
            self.carry_out(cluster, &action);
        }
    }

    /// Lifts everything.
    pub fn heal(&mut self, cluster: &mut Cluster) {
        let now = cluster.world.now();
        for action in self.schedule.heal(now) {
            self.carry_out(cluster, &action);
        }
        cluster.world.heal_network();
    }

    fn note(&mut self, action: &Action, leader: Option<&str>) {
        self.changes.push((action.id.clone(), action.begins));
        let ledger = self.schedule.ledger().iter().rev();
        let event = ledger.clone().find(|entry| entry.id == action.id).and_then(|entry| entry.event.clone());
        if let Some(event) = event.filter(|_| action.begins) {
            for host in &action.hosts {
                let is_of_move = OF_MOVES.iter().any(|part| event.starts_with(part));
                let ends = self.move_ends.as_ref().filter(|_| is_of_move);
                let role = if Some(host.as_str()) == leader {
                    "leader"
                } else if host.starts_with('s') {
                    "follower"
                } else if host.starts_with("client") {
                    "client"
                } else if ends.is_some_and(|(source, _)| source == host) {
                    "source"
                } else if ends.is_some_and(|(_, target)| target == host) {
                    "target"
                } else {
                    "agent"
                };
                self.cells.insert((event.clone(), action.what.kind.name().to_owned(), role.to_owned()));
            }
        }
    }

    /// A machine that shall come back with old data needs a copy of them, made before the fault begins: a few seconds
    /// of history are gone then.
    fn keep_copies(&mut self, cluster: &Cluster) {
        const EVERY_MS: u128 = 3_000;
        let tick = cluster.world.tick().as_millis().max(1);
        if !self.schedule.has(Kind::OldData) || cluster.world.now().as_millis() % EVERY_MS >= tick {
            return;
        }
        for agent in &cluster.agents {
            self.copies.insert(agent.clone(), cluster.world.snapshot(agent));
        }
    }

    fn carry_out(&mut self, cluster: &mut Cluster, action: &Action) {
        let What { kind, .. } = action.what;
        match kind {
            Kind::Ring => cluster.world.ring(&action.hosts, action.begins),
            Kind::Bridge => bridge(&mut cluster.world, &action.hosts, action.begins),
            // Time that has passed does not come back.
            Kind::TimePasses if action.begins => cluster.pass_time(action.what.step_ms),
            Kind::TimePasses => {}
            _ => {
                for host in &action.hosts {
                    match action.what.kind {
                        kind if kind.needs_to() => link(&mut cluster.world, host, action),
                        _ if action.begins => self.begin(cluster, host, &action.what),
                        _ => self.end(cluster, host, &action.what),
                    }
                }
            }
        }
    }

    fn begin(&mut self, cluster: &mut Cluster, host: &str, what: &What) {
        let world = &mut cluster.world;
        match what.kind {
            Kind::Crash => world.crash(host),
            Kind::Stop => world.stop(host, GRACE),
            Kind::Upgrade => {
                world.stop(host, GRACE);
                cluster.upgrade(host);
            }
            Kind::PowerLoss => self.power_loss(cluster, host),
            Kind::TornTail => {
                world.tear_last(host);
                self.power_loss(cluster, host);
            }
            Kind::Freeze => world.freeze(host),
            Kind::SlowCpu => world.slow_cpu(host, Some(SLOW_POLLS)),
            Kind::SlowCopy => {
                let (min, max) = what.add;
                world.slow_kernel(host, Some(Spread::Uniform { min, max }));
            }
            Kind::Isolate => world.isolate(host, true),
            Kind::ClockStep => world.step_wall_clock(host, what.step_ms),
            Kind::ClockDrift => {
                let own = cluster.drift_of(host);
                cluster.world.drift(host, own + what.ppm);
            }
            Kind::SlowDisk => {
                let us = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
                world.disk_latency(host, Latency { min_us: us(what.add.0), max_us: us(what.add.1) });
            }
            Kind::StallDisk => world.disk_stall(host, true),
            Kind::DiskFull => world.disk_room(host, Some(0)),
            Kind::WriteError => world.disk_errors(host, true, false),
            Kind::SyncError => world.disk_errors(host, false, true),
            Kind::BitFlip => {
                self.damaged.insert(host.to_owned());
                self.power_loss(cluster, host);
                cluster.world.flip_bit(host, Cf::Log, 0);
            }
            Kind::LyingSync => {
                self.damaged.insert(host.to_owned());
                world.disk_lies(host, true);
            }
            Kind::OldData | Kind::Wipe => self.power_loss(cluster, host),
            Kind::Clone => self.clone_identity(cluster, host),
            Kind::AddServer => {
                cluster.spares.retain(|spare| spare != host);
                cluster.add_server(host);
                cluster.servers.push(host.to_owned());
            }
            Kind::RemoveServer => cluster.shared.order(Order::RemoveServer(host.to_owned())),
            Kind::Revoke => cluster.shared.order(Order::Revoke(host.to_owned())),
            Kind::Reenrol => cluster.shared.order(Order::Reenrol(host.to_owned())),
            Kind::Rejoin => cluster.shared.order(Order::DeleteNode(host.to_owned())),
            kind => on_engine(cluster, host, kind, true),
        }
    }

    fn end(&mut self, cluster: &mut Cluster, host: &str, what: &What) {
        let world = &mut cluster.world;
        match what.kind {
            Kind::Crash | Kind::PowerLoss | Kind::TornTail | Kind::BitFlip => world.restart(host),
            Kind::Stop | Kind::Upgrade => {
                world.crash(host); // It had its time to end by itself.
                world.restart(host);
            }
            Kind::Freeze => world.thaw(host),
            Kind::SlowCpu => world.slow_cpu(host, None),
            Kind::SlowCopy => world.slow_kernel(host, None),
            Kind::Isolate => world.isolate(host, false),
            Kind::ClockStep => world.step_wall_clock(host, -what.step_ms),
            Kind::ClockDrift => {
                let own = cluster.drift_of(host);
                cluster.world.drift(host, own);
            }
            Kind::SlowDisk => world.disk_latency(host, Latency::default()),
            Kind::StallDisk => world.disk_stall(host, false),
            Kind::DiskFull => world.disk_room(host, None),
            Kind::WriteError | Kind::SyncError => world.disk_errors(host, false, false),
            Kind::LyingSync => world.disk_lies(host, false),
            Kind::OldData => {
                if let Some(copy) = self.copies.remove(host).filter(|_| !world.is_running(host)) {
                    world.restore(host, &copy);
                    self.replaced.push(host.to_owned());
                }
                world.restart(host);
            }
            Kind::Wipe => {
                if !world.is_running(host) {
                    world.wipe(host);
                    self.replaced.push(host.to_owned());
                    cluster.replace_server(host);
                }
                cluster.world.restart(host);
            }
            Kind::Clone => cluster.switch_off_clone_of(host),
            Kind::Revoke => cluster.shared.order(Order::Reenrol(host.to_owned())),
            Kind::AddServer | Kind::RemoveServer | Kind::Reenrol | Kind::Rejoin | Kind::TimePasses => {}
            kind => on_engine(cluster, host, kind, false),
        }
    }

    /// Containers die with their machine.
    fn power_loss(&mut self, cluster: &mut Cluster, host: &str) {
        cluster.world.power_loss(host);
        if let Some(engine) = cluster.engines.get(host) {
            engine.exit_all();
        }
    }

    fn clone_identity(&mut self, cluster: &mut Cluster, host: &str) {
        self.clones += 1;
        cluster.add_clone(host, &format!("{host}-clone{}", self.clones));
    }

    /// Machines whose data were wiped or replaced since the last call.
    pub fn take_replaced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.replaced)
    }

    /// Faults that began (`true`) or ended since the last call.
    pub fn take_changes(&mut self) -> Vec<(String, bool)> {
        std::mem::take(&mut self.changes)
    }

    /// Has a fault damaged the machine's data on purpose?
    pub fn has_damaged(&self, host: &str) -> bool {
        self.damaged.contains(host)
    }

    /// What was tried, and what came of it.
    pub fn ledger(&self) -> &[Installed] {
        self.schedule.ledger()
    }

    /// Faults that the scenario asks for and that never began, with the reason.
    pub fn missed(&self) -> Vec<String> {
        self.schedule.missed()
    }

    /// The same for people.
    pub fn decisions(&self) -> String {
        self.schedule.decisions()
    }

    /// How often each kind was installed.
    pub fn counts(&self) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<Kind, u64> = BTreeMap::new();
        for entry in self.ledger().iter().filter(|entry| entry.skipped.is_none()) {
            *counts.entry(entry.kind).or_default() += 1;
        }
        counts.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect()
    }

    /// Step, fault and role of each fault that hung on a chaos point and was installed.
    pub fn cells(&self) -> Vec<(String, String, String)> {
        self.cells.iter().cloned().collect()
    }
}

/// A fault of the links between a machine and the other ends.
fn link(world: &mut World, host: &str, action: &Action) {
    let on = action.begins;
    for other in action.to.iter().filter(|other| *other != host) {
        match action.what.kind {
            Kind::Partition => {
                world.cut(host, other, on);
                if !action.what.is_oneway {
                    world.cut(other, host, on);
                }
            }
            Kind::Clog => world.clog(host, other, on),
            Kind::Hold => world.hold(host, other, on),
            Kind::SlowLink => {
                let (min, max) = action.what.add;
                world.slow_link(host, other, Spread::Uniform { min, max }, on);
            }
            Kind::NarrowLink => world.limit_link(host, other, action.what.bytes_per_second, on),
            Kind::Reset if on => {
                world.reset_connections(host, other);
            }
            _ => {}
        }
    }
}

/// Two halves that see only the one in the middle.
fn bridge(world: &mut World, hosts: &[String], on: bool) {
    let middle = hosts.len() / 2;
    if hosts.len() >= 3 {
        world.bridge(&hosts[..middle], &hosts[middle..=middle], &hosts[middle + 1..], on);
    }
}

/// A fault of a node's container engine.
fn on_engine(cluster: &Cluster, host: &str, kind: Kind, on: bool) {
    let Some(engine) = cluster.engines.get(host) else { return };
    let failing = |cause: &str| if on { Failing::always(cause) } else { Failing::default() };
    engine.fault(|faults| match kind {
        Kind::StartFails => faults.fail_starts = failing("exec format error"),
        Kind::StartHangs => faults.hang_starts = on,
        Kind::ImageMissing => faults.no_images = on,
        Kind::EngineAway => faults.hang = on,
        Kind::EngineDown => faults.away = on,
        Kind::VolumeError => faults.fail_volumes = on,
        Kind::VolumeReadError => faults.fail_reads = on,
        Kind::SlowVolume => faults.slow_volumes = if on { SLOW_VOLUME } else { Duration::ZERO },
        _ => {}
    });
    if kind == Kind::ContainerExits && on {
        engine.exit_all();
    }
}
