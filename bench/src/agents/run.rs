//! The run from the first server to the last figure.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use cara_env::Env;
use cara_proto::rest::{List, MintedToken};
use futures_util::{StreamExt, TryStreamExt, stream};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use super::failover::{self, Failover};
use super::fleet::{Fleet, Moment, Phase, Size};
use super::offline::OfflineWatch;
use super::tick::Seat;
use crate::connection::Connection;
use crate::load::{self, Loads};
use crate::measure::disk;
use crate::measure::process::{Usage, raise_open_files};
use crate::progress::{bar, say};
use crate::report::{Plot, Report, Section, Series};
use crate::target::Target;

/// Tokens minted, nodes removed, at a time.
const AT_ONCE: usize = 64;
/// Agents that nobody could let in by then are reported.
const ONLINE_MAX: Duration = Duration::from_secs(900);
/// How long the disk is measured.
const DISK: Duration = Duration::from_secs(1);
/// Files that a server or a worker has open besides its agents.
const FILES_BESIDES: u64 = 500;

/// What to do with a fleet.
#[derive(Debug, Clone)]
pub struct Options {
    pub size: Size,
    /// How long to look on while nothing happens.
    pub steady: Duration,
    pub loads: Loads,
    pub failover: bool,
}

/// Measures, and stops what was started, also when something fails.
pub async fn run(env: &Env, mut target: Target, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    if let Err(problem) = raise_open_files(options.size.agents as u64 + FILES_BESIDES) {
        report.note(problem);
    }
    let prefix = format!("bench-{}", cara_env::hex(&*env.rng, 3));
    let outcome = measure(env, &mut target, options, &prefix, report).await;
    if target.processes().is_empty() {
        forget(env, &target, &prefix, options.size.agents).await?;
    }
    target.stop().await;
    outcome
}

