//! Faults, drawn from the seed: when, which, whom, for how long. Every fault ends by itself.
//!
//! At most two faults are active at a time, so that the cluster has a chance to work in between; what two of them do to a
//! majority is part of the game. Safety is judged throughout, progress only after the last one is lifted.

use std::collections::BTreeMap;
use std::time::Duration;

use cara_env::Rng;
use cara_netsim::{Latency, SimRng, trace};

use crate::world::Cluster;

/// Active at the same time.
const ACTIVE_MAX: usize = 2;
/// A quarter of a disk stall or freeze is longer than an election, most are not.
const LASTS_MS: (u64, u64) = (300, 8_000);
/// Between the begin of one fault and the next.
const GAP_MS: (u64, u64) = (500, 4_000);
/// A slow disk syncs in this many microseconds.
const SLOW: Latency = Latency { min_us: 20_000, max_us: 400_000 };

/// Whom a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    Server,
    Any,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The process dies and starts again.
    Crash,
    /// The machine falls silent, loses what it did not sync, and starts again.
    PowerLoss,
    /// SIGSTOP, then SIGCONT.
    Freeze,
    /// Nothing reaches it, nothing leaves it.
    Isolate,
    /// One direction of one link is cut.
    OneWay,
    /// One link delays everything, as long as this lasts.
    Hold,
    /// Syncs take long.
    SlowDisk,
    /// Syncs don't end.
    StalledDisk,
    /// No room.
    FullDisk,
    /// A handful of task polls a tick.
    SlowCpu,
    /// The wall clock jumps, and jumps back.
    WallClock,
    /// Writes and syncs fail with an input/output error.
    DiskErrors,
    /// All servers lose power at the same moment.
    Blackout,
}

/// Each kind with whom it hits and its weight in the draw.
const KINDS: &[(Kind, Whom, u64)] = &[
    (Kind::Crash, Whom::Any, 4),
    (Kind::PowerLoss, Whom::Any, 3),
    (Kind::Freeze, Whom::Any, 4),
    (Kind::Isolate, Whom::Any, 4),
    (Kind::OneWay, Whom::Any, 2),
    (Kind::Hold, Whom::Any, 2),
    (Kind::SlowDisk, Whom::Server, 2),
    (Kind::StalledDisk, Whom::Server, 1),
    (Kind::FullDisk, Whom::Server, 1),
    (Kind::SlowCpu, Whom::Server, 1),
    (Kind::WallClock, Whom::Any, 1),
    (Kind::DiskErrors, Whom::Server, 1),
    (Kind::Blackout, Whom::Server, 1),
];

#[derive(Debug)]
struct Active {
    kind: Kind,
    host: String,
    /// The other end of a link; a wall clock's step.
    other: String,
    step_ms: i64,
    until: Duration,
}

/// The one who breaks things.
pub struct Nemesis {
    rng: SimRng,
    active: Vec<Active>,
    next: Duration,
    counts: BTreeMap<Kind, u64>,
}

impl Nemesis {
    /// Begins at `from`.
    pub fn new(seed: u64, from: Duration) -> Self {
        Self { rng: SimRng::new(seed, "nemesis"), active: Vec::new(), next: from, counts: BTreeMap::new() }
    }

    /// How often each kind was used.
    pub fn counts(&self) -> &BTreeMap<Kind, u64> {
        &self.counts
    }

    /// Ends faults whose time is over, and begins the next one when it is due.
    pub fn act(&mut self, cluster: &mut Cluster) {
        let now = cluster.world.now();
        let (over, going): (Vec<Active>, Vec<Active>) = self.active.drain(..).partition(|fault| fault.until <= now);
        self.active = going;
        over.into_iter().for_each(|fault| lift(cluster, &fault));
        if now >= self.next && self.active.len() < ACTIVE_MAX {
            self.next = now + Duration::from_millis(self.rng.between(GAP_MS.0, GAP_MS.1));
            self.begin(cluster, now);
        }
    }

    /// Lifts everything.
    pub fn heal(&mut self, cluster: &mut Cluster) {
        self.active.drain(..).for_each(|fault| lift(cluster, &fault));
        cluster.world.heal_network();
    }

    fn begin(&mut self, cluster: &mut Cluster, now: Duration) {
        let (kind, whom) = self.draw_kind();
        let Some(host) = self.draw_host(cluster, whom) else { return };
        self.begin_at(cluster, now, kind, host);
    }

