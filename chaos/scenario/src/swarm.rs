//! The scenario that a seed makes out of nothing: which faults are possible in this run, how often, in which cluster.

use std::time::Duration;

use crate::kind::Kind;
use crate::rng::Stream;
use crate::scenario::{Cluster, Every, FORMAT, Fault, Latency, RunSpec, Scenario, Workload};
use crate::time::{Span, SpanRange};

/// From one fault to the next, over all kinds.
const GAP_MS: (u64, u64) = (700, 2_000);
/// A quarter of the faults lasts longer than an election, most don't.
const LASTS_MS: (u64, u64) = (300, 6_000);
/// So many at a time, so that the cluster has a chance to work in between.
const ACTIVE_MAX: usize = 2;
/// In so many of a hundred runs a kind of fault is possible.
const KIND_IS_ON: u64 = 55;

/// In so many of a hundred runs some machines begin with the release before this one.
const HAS_OLD: u64 = 12;
/// In so many of a hundred runs all clients wait as long as a server may take.
const PATIENT: u64 = 70;
/// Of the clients of the other runs: from about the time of an election to longer than most faults last.
const PATIENCE_MS: (u64, u64) = (400, 4_000);

/// Kinds with their weight among the others and whom they hit. The leader is hit every second time.
const KINDS: &[(Kind, u64, Whom)] = &[
    (Kind::Crash, 4, Whom::Any),
    (Kind::Stop, 2, Whom::Any),
    (Kind::PowerLoss, 3, Whom::Any),
    (Kind::Freeze, 4, Whom::Any),
    (Kind::Isolate, 4, Whom::Any),
    (Kind::Partition, 3, Whom::Any),
    (Kind::Ring, 1, Whom::AllServers),
    (Kind::Bridge, 1, Whom::AllServers),
    (Kind::Clog, 2, Whom::Any),
    (Kind::Hold, 2, Whom::Any),
    (Kind::SlowLink, 2, Whom::Any),
    (Kind::Reset, 2, Whom::Any),
    (Kind::ClockStep, 2, Whom::Any),
    (Kind::ClockDrift, 1, Whom::Any),
    (Kind::SlowCpu, 1, Whom::Servers),
    (Kind::SlowDisk, 2, Whom::Servers),
    (Kind::StallDisk, 2, Whom::Servers),
    (Kind::DiskFull, 1, Whom::Servers),
    (Kind::WriteError, 1, Whom::Servers),
    (Kind::SyncError, 1, Whom::Servers),
    (Kind::TornTail, 1, Whom::Servers),
    (Kind::StartFails, 1, Whom::Agents),
    (Kind::StartHangs, 1, Whom::Agents),
    (Kind::ContainerExits, 1, Whom::Agents),
    (Kind::ImageMissing, 1, Whom::Agents),
    (Kind::EngineAway, 1, Whom::Agents),
    (Kind::EngineDown, 1, Whom::Agents),
    (Kind::VolumeError, 1, Whom::Agents),
    (Kind::VolumeReadError, 1, Whom::Agents),
    (Kind::SlowCopy, 1, Whom::Agents),
    (Kind::NarrowLink, 1, Whom::Any),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    Any,
    Servers,
    AllServers,
    Agents,
}

/// What a seed makes out of nothing.
pub fn swarm(seed: u64) -> Scenario {
    let mut rng = Stream::new(seed, "swarm");
    let cluster = with_versions(seed, cluster(&mut rng));
    let mut on: Vec<&(Kind, u64, Whom)> = KINDS.iter().filter(|_| rng.chance(KIND_IS_ON)).collect();
    if on.is_empty() {
        on.extend(KINDS.first());
    }
    let gap = rng.between(GAP_MS.0, GAP_MS.1);
    let total: u64 = on.iter().map(|(_, weight, _)| weight).sum();
    let mut fault: Vec<Fault> = on.into_iter().map(|kind| again_and_again(*kind, gap * total, &mut rng)).collect();
    fault.extend(blackout(&mut rng));
    fault.extend(membership(&cluster, &mut rng));
    fault.extend(upgrades(seed, &cluster));
    let watchers = 1 + usize::from(rng.chance(40));
    let workload = Workload { watchers, patience: patience(seed), ..Workload::default() };
    Scenario {
        format: FORMAT,
        name: "swarm".into(),
        about: String::new(),
        tags: Vec::new(),
        seen_at: Vec::new(),
        cluster,
        workload,
        run: RunSpec { swarm: true, active_max: Some(ACTIVE_MAX), ..RunSpec::default() },
        fault,
        expect: Vec::new(),
    }
}

/// In some runs clients don't wait for who is slow. A stream of its own: the faults of a seed stay the ones that it had.
fn patience(seed: u64) -> SpanRange {
    let mut rng = Stream::new(seed, "swarm/patience");
    if rng.chance(PATIENT) { Workload::default().patience } else { between(PATIENCE_MS) }
}

fn cluster(rng: &mut Stream) -> Cluster {
    let servers = if rng.chance(15) { 5 } else { 3 };
    let spares = if servers == 3 && rng.chance(20) { rng.between(1, 2) } else { 0 };
    let agents = if rng.chance(5) { rng.between(7, 20) } else { rng.between(2, 5) };
    let mean_ms = rng.chance(60).then(|| rng.between(2, 6));
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Cluster {
        servers,
        spares: count(spares),
        agents: count(agents),
        old_servers: 0,
        old_agents: 0,
        clients: count(rng.between(2, 4)),
        latency: Latency { min_ms: 1, mean_ms, max_ms: rng.between(8, 25) },
        node_certificate_life: Cluster::default().node_certificate_life,
        clock_offset_ms: if rng.chance(30) { rng.between(10, 2_000) } else { 0 },
        clock_drift_ppm: if rng.chance(30) { rng.between(10, 200) } else { 0 },
        certificate_life: None,
    }
}

