//! What a scenario must be beside well-formed, and the names that it may use.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::kind::{Kind, Role};
use crate::problem::Problem;
use crate::scenario::{Cluster, FORMAT, Fault, Scenario};
use crate::target;
use crate::time::parse_duration;

/// The chaos points that a scenario can hang on.
pub const EVENTS: &[&str] = &[
    "raft.elected",
    "raft.deposed",
    "raft.vote_written",
    "raft.vote_saved",
    "raft.membership_changed",
    "raft.snapshot_built",
    "raft.snapshot_received",
    "raft.snapshot_written",
    "raft.snapshot_installed",
    "raft.purged",
    "read.asked",
    "server.opened",
    "join.key_saved",
    "join.sent",
    "join.answered",
    "join.saved",
    "join.signed",
    "leader.proven",
    "reconcile.write",
    "brake.on",
    "heartbeat.received",
    "heartbeat.sent",
    "session.asked",
    "session.opened",
    "session.closed",
    "node.offline",
    "node.online",
    "node.left",
    "node.never_connected",
    "enrol.signed",
    "enrol.key_saved",
    "enrol.checked",
    "enrol.sent",
    "enrol.answered",
    "enrol.refused",
    "enrol.saved",
    "enrol.done",
    "token.minted",
    "token.spent",
    "api_token.made",
    "api_token.revoked",
    "cert.renewed",
    "cert.revoked",
    "clone.refused",
    "renew.sent",
    "renew.answered",
    "renew.prev_saved",
    "renew.saved",
    "renew.done",
    "leaf.sent",
    "leaf.recorded",
    "leaf.answered",
    "leaf.saved",
    "bundle.saved",
    "bundle.recorded",
    "bundle.attested",
    "ca.made",
    "ca.phase",
    "seal.made",
    "seal.announced",
    "seal.pulled",
    "seal.saved",
    "seal.held",
    "seal.resealed",
    "seal.forgotten",
    "reenrol.saved",
    "reenrol.adopted",
    "workload.applied",
    "workload.deleted",
    "workload.placed",
    "workload.revoked",
    "ledger.saved",
    "ledger.refused",
    "plan.begun",
    "plan.executed",
    "container.created",
    "container.started",
    "container.stopped",
    "container.removed",
    "container.stop_confirmed",
    "volume.staged",
    "volume.discarded",
    "transfer.begun",
    "transfer.chunk",
    "transfer.differs",
    "transfer.round",
    "move.phase",
    "drain.started",
    "node.lost",
    "disk.sync",
    "disk.write",
];

/// The rules that `always` and `eventually_always` can name; `raft.*` names all that begin so.
pub const RULES: &[&str] = &[
    "core.invariants",
    "raft.*",
    "raft.election-safety",
    "raft.log-matching",
    "raft.leader-completeness",
    "raft.committed-immutable",
    "raft.state-hash",
    "raft.term-regressed",
    "raft.vote-regressed",
    "raft.applied",
    "linearizable",
    "watch.order",
    "copies.one",
    "fence",
    "offline.honest",
    "writes.durable",
    "tokens.once",
    "audit.complete",
    "converged",
    "orphans",
    "volumes.kept",
];

/// Nothing runs longer than this.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);

/// A third of it is left for the renewal, with an election or two.
const CERTIFICATE_LIFE_MIN: Duration = Duration::from_secs(20);

/// A link with less lets no handshake through in time, so it is as good as clogged.
const BYTES_PER_SECOND_MIN: u64 = 500;
/// A change needs several messages and a sync, each up to some tens of milliseconds.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// Reads a range of seeds, `1..=5` or `7`.
pub(crate) fn seeds(text: &str) -> Option<RangeInclusive<u64>> {
    match text.split_once("..=") {
        Some((from, to)) => {
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (from <= to).then_some(from..=to)
        }
        None => text.parse().ok().map(|one: u64| one..=one),
    }
}

/// The fault and the delay of an `after`.
pub(crate) fn after(text: &str) -> Option<(String, Duration)> {
    let (id, delay) = text.split_once('+').unwrap_or((text, "0s"));
    Some((id.trim().to_owned(), parse_duration(delay.trim()).ok()?))
}

