//! `--watchers N`: so many streams see the same change; the time is that of the last of them, from before the change was
//! asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::bail;
use cara_env::{Env, Task};
use http_body_util::BodyExt;
use tokio::sync::Notify;

use crate::connection::Connection;
use crate::kv::ours::{Ours, make_nodes, node};
use crate::kv::peer::Client;
use crate::measure::latency::Latency;
use crate::progress::bar;
use crate::report::{Report, Section};
use crate::target::Target;

/// Streams of one connection; below what a server allows.
const STREAMS: usize = 100;
/// Changes that are measured.
const CHANGES: u64 = 20;
/// Between two of them.
const CALM: Duration = Duration::from_millis(100);
/// A change that a watcher has not seen by then is lost.
const SEEN_MAX: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Seen {
    /// Streams that are open, and events over all streams.
    open: AtomicUsize,
    events: AtomicUsize,
    news: Notify,
}

pub async fn run(env: &Env, target: &Target, count: usize, report: &mut Report) -> anyhow::Result<()> {
    let connections = super::connections(env, target, count.div_ceil(STREAMS)).await?;
    make_nodes(&connections[0], 1).await?;
    let seen = Arc::new(Seen::default());
    let watch = |index: usize| {
        let (connection, seen) = (connections[index / STREAMS].clone(), seen.clone());
        Watcher(cara_env::spawn(async move { watch_always(connection, &seen).await }))
    };
    let _watchers: Vec<Watcher> = (0..count).map(watch).collect();
    until(env, &seen, || seen.open.load(Ordering::Relaxed) >= count, "watchers being there").await?;
    let writer = Ours::new(env, connections[0].clone());
    let bar = bar(&format!("{count} watchers see changes"), CHANGES);
    let mut last = Latency::default();
    for change in 1..=CHANGES {
        env.clock.sleep(CALM).await;
        let before = seen.events.load(Ordering::Relaxed);
        let began = env.clock.monotonic();
        writer.write(0, env.rng.next_u64() >> 16).await?;
        until(env, &seen, || seen.events.load(Ordering::Relaxed) >= before + count, "a change being seen by all")
            .await?;
        last.record(env.clock.monotonic().saturating_sub(began));
        bar.at(change);
    }
    report.figures.put("watch_last_p50_ms", last.ms(50.0));
    report.figures.put("watch_last_ms", last.longest_ms());
    report.section(Section {
        title: "A change until the last watcher has it".into(),
        header: &["watchers", "changes", "p50 ms", "longest ms"],
        rows: vec![vec![
            count.to_string(),
            last.count().to_string(),
            last.ms(50.0).map(|ms| format!("{ms:.1}")).unwrap_or_default(),
            last.longest_ms().map(|ms| format!("{ms:.1}")).unwrap_or_default(),
        ]],
    });
    Ok(())
}

/// Ends with its handle.
struct Watcher(Task<anyhow::Result<()>>);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn until(env: &Env, seen: &Seen, done: impl Fn() -> bool, what: &str) -> anyhow::Result<()> {
    let began = env.clock.monotonic();
    while !done() {
        if env.clock.monotonic().saturating_sub(began) > SEEN_MAX {
            bail!("{what} took longer than {SEEN_MAX:?}");
        }
        // Notified at each event; the deadline is looked at in between.
        let _ = cara_env::timeout(&*env.clock, Duration::from_secs(1), seen.news.notified()).await;
    }
    Ok(())
}

async fn watch_always(connection: Connection, seen: &Seen) -> anyhow::Result<()> {
    let mut body = connection.open_stream(&format!("/watch?kind=Node&name={}", node(0))).await?;
    seen.open.fetch_add(1, Ordering::Relaxed);
    seen.news.notify_one();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame?.into_data() else { continue };
        // The server sends events whole.
        let events = bytes.windows(EVENT.len()).filter(|window| *window == EVENT).count();
        if events > 0 {
            seen.events.fetch_add(events, Ordering::Relaxed);
            seen.news.notify_one();
        }
    }
    Ok(())
}

/// How an event begins.
const EVENT: &[u8] = b"event: change";
