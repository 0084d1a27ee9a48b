//! The matrix: every step in the life of machines and of the cluster, under every fault, on every role.
//!
//! A step is a chaos point. A cell is visited when a fault was installed exactly at its step, on a machine in its role.

use std::collections::BTreeSet;
use std::time::Duration;

use cara_scenario::{
    Cluster, Fault, Kind, On, OpKind, PlannedOp, RunSpec, Scenario, Span, SpanRange, Workload, parse_duration,
};

/// The four faults that stop a machine in different ways.
pub const FAULTS: [Kind; 4] = [Kind::Crash, Kind::PowerLoss, Kind::Freeze, Kind::Isolate];
/// On whom.
pub const ROLES: [&str; 3] = ["leader", "follower", "agent"];
/// Each fault has a window of its own: long enough for the fault, and for the cluster to get over it.
const WINDOW: u64 = 13;
/// The first window.
const FIRST: u64 = 1;
/// A fault lasts so long: longer than an election.
const LASTS: &str = "2500ms";

/// What must go before, so that a step happens at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Clients' usual work.
    Work,
    /// A leader that dies.
    Election,
    /// A follower that falls behind.
    Laggard,
    /// A node that falls silent.
    Silence,
}

/// The steps of machines' and the cluster's life.
const STEPS: &[(&str, Needs)] = &[
    ("enrol.key_saved", Needs::Work),
    ("enrol.sent", Needs::Work),
    ("enrol.signed", Needs::Work),
    ("enrol.answered", Needs::Work),
    ("enrol.saved", Needs::Work),
    ("enrol.done", Needs::Work),
    ("token.minted", Needs::Work),
    ("token.spent", Needs::Work),
    ("session.opened", Needs::Work),
    ("renew.sent", Needs::Work),
    ("cert.renewed", Needs::Work),
    ("renew.answered", Needs::Work),
    ("renew.done", Needs::Work),
    ("workload.applied", Needs::Work),
    ("workload.deleted", Needs::Work),
    ("reconcile.write", Needs::Silence),
    ("node.offline", Needs::Silence),
    ("ledger.saved", Needs::Work),
    ("plan.begun", Needs::Work),
    ("container.created", Needs::Work),
    ("container.started", Needs::Work),
    ("container.stopped", Needs::Work),
    ("plan.executed", Needs::Work),
    ("raft.vote_written", Needs::Election),
    ("raft.vote_saved", Needs::Election),
    ("raft.elected", Needs::Election),
    ("leader.proven", Needs::Election),
    ("raft.snapshot_built", Needs::Work),
    ("raft.purged", Needs::Work),
    ("raft.snapshot_received", Needs::Laggard),
    ("raft.snapshot_written", Needs::Laggard),
    ("raft.snapshot_installed", Needs::Laggard),
];

/// Step, fault, role.
pub type Cell = (String, String, String);

/// All cells that must be visited.
pub fn required() -> BTreeSet<Cell> {
    let mut cells = BTreeSet::new();
    for (step, _) in STEPS {
        for fault in FAULTS {
            for role in ROLES {
                cells.insert(((*step).to_owned(), fault.name().to_owned(), role.to_owned()));
            }
        }
    }
    cells
}

/// The scenarios that visit them: one for each step and role, with a window for each fault.
pub fn scenarios() -> Vec<Scenario> {
    STEPS.iter().flat_map(|(step, needs)| ROLES.map(|role| scenario(step, *needs, role))).collect()
}