/// Everything that is wrong, each with what to write instead.
pub(crate) fn problems(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = shape(scenario);
    let mut ids = BTreeSet::new();
    for (i, fault) in scenario.fault.iter().enumerate() {
        if !ids.insert(fault.id.clone()) {
            problems.push(Problem::new(format!("fault.{i}.id"), format!("two faults have the id {:?}", fault.id)));
        }
    }
    for (i, fault) in scenario.fault.iter().enumerate() {
        let of_fault = |(key, text): (&str, String)| {
            Problem::new(format!("fault.{i}.{key}"), format!("fault {:?}: {text}", fault.id))
        };
        problems.extend(fault_problems(fault, &ids).into_iter().map(of_fault));
    }
    for (i, expect) in scenario.expect.iter().enumerate() {
        for (list, rules) in [("always", &expect.always), ("eventually_always", &expect.eventually_always)] {
            for (nth, rule) in rules.iter().enumerate().filter(|(_, rule)| !RULES.contains(&rule.as_str())) {
                let text = format!("no rule {rule:?}; the rules are {}", RULES.join(", "));
                problems.push(Problem::new(format!("expect.{i}.{list}.{nth}"), text));
            }
        }
        for (nth, want) in expect.sometimes.iter().enumerate() {
            let (event, fault) = want.split_once('@').unwrap_or((want, ""));
            let (event, count) = event.split_once('*').unwrap_or((event, "1"));
            let is_no_count = count.parse::<u64>().map_or(true, |count| count == 0);
            let no_count = is_no_count.then(|| format!("sometimes {want:?}: {count:?} is no count, such as event*20"));
            let unknown = !fault.is_empty() && !ids.contains(fault);
            let unknown = unknown.then(|| format!("sometimes {want:?}: no fault has the id {fault:?}"));
            let texts = event_problem(event).into_iter().chain(unknown).chain(no_count);
            problems.extend(texts.map(|text| Problem::new(format!("expect.{i}.sometimes.{nth}"), text)));
        }
        for event in expect.at_most.keys() {
            let text = event_problem(event);
            problems.extend(text.map(|text| Problem::new(format!("expect.{i}.at_most.{event}"), text)));
        }
    }
    problems
}

/// What is wrong with the sizes of things.
fn shape(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut wrong = |is_wrong: bool, way: &str, text: String| {
        if is_wrong {
            problems.push(Problem::new(way, text));
        }
    };
    let Cluster { servers, spares, agents, old_servers, old_agents, clients, latency, clock_drift_ppm, .. } =
        scenario.cluster;
    let life = scenario.cluster.node_certificate_life.0;
    let (format, run) = (scenario.format, &scenario.run);
    wrong(format != FORMAT, "format", format!("format {format} is not known here; write format = {FORMAT}"));
    wrong(scenario.name.is_empty(), "name", "the scenario has no name; name it by the symptom".into());
    wrong(![3, 5].contains(&servers), "cluster.servers", format!("{servers} servers: there are 3 or 5"));
    wrong(spares > 2, "cluster.spares", format!("{spares} spares: at most 2"));
    wrong(!(2..=20).contains(&agents), "cluster.agents", format!("{agents} agents: there are 2 to 20"));
    wrong(old_servers > servers, "cluster.old_servers", format!("old_servers: there are only {servers} servers"));
    wrong(old_agents > agents, "cluster.old_agents", format!("old_agents: there are only {agents} agents"));
    wrong(!(1..=8).contains(&clients), "cluster.clients", format!("{clients} clients: there are 1 to 8"));
    wrong(clock_drift_ppm > 500, "cluster.clock_drift_ppm", "clock_drift_ppm is at most 500".into());
    let is_short = scenario.cluster.certificate_life.is_some_and(|life| life.0 < CERTIFICATE_LIFE_MIN);
    let life_text =
        format!("cluster.certificate_life is below {CERTIFICATE_LIFE_MIN:?}: an election takes most of what is left");
    wrong(is_short, "cluster.certificate_life", life_text);
    let life_text = "node_certificate_life is below a day: certificates begin an hour back".into();
    wrong(life < Duration::from_secs(24 * 3600), "cluster.node_certificate_life", life_text);
    let is_upside_down = latency.min_ms > latency.max_ms;
    wrong(is_upside_down, "cluster.latency", "cluster.latency: min_ms is more than max_ms".into());
    let is_too_fine = run.grain.0 < Duration::from_millis(1);
    wrong(is_too_fine, "run.grain", "run.grain is below 1ms, the least step of time".into());
    wrong(run.duration.0 > DURATION_MAX, "run.duration", "run.duration is more than a day".into());
    let seeds_text = format!("run.seeds {:?}: write 1..=5 or 7", run.seeds);
    wrong(seeds(&run.seeds).is_none(), "run.seeds", seeds_text);
    let racers = scenario.workload.racers;
    let is_race = (2..=50).contains(&racers);
    wrong(!is_race, "workload.racers", format!("{racers} racers: there are 2 to 50"));
    let is_hasty = scenario.workload.patience.bounds().0 < PATIENCE_MIN;
    let patience_text = format!("workload.patience is below {PATIENCE_MIN:?}: nobody could answer in time");
    wrong(is_hasty, "workload.patience", patience_text);
    problems
}

