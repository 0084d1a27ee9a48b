//! The whole comparison, and what it puts into the report.

use std::time::Duration;

use cara_env::Env;

use super::etcd::EtcdServers;
use super::level::Call;
use super::ours::OurServers;
use super::peer::Peer;
use super::recovery::{self, Recovery};
use super::rounds::{Pace, Rounds, Side};
use crate::measure::disk;
use crate::measure::process::{Usage, raise_open_files};
use crate::measure::require::short;
use crate::measure::steady::median;
use crate::progress::bar;
use crate::report::{Plot, Report, Section, Series};
use crate::target::Target;

/// How long the disk is measured at the beginning.
const DISK: Duration = Duration::from_secs(1);
/// Before the first round: elections and set-up are over.
const CALM: Duration = Duration::from_secs(1);

/// What to compare.
#[derive(Debug, Clone)]
pub struct Options {
    /// With whom; none = measure ourselves only.
    pub with_etcd: bool,
    pub clients: Vec<usize>,
    pub readers: usize,
    pub pace: Pace,
    pub kills: usize,
}

/// Measures, and stops what was started, also when something fails.
pub async fn run(env: &Env, target: Target, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    if let Err(problem) = raise_open_files(2_000) {
        report.note(problem);
    }
    let mut ours = OurServers::new(env, target).await?;
    let outcome = match options.with_etcd {
        false => measure(env, &mut ours, None, options, report).await,
        true => match EtcdServers::start(env, ours.servers(), ours.folder()).await {
            Ok(mut etcd) => {
                report.note(format!(
                    "the peer is {}, with its defaults, without TLS; ours has TLS",
                    etcd.version().await?
                ));
                let outcome = measure(env, &mut ours, Some(&mut etcd), options, report).await;
                etcd.stop().await;
                outcome
            }
            Err(error) => Err(error),
        },
    };
    ours.stop().await;
    outcome
}

async fn measure(
    env: &Env,
    ours: &mut OurServers,
    mut etcd: Option<&mut EtcdServers>,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.disk(&disk::probe(env, ours.folder(), DISK).await?);
    let keys = options.clients.iter().copied().chain([options.readers, 1]).max().unwrap_or(1);
    ours.prepare(keys).await?;
    if let Some(etcd) = &mut etcd {
        etcd.prepare(keys).await?;
    }
    env.clock.sleep(CALM).await;
    let (_, term) = ours.leader().await?;
    let loads = options.clients.iter().map(|clients| (Call::Write, *clients)).chain([(Call::Read, options.readers)]);
    let mut all = Vec::new();
    for (call, clients) in loads.filter(|(_, clients)| *clients > 0) {
        let what = if call == Call::Write { "durable writes" } else { "linearizable reads" };
        let bar = bar(&format!("{what}, {clients} clients"), options.pace.rounds_max() as u64);
        let peers = (&*ours as &dyn Peer, etcd.as_deref().map(|etcd| etcd as &dyn Peer));
        all.push(Rounds::run(env, peers, (call, clients), options.pace, &bar).await?);
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of terms")]
    report.figures.put("spurious_elections", Some((ours.leader().await?.1 - term) as f64));
    loads_into(&all, report);
    memory_into(ours, etcd.as_deref(), report);
    recovery_into(env, ours, etcd, options.kills, report).await
}

fn loads_into(all: &[Rounds], report: &mut Report) {
    let mut rows = Vec::new();
    for rounds in all {
        let (ours, peer) = (rounds.ours(), rounds.peer());
        figures_of(rounds, &ours, peer.as_ref(), report);
        let sides = [("caravanserai", Some(&ours)), ("etcd", peer.as_ref())];
        rows.extend(sides.into_iter().filter_map(|(name, side)| Some(row_of(rounds, name, side?))));
        for (name, side) in sides.into_iter().filter_map(|(name, side)| Some((name, side?))) {
            if side.failed > 0 {
                report.note(format!(
                    "{} calls of {name} failed with {} clients: {}",
                    side.failed, rounds.clients, side.failure
                ));
            }
        }
        rounds.steadiness().into_iter().for_each(|said| report.note(said));
        let word = if rounds.call == Call::Write { "writes" } else { "reads" };
        let curve = |name: &str, side: &Side| Series { name: name.to_owned(), points: side.latency.curve() };
        let series = [Some(curve("caravanserai", &ours)), peer.as_ref().map(|side| curve("etcd", side))];
        report.plots.push(Plot {
            title: format!("Latency of {word}, {} clients", rounds.clients),
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
        if rounds.call == Call::Write { "write" } else { "read" }.to_owned(),
        rounds.clients.to_string(),
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
    if rounds.call == Call::Read {
        figures.put("read_per_s", own);
        if peer.is_some() {
            figures.put("read_linearizable", ratio(|side| side.per_s));
            figures.put("read_latency", ratio(|side| side.latency.ms(50.0)));
        }
        return;
    }
    let clients = rounds.clients;
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
            .filter(|rounds| rounds.call == Call::Write)
            .filter_map(|rounds| Some((rounds.clients as f64, of(rounds)?)))
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

fn memory_into(ours: &dyn Peer, etcd: Option<&EtcdServers>, report: &mut Report) {
    #[expect(clippy::cast_precision_loss, reason = "KiB")]
    let mib = |peer: &dyn Peer| Usage::of_all(&peer.processes()).rss_kib as f64 / 1_024.0 / peer.servers() as f64;
    let mut rows = vec![vec![ours.name().to_owned(), short(mib(ours))]];
    if let Some(etcd) = etcd {
        rows.push(vec![etcd.name().to_owned(), short(mib(etcd))]);
        report.figures.put("rss", Some(mib(ours) / mib(etcd)));
    }
    report.section(Section { title: "Memory after all that".into(), header: &["side", "MiB a server"], rows });
}

async fn recovery_into(
    env: &Env,
    ours: &mut OurServers,
    mut etcd: Option<&mut EtcdServers>,
    kills: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    if kills == 0 {
        return Ok(());
    }
    let bar = bar("leaders are killed", kills as u64);
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for kill in 1..=kills {
        if let Some(etcd) = etcd.as_deref_mut() {
            theirs.push(recovery::once(env, etcd).await?);
        }
        own.push(recovery::once(env, ours).await?);
        bar.at(kill as u64);
    }
    times_into("recovery", (&own, &theirs), |time| time.written, report);
    times_into("restart", (&own, &theirs), |time| time.restarted, report);
    Ok(())
}

/// One kind of time of both sides.
fn times_into(name: &str, (own, theirs): (&[Recovery], &[Recovery]), of: fn(&Recovery) -> f64, report: &mut Report) {
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
