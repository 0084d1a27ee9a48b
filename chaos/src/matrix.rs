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
/// The same for moves, which take their time.
const MOVE_WINDOW: u64 = 16;
/// The same for steps that need a follower that falls behind: it is cut off for [`LAG`] first.
const LAG_WINDOW: u64 = 18;
/// The same for steps of the CA's replacement, in which every machine gets another certificate.
const CA_WINDOW: u64 = 30;
/// Servers' certificates live so long where they shall come due in each window.
const CERTIFICATE_LIFE: Duration = Duration::from_secs(20);
/// So long a follower is cut off, in which far more is written than the entries that the log keeps after a snapshot
/// ([`crate::process`]): it can't be brought up with entries alone.
const LAG: &str = "11s";
/// So long a client waits meanwhile: with more patience all of them would hang on the server that is cut off, and there
/// would be little to miss.
const LAG_PATIENCE: Span = Span(Duration::from_secs(1));
/// The first window.
const FIRST: u64 = 1;
/// A fault lasts so long: longer than an election.
const LASTS: &str = "2500ms";

/// What must go before, so that a step happens at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Clients' usual work.
    Work,
    /// A leader that is cut off: one that dies is replaced before anything could happen to it.
    Election,
    /// A follower that falls behind.
    Laggard,
    /// A node that falls silent.
    Silence,
    /// Servers' certificates that come due all the time.
    Renewal,
    /// A replacement of the sealing key.
    SealingKey,
    /// A replacement of the CA.
    Ca,
}

impl Needs {
    /// Seconds from one fault to the next.
    fn window(self) -> u64 {
        match self {
            Self::Laggard => LAG_WINDOW,
            Self::Ca => CA_WINDOW,
            Self::Work | Self::Election | Self::Silence | Self::Renewal | Self::SealingKey => WINDOW,
        }
    }

    /// Faults that are tried in one run. Clients follow the CA that they began with only over a few replacements.
    fn faults_per_run(self) -> usize {
        match self {
            Self::Ca => 2,
            Self::Work | Self::Election | Self::Laggard | Self::Silence | Self::Renewal | Self::SealingKey => {
                FAULTS.len()
            }
        }
    }

    /// What is done in each window beside the usual work.
    fn asks(self) -> Option<OpKind> {
        match self {
            Self::Ca => Some(OpKind::RotateCa),
            Self::SealingKey => Some(OpKind::RotateSealingKey),
            Self::Work | Self::Election | Self::Laggard | Self::Silence | Self::Renewal => None,
        }
    }
}

/// The steps of machines' and the cluster's life.
const STEPS: &[(&str, Needs)] = &[
    ("enrol.key_saved", Needs::Work),
    ("enrol.checked", Needs::Work),
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
    ("renew.prev_saved", Needs::Work),
    ("renew.saved", Needs::Work),
    ("renew.done", Needs::Work),
    ("leaf.sent", Needs::Renewal),
    ("leaf.recorded", Needs::Renewal),
    ("leaf.answered", Needs::Renewal),
    ("leaf.saved", Needs::Renewal),
    ("ca.made", Needs::Ca),
    ("ca.phase:distribute", Needs::Ca),
    ("bundle.saved", Needs::Ca),
    ("bundle.attested", Needs::Ca),
    ("bundle.recorded", Needs::Ca),
    ("ca.phase:renew", Needs::Ca),
    ("ca.phase:stable", Needs::Ca),
    ("seal.made", Needs::SealingKey),
    ("seal.announced", Needs::SealingKey),
    ("seal.pulled", Needs::SealingKey),
    ("seal.saved", Needs::SealingKey),
    ("seal.held", Needs::SealingKey),
    ("seal.resealed", Needs::SealingKey),
    ("seal.forgotten", Needs::SealingKey),
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

/// Of a move: on whom.
pub const MOVE_ROLES: [&str; 5] = ["leader", "follower", "source", "target", "client"];
/// The steps of a move without data, and of one with a volume.
const STATELESS: &[&str] = &["preflight", "place", "verify", "stop_old", "finalize", "rollback"];
const STATEFUL: &[&str] = &[
    "preflight",
    "transfer.begun",
    "transfer.round",
    "stop_source",
    "container.stop_confirmed",
    "copy_volumes",
    "place",
    "verify",
    "stop_old",
    "finalize",
    "rollback",
];

/// Which part of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The steps of moves, with and without data.
    Move,
    /// Enrolment, renewal, sessions, elections, snapshots, what an agent does with an order.
    Lifecycle,
}

/// One scenario: a step, and a role on which all faults that suit it are tried there.
pub struct Row {
    /// What is run.
    pub scenario: Scenario,
    /// The cells that it must visit.
    pub cells: BTreeSet<Cell>,
    /// Where it belongs.
    pub part: Part,
}

