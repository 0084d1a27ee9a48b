//! What a server's work and memory cost as the fleet grows: each size in a process of its own, so that memory is that of one.

mod fleet;
mod order;

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cara_core::State;
use cara_core::reconcile::{Settings, reconcile};
use cara_env::Env;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::measure::latency::Latency;
use crate::measure::process::Usage;
use crate::measure::require::short;
use crate::progress::bar;
use crate::report::{Plot, Report, Section, Series};
use fleet::{Made, app, labels};

/// Measured again until so much time has gone, so that short ones are measured often.
const LONG: Duration = Duration::from_millis(300);
/// And at least so often.
const TIMES_MIN: u32 = 5;

/// What one size costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    pub nodes: usize,
    /// Medians, in milliseconds.
    pub apply: f64,
    pub place: f64,
    pub reconcile: f64,
    pub snapshot: f64,
    pub load: f64,
    /// Of the state, in MiB.
    pub memory: f64,
}

/// Name, and where it is.
type Row = (&'static str, fn(&Costs) -> f64);
const ROWS: [Row; 6] = [
    ("an entry applied: a node's labels, ms", |costs| costs.apply),
    ("an entry applied: a workload created and placed, ms", |costs| costs.place),
    ("a reconcile pass when nothing changed, ms", |costs| costs.reconcile),
    ("the state written as a snapshot, ms", |costs| costs.snapshot),
    ("the state read from a snapshot, ms", |costs| costs.load),
    ("memory of the state, MiB", |costs| costs.memory),
];

/// Measures one size in this process.
#[expect(clippy::cast_precision_loss, reason = "KiB")]
pub fn measure_one(env: &Env, nodes: usize) -> Costs {
    let before = Usage::of(std::process::id()).rss_kib;
    let mut made = Made::with_nodes(nodes);
    let memory = Usage::of(std::process::id()).rss_kib.saturating_sub(before) as f64 / 1_024.0;
    let (heard, settings) = (made.heard(), Settings::default());
    let reconcile = median(env, || drop(black_box(reconcile(&made.state, &heard, &settings, 1_001_000))));
    let mut pairs = made.state.dump();
    let snapshot = median(env, || pairs = black_box(made.state.dump()));
    let load = median(env, || drop(black_box(State::load(pairs.iter().map(|(k, v)| (k, v))))));
    let mut number = 0;
    let apply = median(env, || {
        number += 1;
        let bytes = made.entry(&labels(usize::try_from(number).unwrap_or_default() % nodes, number));
        made.apply_bytes(&bytes);
    });
    let place = median(env, || {
        number += 1;
        let bytes = made.entry(&app(number));
        made.apply_bytes(&bytes);
    });
    Costs { nodes, apply, place, reconcile, snapshot, load, memory }
}

/// The median time in milliseconds. Times below a microsecond count as one.
fn median(env: &Env, mut work: impl FnMut()) -> f64 {
    let (mut all, began, mut times) = (Latency::default(), env.clock.monotonic(), 0);
    while times < TIMES_MIN || env.clock.monotonic().saturating_sub(began) < LONG {
        let from = env.clock.monotonic();
        work();
        all.record(env.clock.monotonic().saturating_sub(from));
        times += 1;
    }
    all.ms(50.0).unwrap_or_default()
}

/// Measures all sizes.
pub async fn run(sizes: &[usize], report: &mut Report) -> anyhow::Result<()> {
    let bar = bar("the state grows", sizes.len() as u64);
    let mut all = Vec::new();
    for nodes in sizes {
        let program = std::env::current_exe().context("can't find out where this program is")?;
        let mut command = Command::new(program);
        let output = command.args(["growth-one", &nodes.to_string()]).kill_on_drop(true).output().await?;
        if !output.status.success() {
            bail!("{nodes} nodes: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        all.push(serde_json::from_slice::<Costs>(&output.stdout)?);
        bar.at(all.len() as u64);
    }
    into(&all, report);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "numbers of nodes")]
fn into(all: &[Costs], report: &mut Report) {
    let mut rows = Vec::new();
    for (what, of) in ROWS {
        let points: Vec<(f64, f64)> = all.iter().map(|costs| (costs.nodes as f64, of(costs))).collect();
        let said = order::exponent(&points)
            .map_or_else(String::new, |exponent| format!("N^{exponent:.2}: {}", order::in_words(exponent)));
        let values: Vec<String> = all.iter().map(|costs| format!("{}: {}", costs.nodes, short(of(costs)))).collect();
        rows.push(vec![what.to_owned(), values.join("   "), said]);
        let (y, series) = ("cost", vec![Series { name: what.to_owned(), points }]);
        let title = format!("{what}, over nodes");
        report.plots.push(Plot { title, x: "nodes", y, log_x: true, log_y: true, series, ..Plot::default() });
    }
    report.section(Section {
        title: "Cost by number of nodes".into(),
        header: &["what", "nodes: cost", "order"],
        rows,
    });
    let at = |nodes: usize| all.iter().find(|costs| costs.nodes == nodes);
    report.figures.put("reconcile_10000_ms", at(10_000).map(|costs| costs.reconcile));
    report.note(
        "a cluster lets 10,000 nodes in; more are loaded as a snapshot would load them, to see the order of growth",
    );
}

#[cfg(test)]
mod tests {
    use super::fleet::{Made, app, id_of, labels};

    #[test]
    fn the_largest_fleet_by_default_has_room_for_what_is_timed() {
        let mut made = Made::with_nodes(100_000);
        assert_eq!(made.state.nodes().len(), 100_000);
        made.apply(&labels(99_999, 1));
        made.apply(&app(1));
        let workload = made.state.workloads().find(|workload| workload.name == "app-1").expect("it was let in");
        let node = workload.placement.as_ref().map(|placement| &placement.node).expect("it was placed");
        assert_eq!(*node, id_of(0), "those without a workload are cordoned");
    }
}