    /// All servers lose power now, whatever the draw says.
    pub fn blackout(&mut self, cluster: &mut Cluster) {
        let now = cluster.world.now();
        let host = cluster.servers[0].clone();
        self.begin_at(cluster, now, Kind::Blackout, host);
    }

    fn begin_at(&mut self, cluster: &mut Cluster, now: Duration, kind: Kind, host: String) {
        let other = self.draw_other(cluster, &host);
        let lasts = Duration::from_millis(self.rng.between(LASTS_MS.0, LASTS_MS.1));
        let step_ms = self.rng.between(1_000, 30_000).cast_signed() * if self.rng.chance(50) { 1 } else { -1 };
        let fault = Active { kind, host, other, step_ms, until: now + lasts };
        trace::note(&fault.host, "nemesis", &format!("{kind:?} {} for {lasts:?}", fault.other));
        *self.counts.entry(kind).or_default() += 1;
        apply(cluster, &fault);
        self.active.push(fault);
    }

    fn draw_kind(&self) -> (Kind, Whom) {
        let total: u64 = KINDS.iter().map(|(_, _, weight)| weight).sum();
        let mut at = self.rng.below(total);
        for (kind, whom, weight) in KINDS {
            if at < *weight {
                return (*kind, *whom);
            }
            at -= weight;
        }
        unreachable!("the draw is below the sum of the weights")
    }

    /// A machine that no other fault has in hand. Of the servers the leader is hit every second time.
    fn draw_host(&self, cluster: &Cluster, whom: Whom) -> Option<String> {
        let free = |host: &&String| {
            cluster.world.is_running(host) && self.active.iter().all(|f| f.host != **host && f.other != **host)
        };
        let agent = whom == Whom::Any && self.rng.chance(25);
        let leader = cluster.shared.observed().leader().map(str::to_owned);
        if !agent && self.rng.chance(50) {
            return leader.filter(|leader| free(&leader));
        }
        let hosts: Vec<&String> = if agent { &cluster.agents } else { &cluster.servers }.iter().filter(free).collect();
        self.rng.pick(&hosts).map(|host| (*host).clone())
    }

    fn draw_other(&self, cluster: &Cluster, host: &str) -> String {
        let others: Vec<&String> = cluster.servers.iter().filter(|server| *server != host).collect();
        self.rng.pick(&others).map(|other| (*other).clone()).unwrap_or_default()
    }
}

fn apply(cluster: &mut Cluster, fault: &Active) {
    let (host, world) = (fault.host.as_str(), &mut cluster.world);
    match fault.kind {
        Kind::Crash => world.crash(host),
        Kind::PowerLoss => {
            world.power_loss(host);
            // Containers die with their machine.
            if let Some(index) = cluster.agents.iter().position(|agent| agent == host) {
                cluster.engines[index].exit_all();
            }
        }
        Kind::Freeze => world.freeze(host),
        Kind::Isolate => world.isolate(host, true),
        Kind::OneWay => world.cut(host, &fault.other, true),
        Kind::Hold => world.hold(host, &fault.other, true),
        Kind::SlowDisk => world.disk_latency(host, SLOW),
        Kind::StalledDisk => world.disk_stall(host, true),
        Kind::FullDisk => world.disk_room(host, Some(0)),
        Kind::SlowCpu => world.slow_cpu(host, Some(5)),
        Kind::WallClock => world.step_wall_clock(host, fault.step_ms),
        Kind::DiskErrors => world.disk_errors(host, true, true),
        Kind::Blackout => cluster.servers.iter().for_each(|server| world.power_loss(server)),
    }
}

fn lift(cluster: &mut Cluster, fault: &Active) {
    let (host, world) = (fault.host.as_str(), &mut cluster.world);
    match fault.kind {
        Kind::Crash | Kind::PowerLoss => world.restart(host),
        Kind::Freeze => world.thaw(host),
        Kind::Isolate => world.isolate(host, false),
        Kind::OneWay => world.cut(host, &fault.other, false),
        Kind::Hold => world.hold(host, &fault.other, false),
        Kind::SlowDisk => world.disk_latency(host, Latency::default()),
        Kind::StalledDisk => world.disk_stall(host, false),
        Kind::FullDisk => world.disk_room(host, None),
        Kind::SlowCpu => world.slow_cpu(host, None),
        Kind::WallClock => world.step_wall_clock(host, -fault.step_ms),
        Kind::DiskErrors => world.disk_errors(host, false, false),
        Kind::Blackout => cluster.servers.iter().for_each(|server| world.restart(server)),
    }
}