/// In some runs machines begin with the release before this one.
fn with_versions(seed: u64, cluster: Cluster) -> Cluster {
    let mut rng = Stream::new(seed, "swarm/versions");
    if !rng.chance(HAS_OLD) {
        return cluster;
    }
    let mut some = |of: usize, least: u64| usize::try_from(rng.between(least, of as u64)).unwrap_or(of);
    let (old_servers, old_agents) = (some(cluster.servers, 1), some(cluster.agents, 0));
    Cluster { old_servers, old_agents, ..cluster }
}

/// Most old machines are upgraded while the world runs, one now, one then.
fn upgrades(seed: u64, cluster: &Cluster) -> Vec<Fault> {
    let mut rng = Stream::new(seed, "swarm/upgrades");
    let servers = (1..=cluster.old_servers).map(|i| (format!("upgrade-s{i}"), format!("server:s{i}")));
    let agents = (1..=cluster.old_agents).map(|i| (format!("upgrade-n{i}"), format!("agent:n{i}")));
    let mut faults = Vec::new();
    for (id, target) in servers.chain(agents) {
        if rng.chance(85) {
            let at = Some(between((2_000, 20_000)));
            let lasts = between((500, 3_000));
            faults.push(Fault { id, at, lasts, ..fault(Kind::Upgrade, &target) });
        }
    }
    faults
}

/// One kind of fault, so often that all kinds together come once a gap.
fn again_and_again((kind, weight, whom): (Kind, u64, Whom), total_ms: u64, rng: &mut Stream) -> Fault {
    let target = match whom {
        Whom::AllServers => "server:*",
        Whom::Agents => "agent:any",
        Whom::Servers => *rng.pick(&["leader", "server:any", "follower:any"]).unwrap_or(&"leader"),
        Whom::Any => *rng.pick(&["leader", "leader", "server:any", "follower:any", "agent:any"]).unwrap_or(&"leader"),
    };
    let to = kind.needs_to().then(|| {
        let ends = ["server:any", "server:*", "follower:*", "agent:*", "client:*"];
        (*rng.pick(&ends).unwrap_or(&"server:any")).to_owned()
    });
    let mean = Duration::from_millis((total_ms / weight).max(500));
    let oneway = kind == Kind::Partition && rng.chance(50);
    Fault {
        every: Some(Every { mean: Span(mean) }),
        to,
        dir: oneway.then_some(crate::scenario::Dir::Oneway),
        lasts: between(LASTS_MS),
        ..fault(kind, target)
    }
}

/// In some runs all servers lose power at the same moment.
fn blackout(rng: &mut Stream) -> Option<Fault> {
    rng.chance(20).then(|| Fault {
        id: "blackout".into(),
        at: Some(between((5_000, 25_000))),
        lasts: between((300, 3_000)),
        ..fault(Kind::PowerLoss, "server:*")
    })
}

/// Spares join, and in some of these runs a server leaves again.
fn membership(cluster: &Cluster, rng: &mut Stream) -> Vec<Fault> {
    let mut faults = Vec::new();
    for i in 0..cluster.spares {
        let from = 2_000 + 6_000 * i as u64;
        let at = Some(between((from, from + 8_000)));
        faults.push(Fault { id: format!("grow-{}", i + 1), at, ..fault(Kind::AddServer, "spare") });
    }
    if cluster.spares > 0 && rng.chance(50) {
        let at = Some(between((18_000, 26_000)));
        let target = *rng.pick(&["leader", "follower:any"]).unwrap_or(&"leader");
        faults.push(Fault { id: "leave".into(), at, ..fault(Kind::RemoveServer, target) });
    }
    faults
}

fn between((from, to): (u64, u64)) -> SpanRange {
    SpanRange::Between([Span(Duration::from_millis(from)), Span(Duration::from_millis(to))])
}

fn fault(kind: Kind, target: &str) -> Fault {
    Fault::new(kind.name(), kind, target, between((1_000, 3_000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    #[test]
    fn every_seed_makes_a_scenario_that_can_be_written_and_read() {
        let (mut kinds, mut five, mut spares) = (std::collections::BTreeSet::new(), 0, 0);
        for seed in 1..=200 {
            let scenario = swarm(seed);
            let again = Scenario::parse(&scenario.to_toml()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(again, scenario);
            let plan = plan(&scenario, seed);
            assert!(!plan.ops.is_empty());
            kinds.extend(plan.faults.iter().map(|fault| fault.what.kind));
            five += usize::from(scenario.cluster.servers == 5);
            spares += usize::from(scenario.cluster.spares > 0);
        }
        assert!(kinds.len() >= KINDS.len(), "only {kinds:?}");
        assert!(five > 10 && spares > 10, "{five} of five, {spares} with spares");
    }

    #[test]
    fn faults_are_neither_rare_nor_everywhere() {
        let counts = (1..=100).map(|seed| plan(&swarm(seed), seed).faults.len());
        let average = counts.sum::<usize>() / 100;
        assert!((12..=60).contains(&average), "{average} faults in 30 s");
    }
}
