//! One load for some seconds: so many clients, each of which begins its next call once the last one is answered, or, with a
//! rate, once the next call is due, whoever of them is free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;

use super::peer::{Client, Peer};
use crate::measure::latency::Latency;
use crate::measure::process::Usage;

/// Connections at most; more clients share them, as programs with a pool do.
const CONNECTIONS_MAX: usize = 100;
/// Not counted: connections warm up, and the first calls of all clients come at once.
const WARM_UP: Duration = Duration::from_millis(500);
/// Before a call that failed is followed by the next.
const PAUSE: Duration = Duration::from_millis(100);

/// What each client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Write,
    Read,
}

/// What is asked of a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    pub call: Call,
    pub clients: usize,
    /// Calls that begin in a second; none = as many as there can be.
    pub per_s: Option<f64>,
}

impl Load {
    /// In words, for a progress bar and a table.
    pub fn name(&self) -> String {
        let what = if self.call == Call::Write { "durable writes" } else { "linearizable reads" };
        let rate = self.per_s.map(|per_s| format!(", {per_s:.0} per s")).unwrap_or_default();
        format!("{what}, {} clients{rate}", self.clients)
    }
}

/// What a load came to.
#[derive(Clone, Default)]
pub struct Level {
    pub per_s: f64,
    pub latency: Latency,
    /// Of all servers, for each call.
    pub cpu_ms: f64,
    pub failed: u64,
    /// Why the last of them did.
    pub failure: String,
}

/// Runs a load for `length` on connections that are opened for it, spread evenly over all servers.
pub async fn run(env: &Env, peer: &dyn Peer, load: Load, length: Duration) -> anyhow::Result<Level> {
    let mut connections = Vec::new();
    for index in 0..load.clients.min(CONNECTIONS_MAX) {
        connections.push(peer.connect(index % peer.servers()).await?);
    }
    let begins = env.clock.monotonic();
    let course = Arc::new(Course {
        env: env.clone(),
        call: load.call,
        begins,
        until: begins + WARM_UP + length,
        every: load.per_s.map(|per_s| Duration::from_secs_f64(1.0 / per_s)),
        begun: AtomicU64::new(0),
        counting: AtomicBool::new(false),
    });
    let tasks: Vec<_> = (0..load.clients)
        .map(|key| {
            let (client, course) = (connections[key % connections.len()].clone(), course.clone());
            cara_env::spawn(async move { course.call_until_the_end(&*client, key).await })
        })
        .collect();
    env.clock.sleep(WARM_UP).await;
    let pids = peer.processes();
    let (began, before) = (env.clock.monotonic(), Usage::of_all(&pids));
    course.counting.store(true, Ordering::Relaxed);
    env.clock.sleep(length).await;
    course.counting.store(false, Ordering::Relaxed);
    let (elapsed, after) = (env.clock.monotonic().saturating_sub(began), Usage::of_all(&pids));
    let mut level = Level::default();
    for task in tasks {
        let Done { latency, failed, failure } = task.await.context("a client has ended early")?;
        level.latency.merge(&latency);
        level.failed += failed;
        if !failure.is_empty() {
            level.failure = failure;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of calls and milliseconds")]
    {
        let calls = level.latency.count() as f64;
        level.per_s = calls / elapsed.as_secs_f64();
        level.cpu_ms = after.cpu_ms.saturating_sub(before.cpu_ms) as f64 / calls;
    }
    Ok(level)
}

/// What one client did.
#[derive(Default)]
struct Done {
    latency: Latency,
    failed: u64,
    failure: String,
}

/// What all clients of a load share.
struct Course {
    env: Env,
    call: Call,
    begins: Duration,
    until: Duration,
    /// Between two calls, of whichever clients.
    every: Option<Duration>,
    /// Calls that have been given to a client.
    begun: AtomicU64,
    counting: AtomicBool,
}

impl Course {
    /// Waits for the next call and says from when on it counts. One that nobody was free for counts from when it was due:
    /// its user has waited since then.
    async fn next(&self) -> Duration {
        let clock = &self.env.clock;
        if let Some(every) = self.every {
            let due = self.begins + every.mul_f64(exact(self.begun.fetch_add(1, Ordering::Relaxed)));
            match due.checked_sub(clock.monotonic()) {
                None => return due,
                Some(wait) => clock.sleep(wait).await,
            }
        }
        clock.monotonic()
    }

    async fn call_until_the_end(&self, client: &dyn Client, key: usize) -> Done {
        let clock = &self.env.clock;
        let (mut all, mut value) = (Done::default(), self.env.rng.next_u64() >> 16);
        loop {
            let began = self.next().await;
            if clock.monotonic() >= self.until {
                return all;
            }
            value += 1;
            let done = match self.call {
                Call::Write => client.write(key, value).await,
                Call::Read => client.read(key).await,
            };
            let counts = self.counting.load(Ordering::Relaxed);
            match done {
                Ok(()) if counts => all.latency.record(clock.monotonic().saturating_sub(began)),
                Ok(()) => {}
                Err(error) => {
                    all.failed += u64::from(counts);
                    all.failure = format!("{error:#}");
                    clock.sleep(PAUSE).await;
                }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "calls of one run fit into 52 bits")]
fn exact(calls: u64) -> f64 {
    calls as f64
}
