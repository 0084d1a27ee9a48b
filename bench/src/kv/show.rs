//! What the comparison puts into the report: rows, ratios and plots.

use super::level::Call;
use super::recovery::Recovery;
use super::rounds::{Rounds, Side};
use crate::measure::require::short;
use crate::measure::steady::median;
use crate::report::{Plot, Report, Section, Series};

/// All loads: a table, a curve of each, and how writes grow with the clients.
pub fn loads_into(all: &[Rounds], report: &mut Report) {
    let mut rows = Vec::new();
    for rounds in all {
        let (ours, peer) = (rounds.ours(), rounds.peer());
        figures_of(rounds, &ours, peer.as_ref(), report);
        let sides = [("caravanserai", Some(&ours)), ("etcd", peer.as_ref())];
        rows.extend(sides.into_iter().filter_map(|(name, side)| Some(row_of(rounds, name, side?))));
        for (name, side) in sides.into_iter().filter_map(|(name, side)| Some((name, side?))) {
            if side.failed > 0 {
                report.note(format!(
                    "{} calls of {name} failed ({}): {}",
                    side.failed,
                    rounds.load.name(),
                    side.failure
                ));
            }
        }
        rounds.steadiness().into_iter().for_each(|said| report.note(said));
        let curve = |name: &str, side: &Side| Series { name: name.to_owned(), points: side.latency.curve() };
        let series = [Some(curve("caravanserai", &ours)), peer.as_ref().map(|side| curve("etcd", side))];
        report.plots.push(Plot {
            title: format!("Latency of {}", rounds.load.name()),
            x: "ms",
            y: "share that took less",
            log_x: true,
            series: series.into_iter().flatten().collect(),
            ..Plot::default()
        });
    }
    report.section(Section {
        title: "Durable writes of 256 bytes and linearizable reads, medians of the rounds that count".into(),
        header: &[
            "call",
            "clients",
            "asked per s",
            "side",
            "per s",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "server CPU ms",
            "failed",
            "disk syncs per s",
        ],
        rows,
    });
    report.plots.push(growth(all));
    report.note(
        "a write is PUT /api/v1/nodes/NODE/labels (five labels, 256 bytes) over HTTP/2 and TLS beside a Put of 256 bytes over \
         gRPC; a read is GET of the same labels beside a linearizable Range; clients share at most 100 connections, spread over \
         all servers, on both sides",
    );
}

fn row_of(rounds: &Rounds, name: &str, side: &Side) -> Vec<String> {
    let number = |value: Option<f64>| value.map(short).unwrap_or_default();
    vec![
        if rounds.load.call == Call::Write { "write" } else { "read" }.to_owned(),
        rounds.load.clients.to_string(),
        number(rounds.load.per_s),
        name.to_owned(),
        number(side.per_s),
        number(side.latency.ms(50.0)),
        number(side.latency.ms(99.0)),
        number(side.latency.ms(99.9)),
        number(side.cpu_ms),
        side.failed.to_string(),
        number(rounds.disk_per_s()),
    ]
}

/// Ratios only of rounds in which the peer was steady.
fn figures_of(rounds: &Rounds, ours: &Side, peer: Option<&Side>, report: &mut Report) {
    let figures = &mut report.figures;
    let counts = rounds.from.is_some();
    let own = ours.per_s.filter(|_| counts || peer.is_none());
    let ratio = |value: fn(&Side) -> Option<f64>| Some(value(ours)? / value(peer?)?).filter(|_| counts);
    if rounds.load.call == Call::Read {
        figures.put("read_per_s", own);
        if peer.is_some() {
            figures.put("read_linearizable", ratio(|side| side.per_s));
            figures.put("read_latency", ratio(|side| side.latency.ms(50.0)));
        }
        return;
    }
    if rounds.load.per_s.is_some() {
        figures.put("paced_per_s", own);
        if peer.is_some() {
            figures.put("paced_p50", ratio(|side| side.latency.ms(50.0)));
            figures.put("paced_p99", ratio(|side| side.latency.ms(99.0)));
        }
        return;
    }
    let clients = rounds.load.clients;
    figures.put(format!("write_{clients}_per_s"), own);
    if peer.is_some() {
        figures.put(format!("write_{clients}"), ratio(|side| side.per_s));
        figures.put(format!("write_{clients}_latency"), ratio(|side| side.latency.ms(50.0)));
        figures.put(format!("write_{clients}_p99"), ratio(|side| side.latency.ms(99.0)));
        figures.put(format!("write_{clients}_cpu"), ratio(|side| side.cpu_ms));
    }
}

/// Writes a second over the number of clients.
fn growth(all: &[Rounds]) -> Plot {
    #[expect(clippy::cast_precision_loss, reason = "a number of clients")]
    let line = |name: &str, of: fn(&Rounds) -> Option<f64>| Series {
        name: name.to_owned(),
        points: all
            .iter()
            .filter(|rounds| rounds.load.call == Call::Write && rounds.load.per_s.is_none())
            .filter_map(|rounds| Some((rounds.load.clients as f64, of(rounds)?)))
            .collect(),
    };
    let series = vec![
        line("caravanserai", |rounds| rounds.ours().per_s),
        line("etcd", |rounds| rounds.peer()?.per_s),
        line("the disk's syncs", Rounds::disk_per_s),
    ];
    let title = "Durable writes a second".to_owned();
    Plot { title, x: "clients", y: "per second", log_x: true, log_y: true, series, ..Plot::default() }
}

/// One kind of time of both sides.
pub fn times_into(
    name: &str,
    (own, theirs): (&[Recovery], &[Recovery]),
    of: fn(&Recovery) -> f64,
    report: &mut Report,
) {
    let own: Vec<f64> = own.iter().map(of).collect();
    let theirs: Vec<f64> = theirs.iter().map(of).collect();
    let middle = median(&own);
    report.figures.put(format!("{name}_s"), middle);
    if !theirs.is_empty() {
        report.figures.put(name, middle.zip(median(&theirs)).map(|(own, theirs)| own / theirs));
    }
    let row = |name: &str, times: &[f64]| {
        let of = |pick: fn(f64, f64) -> f64| times.iter().copied().reduce(pick).map(short).unwrap_or_default();
        let middle = median(times).map(short).unwrap_or_default();
        vec![name.to_owned(), times.len().to_string(), middle, of(f64::min), of(f64::max)]
    };
    let mut rows = vec![row("caravanserai", &own)];
    if !theirs.is_empty() {
        rows.push(row("etcd", &theirs));
    }
    let title = match name {
        "recovery" => "SIGKILL of the leader until a write is acknowledged",
        _ => "Start of the killed server until a linearizable read through it",
    };
    let header = &["side", "kills", "median s", "shortest s", "longest s"];
    report.section(Section { title: title.into(), header, rows });
}