/// Parameters that this kind of fault doesn't look at: whoever wrote them meant something else.
fn stray(fault: &Fault) -> Vec<(&'static str, String)> {
    let kind = fault.what;
    let given = [
        ("to", fault.to.is_some(), kind.needs_to()),
        ("dir", fault.dir.is_some(), kind == Kind::Partition),
        ("add", fault.add.is_some(), kind.takes_add()),
        ("bytes_per_second", fault.bytes_per_second.is_some(), kind.takes_rate()),
        ("by", fault.by.is_some(), kind.takes_by()),
        ("ppm", fault.ppm.is_some(), kind.takes_ppm()),
    ];
    let stray = given.into_iter().filter(|(_, is_given, is_used)| *is_given && !is_used);
    stray.map(|(name, ..)| (name, format!("{kind} takes no {name}; leave it out"))).collect()
}

/// The phases of a move, as `move.phase:place`.
pub const PHASES: &[&str] =
    &["preflight", "stop_source", "copy_volumes", "place", "verify", "stop_old", "finalize", "done", "rollback"];

/// The phases of the CA's replacement, as `ca.phase:renew`; the last is the one in which it is over.
const CA_PHASES: &[&str] = &["distribute", "renew", "stable"];

fn event_problem(event: &str) -> Option<String> {
    for (point, phases) in [("move.phase:", PHASES), ("ca.phase:", CA_PHASES)] {
        if let Some(phase) = event.strip_prefix(point) {
            let unknown = !phases.contains(&phase);
            return unknown.then(|| format!("no phase {phase:?}; the phases are {}", phases.join(", ")));
        }
    }
    let unknown = !EVENTS.contains(&event);
    unknown.then(|| format!("no event {event:?}; the events are {}", EVENTS.join(", ")))
}

/// What is wrong with a fault, each with the key that it is about.
fn fault_problems(fault: &Fault, ids: &BTreeSet<String>) -> Vec<(&'static str, String)> {
    let mut problems = when_problems(fault, ids);
    problems.extend(target::check(&fault.target).err().map(|text| ("target", text)));
    problems.extend(fault.to.as_deref().and_then(|to| target::check(to).err()).map(|text| ("to", text)));
    if fault.what.needs_to() && fault.to.is_none() {
        problems.push(("to", format!("{} needs the other end: to = \"server:*\"", fault.what)));
    }
    problems.extend(stray(fault));
    let group = fault.target.split([':', '(']).next().unwrap_or_default();
    let is_server = ["server", "leader", "follower", "minority", "majority", "spare"].contains(&group);
    match fault.what.hits() {
        Role::Server if ["agent", "client"].contains(&group) => {
            problems.push(("target", format!("{} hits servers, and {:?} is none", fault.what, fault.target)));
        }
        Role::Agent if is_server || group == "client" => {
            problems.push(("target", format!("{} hits agents, and {:?} is none", fault.what, fault.target)));
        }
        Role::Server | Role::Agent | Role::Any => {}
    }
    if fault.ppm.is_some_and(|ppm| ppm.abs() > 500) {
        problems.push(("ppm", "ppm is at most 500 in both directions".to_owned()));
    }
    if fault.bytes_per_second.is_some_and(|rate| rate < BYTES_PER_SECOND_MIN) {
        let text = format!("bytes_per_second is at least {BYTES_PER_SECOND_MIN}; less than that is a clog");
        problems.push(("bytes_per_second", text));
    }
    if fault.by.as_ref().is_some_and(|by| by.is_empty() || by.len() > 2) {
        problems.push(("by", "by is one step or two: by = [\"-30s\", \"30s\"]".to_owned()));
    }
    problems
}

/// What is wrong with the moment of a fault.
fn when_problems(fault: &Fault, ids: &BTreeSet<String>) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    let triggers = [fault.at.is_some(), fault.every.is_some(), fault.after.is_some(), fault.on.is_some()];
    if triggers.iter().filter(|is_there| **is_there).count() != 1 {
        problems.push(("id", "exactly one of at, every, after and on says when".to_owned()));
    }
    if fault.every.is_some_and(|every| every.mean.0 < Duration::from_millis(10)) {
        problems.push(("every", "every.mean is below 10ms".to_owned()));
    }
    match fault.after.as_deref().map(after) {
        Some(None) => problems.push(("after", "after is a fault's id and a delay: after = \"freeze+2s\"".to_owned())),
        Some(Some((id, _))) if !ids.contains(&id) => {
            problems.push(("after", format!("after: no fault has the id {id:?}")));
        }
        Some(Some(_)) | None => {}
    }
    if let Some(on) = &fault.on {
        problems.extend(event_problem(&on.event).map(|text| ("on", text)));
        if on.nth == 0 {
            problems.push(("on", "on.nth counts from 1".to_owned()));
        }
        if let Some(within) = on.within.as_ref().filter(|within| !ids.contains(*within)) {
            problems.push(("on", format!("on.within: no fault has the id {within:?}")));
        }
    }
    problems
}
