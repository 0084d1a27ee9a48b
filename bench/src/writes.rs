//! Writes per second: each client has one connection and sends its next write once the last one is acknowledged.
//!
//! A write changes the labels of a node that belongs to this client alone, so that no two writes wait for each other
//! anywhere but in the cluster.

use std::time::Duration;

use anyhow::{Context as _, bail};
use cara_env::Env;
use caractrl::client::Access;
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::connection::Connection;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Clients that wrote at the same time.
    pub clients: usize,
    /// Acknowledged writes.
    pub acknowledged: usize,
    /// How often a server asked to send a write again, as during an election; the time counts.
    pub sent_again: usize,
    /// How long they took together.
    pub elapsed: Duration,
    /// Half of the writes took at most this.
    pub p50: Duration,
    /// 99 of 100 writes took at most this.
    pub p99: Duration,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.acknowledged as f64 / self.elapsed.as_secs_f64();
        write!(
            f,
            "writes    clients {:<4} {rate:>8.0} writes/s   p50 {:>6.1} ms   p99 {:>6.1} ms   ({} acknowledged in {:.1} s, {} sent again)",
            self.clients,
            ms(self.p50),
            ms(self.p99),
            self.acknowledged,
            self.elapsed.as_secs_f64(),
            self.sent_again
        )
    }
}

/// Milliseconds, for people.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Writes for `length` with `clients` clients, spread evenly over all servers.
///
/// # Errors
/// The first write that was not acknowledged: a rate with failures inside means nothing.
pub async fn run(env: &Env, access: &Access, clients: usize, length: Duration) -> anyhow::Result<Report> {
    if access.servers.is_empty() || clients == 0 {
        bail!("at least one --server and one client are needed");
    }
    let mut ready = Vec::new();
    for index in 0..clients {
        let server = &access.servers[index % access.servers.len()];
        let mut connection = Connection::open(env, access, server).await?;
        let node = format!("bench-{index}");
        let manifest = json!({"apiVersion": "caravanserai/v1", "kind": "Node", "metadata": {"name": node}});
        connection
            .write(Method::POST, "/nodes", manifest.to_string(), Some(StatusCode::CONFLICT)) // An earlier run made it.
            .await
            .with_context(|| format!("node {node} could not be made"))?;
        ready.push((connection, format!("/nodes/{node}/labels")));
    }
    let began = env.clock.monotonic();
    let tasks: Vec<_> = ready
        .into_iter()
        .map(|(connection, path)| cara_env::spawn(write_until(env.clone(), connection, path, began + length)))
        .collect();
    let (mut times, mut sent_again) = (Vec::new(), 0);
    for task in tasks {
        let (of_one, again) = task.await.context("a client ended early")??;
        times.extend(of_one);
        sent_again += again;
    }
    let elapsed = env.clock.monotonic().saturating_sub(began);
    times.sort_unstable();
    Ok(Report {
        clients,
        acknowledged: times.len(),
        sent_again,
        elapsed,
        p50: percentile(&times, 50),
        p99: percentile(&times, 99),
    })
}

/// The time of each write, and how often one was sent again.
async fn write_until(
    env: Env,
    mut connection: Connection,
    path: String,
    until: Duration,
) -> anyhow::Result<(Vec<Duration>, usize)> {
    let (mut times, mut sent_again) = (Vec::new(), 0);
    while env.clock.monotonic() < until {
        let began = env.clock.monotonic();
        let body = json!({"write": times.len().to_string()}).to_string();
        sent_again += connection.write(Method::PUT, &path, body, None).await?;
        times.push(env.clock.monotonic().saturating_sub(began));
    }
    Ok((times, sent_again))
}

/// The smallest of the sorted times that `percent` of 100 do not exceed; zero when there are none.
pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(values: &[u64]) -> Vec<Duration> {
        values.iter().map(|v| Duration::from_secs(*v)).collect()
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred = seconds(&(1..=100).collect::<Vec<_>>());
        assert_eq!(percentile(&hundred, 50), Duration::from_secs(50));
        assert_eq!(percentile(&hundred, 99), Duration::from_secs(99));
        assert_eq!(percentile(&seconds(&[7]), 99), Duration::from_secs(7));
        assert_eq!(percentile(&seconds(&[1, 9]), 50), Duration::from_secs(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
