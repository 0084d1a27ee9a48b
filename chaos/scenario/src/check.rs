//! What a scenario must be beside well-formed, and the names that it may use.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::kind::{Kind, Role};
use crate::scenario::{FORMAT, Fault, Scenario};
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
    "session.opened",
    "session.closed",
    "node.offline",
    "node.online",
    "node.left",
    "enrol.signed",
    "enrol.key_saved",
    "enrol.sent",
    "enrol.answered",
    "enrol.refused",
    "enrol.saved",
    "enrol.done",
    "token.minted",
    "token.spent",
    "cert.renewed",
    "renew.sent",
    "renew.answered",
    "renew.saved",
    "renew.done",
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
pub(crate) fn problems(scenario: &Scenario) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wrong = |is_wrong: bool, text: String| {
        if is_wrong {
            problems.push(text);
        }
    };
    let cluster = &scenario.cluster;
    wrong(scenario.format != FORMAT, format!("format {} is not known here; write format = {FORMAT}", scenario.format));
    wrong(scenario.name.is_empty(), "the scenario has no name; name it by the symptom".into());
    wrong(![3, 5].contains(&cluster.servers), format!("{} servers: there are 3 or 5", cluster.servers));
    wrong(cluster.spares > 2, format!("{} spares: at most 2", cluster.spares));
    wrong(!(2..=20).contains(&cluster.agents), format!("{} agents: there are 2 to 20", cluster.agents));
    wrong(!(1..=8).contains(&cluster.clients), format!("{} clients: there are 1 to 8", cluster.clients));
    wrong(cluster.clock_drift_ppm > 500, "clock_drift_ppm is at most 500".into());
    let latency = cluster.latency;
    wrong(latency.min_ms > latency.max_ms, "cluster.latency: min_ms is more than max_ms".into());
    wrong(scenario.run.grain.0 < Duration::from_millis(1), "run.grain is below 1ms, the least step of time".into());
    wrong(scenario.run.duration.0 > DURATION_MAX, "run.duration is more than a day".into());
    wrong(seeds(&scenario.run.seeds).is_none(), format!("run.seeds {:?}: write 1..=5 or 7", scenario.run.seeds));
    let patience = scenario.workload.patience.bounds().0;
    wrong(patience < PATIENCE_MIN, format!("workload.patience is below {PATIENCE_MIN:?}: nobody could answer in time"));
    let mut ids = BTreeSet::new();
    for fault in &scenario.fault {
        let repeated = !ids.insert(fault.id.clone());
        wrong(repeated, format!("two faults have the id {:?}", fault.id));
    }
    for fault in &scenario.fault {
        problems.extend(fault_problems(fault, &ids).into_iter().map(|text| format!("fault {:?}: {text}", fault.id)));
    }
    for expect in &scenario.expect {
        for rule in expect.always.iter().chain(&expect.eventually_always) {
            if !RULES.contains(&rule.as_str()) {
                problems.push(format!("no rule {rule:?}; the rules are {}", RULES.join(", ")));
            }
        }
        for want in &expect.sometimes {
            let (event, fault) = want.split_once('@').unwrap_or((want, ""));
            problems.extend(event_problem(event));
            if !fault.is_empty() && !ids.contains(fault) {
                problems.push(format!("sometimes {want:?}: no fault has the id {fault:?}"));
            }
        }
    }
    problems
}

/// Parameters that this kind of fault doesn't look at: whoever wrote them meant something else.
fn stray(fault: &Fault) -> Vec<String> {
    let kind = fault.what;
    let given = [
        ("to", fault.to.is_some(), kind.needs_to()),
        ("dir", fault.dir.is_some(), kind == Kind::Partition),
        ("add", fault.add.is_some(), kind.takes_add()),
        ("by", fault.by.is_some(), kind.takes_by()),
        ("ppm", fault.ppm.is_some(), kind.takes_ppm()),
    ];
    let stray = given.into_iter().filter(|(_, is_given, is_used)| *is_given && !is_used);
    stray.map(|(name, ..)| format!("{kind} takes no {name}; leave it out")).collect()
}

/// The phases of a move, as `move.phase:place`.
pub const PHASES: &[&str] =
    &["preflight", "stop_source", "copy_volumes", "place", "verify", "stop_old", "finalize", "done", "rollback"];

fn event_problem(event: &str) -> Option<String> {
    if let Some(phase) = event.strip_prefix("move.phase:") {
        let unknown = !PHASES.contains(&phase);
        return unknown.then(|| format!("no phase {phase:?}; the phases are {}", PHASES.join(", ")));
    }
    let unknown = !EVENTS.contains(&event);
    unknown.then(|| format!("no event {event:?}; the events are {}", EVENTS.join(", ")))
}

fn fault_problems(fault: &Fault, ids: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let triggers = [fault.at.is_some(), fault.every.is_some(), fault.after.is_some(), fault.on.is_some()];
    if triggers.iter().filter(|is_there| **is_there).count() != 1 {
        problems.push("exactly one of at, every, after and on says when".to_owned());
    }
    problems.extend(target::check(&fault.target).err());
    problems.extend(fault.to.as_deref().and_then(|to| target::check(to).err()));
    if fault.what.needs_to() && fault.to.is_none() {
        problems.push(format!("{} needs the other end: to = \"server:*\"", fault.what));
    }
    if fault.every.is_some_and(|every| every.mean.0 < Duration::from_millis(10)) {
        problems.push("every.mean is below 10ms".to_owned());
    }
    match fault.after.as_deref().map(after) {
        Some(None) => problems.push("after is a fault's id and a delay: after = \"freeze+2s\"".to_owned()),
        Some(Some((id, _))) if !ids.contains(&id) => problems.push(format!("after: no fault has the id {id:?}")),
        _ => {}
    }
    if let Some(on) = &fault.on {
        problems.extend(event_problem(&on.event));
        if on.nth == 0 {
            problems.push("on.nth counts from 1".to_owned());
        }
        if let Some(within) = on.within.as_ref().filter(|within| !ids.contains(*within)) {
            problems.push(format!("on.within: no fault has the id {within:?}"));
        }
    }
    problems.extend(stray(fault));
    let group = fault.target.split([':', '(']).next().unwrap_or_default();
    let is_server = ["server", "leader", "follower", "minority", "majority", "spare"].contains(&group);
    match fault.what.hits() {
        Role::Server if ["agent", "client"].contains(&group) => {
            problems.push(format!("{} hits servers, and {:?} is none", fault.what, fault.target));
        }
        Role::Agent if is_server || group == "client" => {
            problems.push(format!("{} hits agents, and {:?} is none", fault.what, fault.target));
        }
        _ => {}
    }
    if fault.ppm.is_some_and(|ppm| ppm.abs() > 500) {
        problems.push("ppm is at most 500 in both directions".to_owned());
    }
    if fault.by.as_ref().is_some_and(|by| by.is_empty() || by.len() > 2) {
        problems.push("by is one step or two: by = [\"-30s\", \"30s\"]".to_owned());
    }
    problems
}
