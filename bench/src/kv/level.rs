//! One load for some seconds: so many clients, each of which begins its next call once the last one is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
pub async fn run(env: &Env, peer: &dyn Peer, call: Call, clients: usize, length: Duration) -> anyhow::Result<Level> {
    let mut connections = Vec::new();
    for index in 0..clients.min(CONNECTIONS_MAX) {
        connections.push(peer.connect(index % peer.servers()).await?);
    }
    let counting = Arc::new(AtomicBool::new(false));
    let until = env.clock.monotonic() + WARM_UP + length;
    let tasks: Vec<_> = (0..clients)
        .map(|key| {
            let client = connections[key % connections.len()].clone();
            cara_env::spawn(call_until(env.clone(), client, call, key, until, counting.clone()))
        })
        .collect();
    env.clock.sleep(WARM_UP).await;
    let pids = peer.processes();
    let (began, before) = (env.clock.monotonic(), Usage::of_all(&pids));
    counting.store(true, Ordering::Relaxed);
    env.clock.sleep(length).await;
    counting.store(false, Ordering::Relaxed);
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

async fn call_until(
    env: Env,
    client: Arc<dyn Client>,
    call: Call,
    key: usize,
    until: Duration,
    counting: Arc<AtomicBool>,
) -> Done {
    let (mut all, mut value) = (Done::default(), env.rng.next_u64() >> 16);
    while env.clock.monotonic() < until {
        value += 1;
        let began = env.clock.monotonic();
        let done = match call {
            Call::Write => client.write(key, value).await,
            Call::Read => client.read(key).await,
        };
        let counts = counting.load(Ordering::Relaxed);
        match done {
            Ok(()) if counts => all.latency.record(env.clock.monotonic().saturating_sub(began)),
            Ok(()) => {}
            Err(error) => {
                all.failed += u64::from(counts);
                all.failure = format!("{error:#}");
                env.clock.sleep(PAUSE).await;
            }
        }
    }
    all
}