/// Everything that must be run.
pub fn rows() -> Vec<Row> {
    let life = STEPS.iter().flat_map(|(step, needs)| {
        let rows = move |role| {
            FAULTS.chunks(needs.faults_per_run()).map(move |faults| Row {
                scenario: scenario(step, *needs, role, faults),
                cells: faults.iter().map(|fault| cell(step, *fault, role)).collect(),
                part: Part::Lifecycle,
            })
        };
        ROLES.into_iter().flat_map(rows)
    });
    let shapes = [("stateless", STATELESS), ("stateful", STATEFUL)];
    let moves = shapes.into_iter().flat_map(|(shape, steps)| {
        steps.iter().flat_map(move |step| MOVE_ROLES.map(|role| move_row(shape, step, role)))
    });
    life.chain(moves).collect()
}

fn cell(step: &str, fault: Kind, role: &str) -> Cell {
    (step.to_owned(), fault.name().to_owned(), role.to_owned())
}

/// Step, fault, role.
pub type Cell = (String, String, String);

fn scenario(step: &str, needs: Needs, role: &str, faults: &[Kind]) -> Scenario {
    let mut fault = Vec::new();
    for (i, &kind) in faults.iter().enumerate() {
        let from = FIRST + needs.window() * i as u64;
        fault.extend(prelude(needs, from));
        fault.push(at_step(step, needs, kind, role, from));
    }
    let duration = FIRST + needs.window() * faults.len() as u64;
    // Not all faults fit into one run: its name says which.
    let part = if faults.len() < FAULTS.len() { format!("-{}", faults[0].name()) } else { String::new() };
    let name = format!("matrix-{step}-{role}{part}").replace(['.', '_', ':'], "-");
    let bare = bare(name, duration, fault);
    let certificate_life = (needs == Needs::Renewal).then_some(Span(CERTIFICATE_LIFE));
    let mut workload = Workload { ops: Some(ops(duration, needs)), watchers: 0, ..Workload::default() };
    if needs == Needs::Laggard {
        workload.patience = SpanRange::Fixed(LAG_PATIENCE);
    }
    Scenario { workload, cluster: Cluster { certificate_life, ..bare.cluster.clone() }, ..bare }
}

