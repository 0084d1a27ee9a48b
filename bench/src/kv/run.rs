//! The whole comparison, and what it puts into the report.

use std::time::Duration;

use cara_env::Env;

use super::etcd::{EtcdServers, Wire};
use super::level::{Call, Load, run as run_level};
use super::ours::OurServers;
use super::peer::Peer;
use super::recovery;
use super::rounds::{Pace, Rounds};
use super::show;
use crate::measure::disk;
use crate::measure::process::{Usage, raise_open_files};
use crate::measure::require::short;
use crate::progress::{Bar, bar};
use crate::report::{Report, Section};
use crate::target::Target;

/// How long the disk is measured at the beginning.
const DISK: Duration = Duration::from_secs(1);
/// Before the first round: elections and set-up are over.
const CALM: Duration = Duration::from_secs(1);

/// Writes that can be open at a time when they come at a rate.
const PACED_CLIENTS: usize = 2_000;
/// Who fills the log.
const FILL_CLIENTS: usize = 1_000;
/// Between two looks at how far it is.
const FILL_TURN: Duration = Duration::from_secs(4);

/// What to compare.
#[derive(Debug, Clone)]
pub struct Options {
    /// How etcd is called; none = measure ourselves only.
    pub etcd: Option<Wire>,
    pub clients: Vec<usize>,
    pub readers: usize,
    pub pace: Pace,
    /// Percent of the best rate at which writes come at last; 0 = not.
    pub paced: u32,
    /// Entries to write before the memory is read and leaders are killed.
    pub entries: u64,
    pub kills: usize,
}

/// Measures, and stops what was started, also when something fails.
pub async fn run(env: &Env, target: Target, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    if let Err(problem) = raise_open_files(2_000) {
        report.note(problem);
    }
    let mut ours = OurServers::new(env, target).await?;
    let outcome = match options.etcd {
        None => measure(env, &mut ours, None, options, report).await,
        Some(wire) => match EtcdServers::start(env, ours.servers(), wire, ours.folder()).await {
            Ok(mut etcd) => {
                let how = if wire == Wire::Tls { "over TLS as ours" } else { "without TLS; ours has TLS" };
                report.note(format!("the peer is {}, with its defaults, {how}", etcd.version().await?));
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
    let others = [options.readers, 1]
        .into_iter()
        .chain((options.paced > 0).then_some(PACED_CLIENTS))
        .chain((options.entries > 0).then_some(FILL_CLIENTS));
    let keys = options.clients.iter().copied().chain(others).max().unwrap_or(1);
    ours.prepare(keys).await?;
    if let Some(etcd) = &mut etcd {
        etcd.prepare(keys).await?;
    }
    env.clock.sleep(CALM).await;
    let (_, term) = ours.leader().await?;
    let all = loads(env, ours, etcd.as_deref(), options).await?;
    if options.entries > 0 {
        fill(env, ours, etcd.as_deref(), options.entries, report).await?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of terms")]
    report.figures.put("spurious_elections", Some((ours.leader().await?.1 - term) as f64));
    show::loads_into(&all, report);
    memory_into(ours, etcd.as_deref(), report);
    recovery_into(env, ours, etcd, options.kills, report).await
}

/// Writes, reads, and writes at a part of the rate that was the best of the peer, or ours without one.
async fn loads(
    env: &Env,
    ours: &OurServers,
    etcd: Option<&EtcdServers>,
    options: &Options,
) -> anyhow::Result<Vec<Rounds>> {
    let peers = (ours as &dyn Peer, etcd.map(|etcd| etcd as &dyn Peer));
    let writes = options.clients.iter().map(|clients| (Call::Write, *clients));
    let mut all = Vec::new();
    for (call, clients) in writes.chain([(Call::Read, options.readers)]).filter(|(_, clients)| *clients > 0) {
        let load = Load { call, clients, per_s: None };
        all.push(Rounds::run(env, peers, load, options.pace, &rounds_bar(load, options)).await?);
    }
    let best = |all: &[Rounds]| {
        let writes = all.iter().filter(|rounds| rounds.load.call == Call::Write);
        writes.filter_map(|rounds| rounds.peer().unwrap_or_else(|| rounds.ours()).per_s).reduce(f64::max)
    };
    if let Some(best) = best(&all).filter(|_| options.paced > 0) {
        let (clients, per_s) = (PACED_CLIENTS, Some(best * f64::from(options.paced) / 100.0));
        let load = Load { call: Call::Write, clients, per_s };
        all.push(Rounds::run(env, peers, load, options.pace, &rounds_bar(load, options)).await?);
    }
    Ok(all)
}

fn rounds_bar(load: Load, options: &Options) -> Bar {
    bar(&load.name(), options.pace.rounds_max() as u64)
}

/// Writes until each side has taken so many more.
async fn fill(
    env: &Env,
    ours: &OurServers,
    etcd: Option<&EtcdServers>,
    entries: u64,
    report: &mut Report,
) -> anyhow::Result<()> {
    let load = Load { call: Call::Write, clients: FILL_CLIENTS, per_s: None };
    for peer in [Some(ours as &dyn Peer), etcd.map(|etcd| etcd as &dyn Peer)].into_iter().flatten() {
        let bar = bar(&format!("{} writes {entries} entries", peer.name()), entries);
        let mut written = 0;
        while written < entries {
            let level = run_level(env, peer, load, FILL_TURN).await?;
            if level.latency.count() == 0 {
                anyhow::bail!("{} takes no writes any more: {}", peer.name(), level.failure);
            }
            written += level.latency.count();
            bar.at(written.min(entries));
        }
    }
    report.note(format!("what follows is after {entries} entries more, written by {FILL_CLIENTS} clients"));
    Ok(())
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
    show::times_into("recovery", (&own, &theirs), |time| time.written, report);
    show::times_into("restart", (&own, &theirs), |time| time.restarted, report);
    Ok(())
}
