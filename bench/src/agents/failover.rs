//! The leader dies under a fleet: how long until another one leads, writes are taken, and everybody is back; and what the API
//! was like meanwhile.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use cara_env::{Env, Task};
use cara_proto::rest::ClusterView;
use hyper::Method;

use super::fleet::Fleet;
use crate::connection::Connection;
use crate::kv::ours::{Ours, make_nodes};
use crate::kv::peer::{Client, first_write};
use crate::measure::latency::Latency;
use crate::progress::bar;
use crate::target::Target;

/// Between two calls of the API while it is watched, one a read, one a write.
const CALL_EVERY: Duration = Duration::from_millis(50);
/// Between two looks who leads.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A survivor that doesn't say who leads within this is asked again.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// A fleet that is not back by then is reported as lost.
const BACK_MAX: Duration = Duration::from_secs(300);
/// A call of the API is tried again until it works, for this long at most.
const CALL_MAX: Duration = Duration::from_secs(60);
/// Nodes whose labels are written.
const KEYS: usize = 2;

/// What a failover was like.
pub struct Failover {
    /// Of the environment's clock.
    pub killed_at: Duration,
    pub new_leader: Duration,
    pub first_write: Duration,
    pub all_back: Duration,
    pub api: Latency,
    /// When each call began, after the kill, and what it took in ms.
    pub calls: Vec<(f64, f64)>,
    pub elections: u64,
}

/// Kills the leader, waits until all are back, and starts it again.
pub async fn run(env: &Env, target: &mut Target, fleet: &Fleet) -> anyhow::Result<Failover> {
    let before = target.view().await?;
    let survivors = target.others(&before.leader).await?;
    let mut connections = Vec::new();
    for address in &survivors {
        connections.push(Connection::open(env, target.access(), address).await?);
    }
    let first = connections.first().context("a failover needs at least two more servers")?.clone();
    make_nodes(&first, KEYS).await?;
    let clients: Vec<Arc<dyn Client>> = connections.iter().map(|c| Arc::new(Ours::new(env, c.clone())) as _).collect();
    let came_online = fleet.counts().came_online;
    let agents = fleet.agents() as u64;
    target.kill(&before.leader).await?;
    let killed_at = env.clock.monotonic();
    let api = ApiWatch::begin(env, &clients);
    let bar = bar(&format!("{} is killed; agents come back", before.leader), agents);
    let back = fleet.until(
        "all agents being back",
        BACK_MAX,
        |counts| bar.at(counts.came_online - came_online),
        |counts| counts.came_online >= came_online + agents && counts.online == agents,
    );
    let written = async { first_write(env, &clients).await };
    let (written, led, all_back) = tokio::try_join!(written, new_leader(env, &first, &before.leader), back)?;
    let after_kill = |at: Duration| at.saturating_sub(killed_at);
    let (api, calls) = api.end(killed_at);
    drop(bar);
    let elections = target.view().await?.term.saturating_sub(before.term);
    target.start_again(&before.leader)?;
    target.until_caught_up(&before.leader).await?;
    let (new_leader, first_write) = (after_kill(led), after_kill(written));
    Ok(Failover { killed_at, new_leader, first_write, all_back, api, calls, elections })
}

/// The moment at which a survivor knows of another leader.
async fn new_leader(env: &Env, survivor: &Connection, old: &str) -> anyhow::Result<Duration> {
    let began = env.clock.monotonic();
    loop {
        let asked = survivor.once(Method::GET, "/servers?consistency=stale", None, Bytes::new(), LOOK_MAX).await;
        let view = asked.ok().and_then(|(_, answer)| serde_json::from_slice::<ClusterView>(&answer).ok());
        if view.is_some_and(|view| !view.leader.is_empty() && view.leader != old) {
            return Ok(env.clock.monotonic());
        }
        if env.clock.monotonic().saturating_sub(began) > CALL_MAX {
            anyhow::bail!("no other server has become the leader within {CALL_MAX:?}");
        }
        env.clock.sleep(LOOK_EVERY).await;
    }
}

/// Calls: when each began, and what it took with its retries.
type Calls = Arc<Mutex<Vec<(Duration, Duration)>>>;

/// Asks the API all the time.
struct ApiWatch {
    calls: Calls,
    tasks: Vec<Task<()>>,
}

impl ApiWatch {
    fn begin(env: &Env, clients: &[Arc<dyn Client>]) -> Self {
        let calls = Calls::default();
        let callers =
            clients.iter().enumerate().flat_map(|(index, client)| [(index, client, false), (index, client, true)]);
        let tasks = callers.map(|(index, client, writes)| {
            cara_env::spawn(call_always(env.clone(), client.clone(), index % KEYS, writes, calls.clone()))
        });
        let tasks = tasks.collect();
        Self { calls, tasks }
    }

    /// All calls that are over.
    fn end(self, killed_at: Duration) -> (Latency, Vec<(f64, f64)>) {
        self.tasks.iter().for_each(Task::abort);
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let mut all = Latency::default();
        calls.iter().for_each(|(_, took)| all.record(*took));
        let point = |(began, took): &(Duration, Duration)| {
            (began.saturating_sub(killed_at).as_secs_f64(), took.as_secs_f64() * 1_000.0)
        };
        (all, calls.iter().map(point).collect())
    }
}

async fn call_always(env: Env, client: Arc<dyn Client>, key: usize, writes: bool, calls: Calls) {
    let mut value = 0;
    loop {
        value += 1;
        let began = env.clock.monotonic();
        loop {
            let done = if writes { client.write(key, value).await } else { client.read(key).await };
            let late = env.clock.monotonic().saturating_sub(began) > CALL_MAX;
            if done.is_ok() || late {
                break;
            }
            env.clock.sleep(CALL_EVERY).await;
        }
        let took = env.clock.monotonic().saturating_sub(began);
        calls.lock().unwrap_or_else(PoisonError::into_inner).push((began, took));
        env.clock.sleep(CALL_EVERY).await;
    }
}