async fn measure(
    env: &Env,
    target: &mut Target,
    options: &Options,
    prefix: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let sync = disk::probe(env, &target.folder(), DISK).await?;
    report.disk(&sync);
    let agents = options.size.agents;
    let before = target.leader_usage().await?;
    let nodes: List<Value> = target.client()?.get("/nodes").await?;
    let offline = OfflineWatch::begin(env, target.client()?, nodes.revision);
    let seats = seats(env, target, prefix, agents).await?;
    let began = env.clock.monotonic();
    let mut fleet = Fleet::start(env, options.size, seats).await?;
    enrol(env, &fleet, report).await?;
    steady(env, target, &fleet, options.steady, before, report).await?;
    load::run(env, target, &mut fleet, options.loads, report).await?;
    fleet.begin_phase();
    let failover = match options.failover {
        true => Some(failover::run(env, target, &fleet).await?),
        false => None,
    };
    if let Some(failover) = &failover {
        after_failover(failover, &fleet.begin_phase(), report);
    }
    let online: List<Value> = target.client()?.get("/nodes").await?;
    let named = |node: &&Value| node["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix));
    let online = online.items.iter().filter(named).filter(|node| node["status"]["connection"] == "online").count();
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    report.figures.put("false_offline", offline.count().map(|count| count as f64));
    offline.examples().into_iter().for_each(|example| report.note(format!("called offline: {example}")));
    if offline.count().is_none() {
        report.note("more changed than a watch could follow: how many nodes were called offline is not known");
    }
    report.section(Section {
        title: "At the end".into(),
        header: &["what", "value"],
        rows: vec![vec!["nodes online, as the leader says".into(), format!("{online} of {agents}")]],
    });
    report.plots.push(over_time(&fleet.moments(), began, failover.as_ref()));
    target.check()?;
    fleet.end().await;
    Ok(())
}

/// A token for each agent, each bound to its name.
async fn seats(env: &Env, target: &Target, prefix: &str, agents: usize) -> anyhow::Result<Vec<Seat>> {
    let server = target.access().servers.first().context("at least one server is needed")?;
    let connection = Connection::open(env, target.access(), server).await?;
    let bar = bar("tokens are minted", agents as u64);
    let mint = |index: usize| {
        let (connection, name) = (connection.clone(), format!("{prefix}-{index}"));
        async move {
            let body = Bytes::from(json!({"nodeName": name, "ttl": "60m"}).to_string());
            let (answer, _) = connection.change(Method::POST, "/nodes/join-tokens", body, None).await?;
            let minted: MintedToken = serde_json::from_slice(&answer)?;
            anyhow::Ok(Seat { name, token: minted.token })
        }
    };
    let mut minting = stream::iter(0..agents).map(mint).buffer_unordered(AT_ONCE);
    let mut seats = Vec::with_capacity(agents);
    while let Some(seat) = minting.try_next().await? {
        seats.push(seat);
        bar.at(seats.len() as u64);
    }
    Ok(seats)
}

#[expect(clippy::cast_precision_loss, reason = "counts of agents")]
async fn enrol(env: &Env, fleet: &Fleet, report: &mut Report) -> anyhow::Result<()> {
    let agents = fleet.agents() as u64;
    let bar = bar(&format!("{agents} agents enrol"), agents);
    let began = env.clock.monotonic();
    let at = |counts: &super::tick::Tick| bar.at(counts.online);
    let enrolled = fleet.until("all agents being enrolled", ONLINE_MAX, at, |counts| counts.enrolled >= agents).await?;
    fleet.until("all agents being online", ONLINE_MAX, at, |counts| counts.online >= agents).await?;
    let online = env.clock.monotonic().saturating_sub(began);
    drop(bar);
    say(&format!("{agents} agents online after {:.1} s", online.as_secs_f64()));
    report.figures.put("enrol_per_s", Some(agents as f64 / enrolled.as_secs_f64()));
    report.figures.put("online_s", Some(online.as_secs_f64()));
    Ok(())
}

/// Looks on while the fleet does nothing but live.
#[expect(clippy::cast_precision_loss, reason = "counts of heartbeats, milliseconds and KiB")]
async fn steady(
    env: &Env,
    target: &Target,
    fleet: &Fleet,
    length: Duration,
    before: Usage,
    report: &mut Report,
) -> anyhow::Result<()> {
    let bar = bar("heartbeats are counted", length.as_secs());
    fleet.begin_phase();
    let (began, usage) = (env.clock.monotonic(), target.usage());
    while env.clock.monotonic().saturating_sub(began) < length {
        env.clock.sleep(length.min(Duration::from_millis(500))).await;
        bar.at(env.clock.monotonic().saturating_sub(began).as_secs());
    }
    let phase = fleet.begin_phase();
    let (elapsed, after) = (env.clock.monotonic().saturating_sub(began), target.usage());
    drop(bar);
    let leader = target.leader_usage().await?;
    put_beats(&phase, report);
    if target.processes().is_empty() {
        report.note("the servers are not this bench's: their CPU, memory and files can't be seen from here");
        return Ok(());
    }
    let cpu_ms = after.cpu_ms.saturating_sub(usage.cpu_ms) as f64;
    let figures = &mut report.figures;
    figures.put("cpu_ms_per_1000_beats", Some(cpu_ms * 1_000.0 / phase.acknowledged as f64));
    figures.put("server_cores", Some(cpu_ms / 1_000.0 / elapsed.as_secs_f64()));
    let more = leader.rss_kib.saturating_sub(before.rss_kib) as f64;
    figures.put("rss_kib_per_agent", Some(more / fleet.agents() as f64));
    figures.put("open_files", Some(leader.open_files as f64));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts of heartbeats")]
fn put_beats(phase: &Phase, report: &mut Report) {
    let trips = &phase.round_trips;
    for (name, percent) in [("beat_p50_ms", 50.0), ("beat_p99_ms", 99.0), ("beat_p999_ms", 99.9)] {
        report.figures.put(name, trips.ms(percent));
    }
    report.figures.put("missed_beats", Some(phase.missed as f64));
    report.figures.put("late_beats", Some(phase.late as f64));
    report.section(Section {
        title: "Heartbeats while nothing else happened".into(),
        header: &["sent", "acknowledged", "late", "missed", "longest ms"],
        rows: vec![vec![
            phase.sent.to_string(),
            phase.acknowledged.to_string(),
            phase.late.to_string(),
            phase.missed.to_string(),
            trips.longest_ms().map(|ms| format!("{ms:.1}")).unwrap_or_default(),
        ]],
    });
    let series = vec![Series { name: "heartbeats".into(), points: trips.curve() }];
    report.plots.push(Plot {
        title: "Heartbeat round trips".into(),
        x: "ms",
        y: "share of heartbeats that took less",
        log_x: true,
        series,
        ..Plot::default()
    });
}

#[expect(clippy::cast_precision_loss, reason = "a count of elections")]
fn after_failover(failover: &Failover, phase: &Phase, report: &mut Report) {
    let seconds = |figure: &str, took: Duration, report: &mut Report| {
        report.figures.put(figure, Some(took.as_secs_f64()));
    };
    seconds("new_leader_s", failover.new_leader, report);
    seconds("first_write_s", failover.first_write, report);
    seconds("all_back_s", failover.all_back, report);
    report.figures.put("api_p99_ms", failover.api.ms(99.0));
    report.figures.put("elections", Some(failover.elections as f64));
    report.section(Section {
        title: "While the leader was gone, until the last agent was back".into(),
        header: &["API calls", "p50 ms", "longest ms", "heartbeats late", "missed"],
        rows: vec![vec![
            failover.api.count().to_string(),
            failover.api.ms(50.0).map(|ms| format!("{ms:.1}")).unwrap_or_default(),
            failover.api.longest_ms().map(|ms| format!("{ms:.0}")).unwrap_or_default(),
            phase.late.to_string(),
            phase.missed.to_string(),
        ]],
    });
    report.plots.push(Plot {
        title: "API calls after the leader's death".into(),
        x: "s after SIGKILL",
        y: "ms, retries included",
        series: vec![Series { name: "calls".into(), points: failover.calls.clone() }],
        dots: true,
        ..Plot::default()
    });
}

/// How many were online, from the first agent's start on.
#[expect(clippy::cast_precision_loss, reason = "counts of agents")]
fn over_time(moments: &[Moment], began: Duration, failover: Option<&Failover>) -> Plot {
    let x = |at: Duration| at.saturating_sub(began).as_secs_f64();
    let online = moments.iter().map(|moment| (x(moment.at), moment.online as f64)).collect();
    let marks = failover.map(|failover| (x(failover.killed_at), "leader killed".to_owned())).into_iter().collect();
    Plot {
        title: "Agents online".into(),
        x: "s since the first agent started",
        y: "agents",
        series: vec![Series { name: "online".into(), points: online }],
        marks,
        ..Plot::default()
    }
}

/// Removes what the bench has made on a user's cluster.
async fn forget(env: &Env, target: &Target, prefix: &str, agents: usize) -> anyhow::Result<()> {
    let server = target.access().servers.first().context("at least one server is needed")?;
    let connection = Connection::open(env, target.access(), server).await?;
    let names = (0..agents).map(|index| format!("{prefix}-{index}"));
    let keys = (0..2).map(crate::kv::ours::node);
    let remove = |name: String| {
        let connection = connection.clone();
        async move {
            let path = format!("/nodes/{name}");
            connection.change(Method::DELETE, &path, Bytes::new(), Some(StatusCode::NOT_FOUND)).await.map(drop)
        }
    };
    stream::iter(names.chain(keys)).map(remove).buffer_unordered(AT_ONCE).try_collect::<()>().await
}
