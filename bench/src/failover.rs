//! From the leader's death to the next acknowledged write, as an operator's program sees it: a client that knows all
//! servers goes on asking, and the clock runs until one of them says yes.

use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;
use caractrl::dev::cluster::Cluster;
use serde_json::json;

use crate::writes::{ms, percentile};

/// All runs of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Each run's time, shortest first.
    pub times: Vec<Duration>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = self.times.first().copied().unwrap_or_default();
        let last = self.times.last().copied().unwrap_or_default();
        write!(
            f,
            "failover  {} runs   median {:.0} ms   shortest {:.0} ms   longest {:.0} ms",
            self.times.len(),
            ms(percentile(&self.times, 50)),
            ms(first),
            ms(last)
        )
    }
}

/// Kills the leader `runs` times with SIGKILL, and starts it again each time.
///
/// # Errors
/// When a write is not acknowledged within the client's deadline, or a server does not come back.
pub async fn run(env: &Env, cluster: &mut Cluster, runs: u32, say: impl Fn(&str)) -> anyhow::Result<Report> {
    let client = cluster.client()?;
    let manifest = json!({"apiVersion": "caravanserai/v1", "kind": "Node", "metadata": {"name": "failover"}});
    client.post("/nodes", &manifest).await.context("the node whose labels are written could not be made")?;
    let mut times = Vec::new();
    for run in 1..=runs {
        let leader = cluster.view().await?.leader;
        cluster.kill(&leader).await?;
        let died = env.clock.monotonic();
        let labels = json!({"run": run.to_string()});
        client.put("/nodes/failover/labels", &labels).await.with_context(|| format!("no write after {leader} died"))?;
        let took = env.clock.monotonic().saturating_sub(died);
        say(&format!("run {run}: {leader} killed, next write acknowledged after {:.0} ms", ms(took)));
        times.push(took);
        cluster.start(&leader)?;
        cluster.until_caught_up(&leader).await?;
    }
    times.sort_unstable();
    Ok(Report { times })
}