fn scenario(step: &str, needs: Needs, role: &str) -> Scenario {
    let mut fault = Vec::new();
    for (i, kind) in FAULTS.into_iter().enumerate() {
        let from = FIRST + WINDOW * i as u64;
        fault.extend(prelude(needs, from));
        fault.push(at_step(step, kind, role, from));
    }
    let duration = FIRST + WINDOW * FAULTS.len() as u64;
    Scenario {
        format: cara_scenario::FORMAT,
        name: format!("matrix-{}-{role}", step.replace(['.', '_'], "-")),
        about: String::new(),
        tags: Vec::new(),
        seen_at: Vec::new(),
        cluster: Cluster { agents: 4, clients: 4, ..Cluster::default() },
        workload: Workload { ops: Some(ops(duration)), watchers: 0, ..Workload::default() },
        run: RunSpec {
            duration: seconds(duration),
            grain: Span(Duration::from_millis(5)),
            seeds: "1".into(),
            ..RunSpec::default()
        },
        fault,
        expect: Vec::new(),
    }
}

fn seconds(seconds: u64) -> Span {
    Span(Duration::from_secs(seconds))
}

/// A fault of the kind at the step, in its window.
fn at_step(step: &str, kind: Kind, role: &str, from: u64) -> Fault {
    let is_of_agents = ["enrol.", "renew.", "ledger.", "plan.", "container."].iter().any(|part| step.starts_with(part))
        && step != "enrol.signed";
    let target = match role {
        "leader" => "leader",
        "follower" => "follower:any",
        _ if is_of_agents => "$event",
        _ => "agent:any",
    };
    let on = On { event: step.to_owned(), nth: 1, from: Some(seconds(from)), detail: None, within: None, delay: None };
    Fault { on: Some(on), ..fault(&format!("{kind}-{from}"), kind, target, LASTS) }
}

fn prelude(needs: Needs, from: u64) -> Option<Fault> {
    let at = Some(SpanRange::Fixed(seconds(from)));
    let before =
        |kind, target: &str, lasts| Some(Fault { at, ..fault(&format!("before-{from}"), kind, target, lasts) });
    match needs {
        Needs::Work => None,
        Needs::Election => before(Kind::Crash, "leader", "1s"),
        Needs::Laggard => before(Kind::Isolate, "follower:any", "6s"),
        Needs::Silence => before(Kind::Freeze, "agent:any", "8s"),
    }
}

fn fault(id: &str, kind: Kind, target: &str, lasts: &str) -> Fault {
    let lasts = Span(parse_duration(lasts).expect("a constant that is a duration"));
    Fault::new(id, kind, target, SpanRange::Fixed(lasts))
}

/// Work of which every step has something in each window: creates, deletes, new specs, a machine that joins, a
/// certificate that is renewed.
fn ops(duration: u64) -> Vec<PlannedOp> {
    let mut ops = Vec::new();
    let mut push = |client: usize, at_ms: u64, kind, subject| {
        let nth = ops.len() as u64 + 1;
        let at = Span(Duration::from_millis(at_ms));
        ops.push(PlannedOp { client: format!("client{client}"), nth, at, kind, subject });
    };
    for second in 0..duration {
        let at = second * 1_000;
        // Writes make the log grow, so that snapshots are built and followers fall behind.
        for quarter in 0..5 {
            push(1, at + quarter * 200, OpKind::Write, second * 5 + quarter);
            push(2, at + quarter * 200 + 90, OpKind::Write, second * 5 + quarter + 1);
        }
        push(3, at + 150, OpKind::Create, 0);
        if second % 3 == 2 {
            push(3, at + 500, OpKind::Delete, 0);
            push(3, at + 700, OpKind::Spec, 0);
        }
        if second % WINDOW == FIRST {
            push(4, at + 300, OpKind::Enrol, 0);
            push(4, at + 400, OpKind::Renew, second / WINDOW);
        }
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_matrix_can_be_read_and_aims_at_each_fault_once() {
        let scenarios = scenarios();
        assert_eq!(scenarios.len() * FAULTS.len(), required().len());
        for scenario in scenarios {
            let again =
                Scenario::parse(&scenario.to_toml()).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            let aimed: BTreeSet<Kind> =
                again.fault.iter().filter(|fault| fault.on.is_some()).map(|fault| fault.what).collect();
            assert_eq!(aimed, BTreeSet::from(FAULTS), "{}", scenario.name);
        }
    }
}