/// A scenario of the matrix before anybody does anything.
fn bare(name: String, duration: u64, fault: Vec<Fault>) -> Scenario {
    Scenario {
        format: cara_scenario::FORMAT,
        name,
        about: String::new(),
        tags: Vec::new(),
        seen_at: Vec::new(),
        cluster: Cluster { agents: 4, clients: 6, ..Cluster::default() },
        workload: Workload::default(),
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

/// A step of a move, under the faults that suit the role: a client that dies asks nothing any more.
fn move_row(shape: &str, step: &str, role: &str) -> Row {
    let kinds: &[Kind] = if role == "client" { &[Kind::Freeze, Kind::Isolate] } else { &FAULTS };
    let mut fault = Vec::new();
    let mut cells = BTreeSet::new();
    for (i, kind) in kinds.iter().enumerate() {
        let from = FIRST + MOVE_WINDOW * i as u64;
        let on = move_step(shape, step, from);
        if step == "rollback" {
            // Without its image the target can't get ready.
            let on = move_step(shape, "preflight", from);
            let broken = fault_on(on, &format!("before-{from}"), Kind::ImageMissing, "agent:move.target");
            fault.push(Fault { lasts: SpanRange::Fixed(seconds(MOVE_WINDOW / 2)), ..broken });
        }
        cells.insert(cell(&on.step(), *kind, role));
        fault.push(fault_on(on, &format!("{kind}-{from}"), *kind, move_target(role)));
    }
    let duration = FIRST + MOVE_WINDOW * kinds.len() as u64;
    let made = if shape == "stateful" { OpKind::Project } else { OpKind::Create };
    let name = format!("matrix-move-{shape}-{}-{role}", step.replace(['.', '_'], "-"));
    let scenario = Scenario {
        workload: Workload { ops: Some(move_ops(duration, made)), watchers: 0, ..Workload::default() },
        ..bare(name, duration, fault)
    };
    Row { scenario, cells, part: Part::Move }
}

/// A phase of a move of this shape, or what an agent does for it.
fn move_step(shape: &str, step: &str, from: u64) -> On {
    let is_point = step.contains('.');
    let event = if is_point { step.to_owned() } else { format!("move.phase:{step}") };
    let detail = (!is_point).then(|| format!("shape={shape}"));
    On { event, nth: 1, from: Some(seconds(from)), detail, within: None, delay: None }
}

fn move_target(role: &str) -> &'static str {
    match role {
        "leader" => "leader",
        "follower" => "follower:any",
        "source" => "agent:move.source",
        "target" => "agent:move.target",
        _ => "client:client3",
    }
}

fn fault_on(on: On, id: &str, kind: Kind, target: &str) -> Fault {
    Fault { on: Some(on), ..fault(id, kind, target, LASTS) }
}

/// One client makes two workloads and moves them without a pause; another one writes, so that the log grows.
fn move_ops(duration: u64, made: OpKind) -> Vec<PlannedOp> {
    let mut ops = Vec::new();
    let mut push = |client: usize, at_ms: u64, kind, subject| {
        let nth = ops.len() as u64 + 1;
        let at = Span(Duration::from_millis(at_ms));
        ops.push(PlannedOp { client: format!("client{client}"), nth, at, kind, subject });
    };
    push(3, 0, made, 0);
    push(3, 100, made, 0);
    for second in 0..duration {
        push(3, second * 1_000 + 500, OpKind::Move, second);
        push(1, second * 1_000, OpKind::Write, second);
        push(2, second * 1_000 + 400, OpKind::Read, second);
    }
    ops
}

fn seconds(seconds: u64) -> Span {
    Span(Duration::from_secs(seconds))
}

/// A fault of the kind at the step, in its window.
fn at_step(step: &str, needs: Needs, kind: Kind, role: &str, from: u64) -> Fault {
    let is_of_agents = ["enrol.", "renew.", "ledger.", "plan.", "container."].iter().any(|part| step.starts_with(part))
        && step != "enrol.signed";
    let target = match role {
        "leader" => "leader",
        // The one that has fallen behind, not the other one.
        "follower" if needs == Needs::Laggard => "$event",
        "follower" => "follower:any",
        _ if is_of_agents => "$event",
        _ => "agent:any",
    };
    let on = On { event: step.to_owned(), nth: 1, from: Some(seconds(from)), detail: None, within: None, delay: None };
    fault_on(on, &format!("{kind}-{from}"), kind, target)
}

fn prelude(needs: Needs, from: u64) -> Option<Fault> {
    let at = Some(SpanRange::Fixed(seconds(from)));
    let before =
        |kind, target: &str, lasts| Some(Fault { at, ..fault(&format!("before-{from}"), kind, target, lasts) });
    match needs {
        Needs::Work | Needs::Renewal | Needs::SealingKey | Needs::Ca => None,
        Needs::Election => {
            before(Kind::Partition, "leader", "2s").map(|cut| Fault { to: Some("follower:*".into()), ..cut })
        }
        Needs::Laggard => before(Kind::Isolate, "follower:any", LAG),
        Needs::Silence => before(Kind::Freeze, "agent:any", "8s"),
    }
}

fn fault(id: &str, kind: Kind, target: &str, lasts: &str) -> Fault {
    let lasts = Span(parse_duration(lasts).expect("a constant that is a duration"));
    Fault::new(id, kind, target, SpanRange::Fixed(lasts))
}

/// Work of which every step has something in each window: creates, deletes, new specs, a machine that joins, a
/// certificate that is renewed.
fn ops(duration: u64, needs: Needs) -> Vec<PlannedOp> {
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
            for (writer, late) in [(1, 0), (2, 90), (5, 40), (6, 140)] {
                push(writer, at + quarter * 200 + late, OpKind::Write, second * 5 + quarter + late % 4);
            }
        }
        push(3, at + 150, OpKind::Create, 0);
        if second % 3 == 2 {
            push(3, at + 500, OpKind::Delete, 0);
            push(3, at + 700, OpKind::Spec, 0);
        }
        if second % WINDOW == FIRST {
            push(4, at + 300, OpKind::Enrol, 0);
            // It sets a machine's clock weeks ahead, and until that is over the machine holds the CA's replacement back.
            if needs != Needs::Ca {
                push(4, at + 400, OpKind::Renew, second / WINDOW);
            }
        }
        if let Some(asked) = needs.asks().filter(|_| second % needs.window() == FIRST) {
            push(3, at + 600, asked, 0);
        }
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_matrix_can_be_read_and_aims_at_each_of_its_cells_once() {
        for row in rows() {
            let name = &row.scenario.name;
            let again = Scenario::parse(&row.scenario.to_toml()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let on = again.fault.iter().filter(|fault| !fault.id.starts_with("before"));
            let aimed: Vec<_> = on.filter_map(|fault| Some((fault.on.as_ref()?.step(), fault.what.name()))).collect();
            let wanted: Vec<_> = row.cells.iter().map(|(step, fault, _)| (step.clone(), fault.as_str())).collect();
            assert_eq!(BTreeSet::from_iter(aimed.clone()), BTreeSet::from_iter(wanted), "{name}");
            assert_eq!(aimed.len(), row.cells.len(), "{name}");
        }
    }
}
