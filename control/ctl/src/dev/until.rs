//! Waiting for what a cluster does by itself: elections, sessions, catching up. A process that dies meanwhile ends the
//! waiting at once, with its last words.

use std::time::Duration;

use cara_proto::rest::{ClusterView, List, ServerView};
use serde_json::Value;

use super::cluster::Cluster;
use super::error::DevError;
use crate::client::Client;
use crate::view::text;

/// A step that takes longer has gone wrong.
pub(super) const STEP_MAX: Duration = Duration::from_secs(60);
/// Between two looks.
const POLL: Duration = Duration::from_millis(50);
/// One question; an election may be going on.
const PROBE_MAX: Duration = Duration::from_secs(3);

impl Cluster {
    /// Waits for a leader other than `old`.
    ///
    /// # Errors
    /// When there is none in time, or a process died.
    pub async fn until_leader_other_than(&mut self, old: &str) -> Result<ClusterView, DevError> {
        self.until("another leader", STEP_MAX, async |client| {
            let view: ClusterView = client.get("/servers").await.ok()?;
            (!view.leader.is_empty() && view.leader != old).then_some(view)
        })
        .await
    }

    /// Waits until every agent is online with a session on `server`.
    ///
    /// # Errors
    /// When that does not happen in time, or a process died.
    pub async fn until_sessions_on(&mut self, server: &str) -> Result<(), DevError> {
        let agents = self.agents.len();
        self.until(&format!("all agents having sessions on {server}"), STEP_MAX, async |client| {
            let nodes: List<Value> = client.get("/nodes").await.ok()?;
            let here =
                |n: &&Value| text(n, "/status/connection") == "online" && text(n, "/status/session/server") == server;
            (nodes.items.iter().filter(here).count() >= agents).then_some(())
        })
        .await
    }

    /// Waits until `server` stores everything that the leader has.
    ///
    /// # Errors
    /// When that does not happen in time, or a process died.
    pub async fn until_caught_up(&mut self, server: &str) -> Result<(), DevError> {
        self.until(&format!("{server} catching up"), STEP_MAX, async |client| {
            let view: ClusterView = client.get("/servers").await.ok()?;
            let back = |s: &ServerView| s.name == server && s.role != "unreachable" && s.lag == 0;
            view.servers.iter().any(back).then_some(())
        })
        .await
    }

    /// Asks again and again until `probe` has an answer.
    pub(super) async fn until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut probe: impl AsyncFnMut(&Client) -> Option<T>,
    ) -> Result<T, DevError> {
        let client = self.client()?.with_limit(PROBE_MAX);
        let started = self.env.clock.monotonic();
        loop {
            self.check()?;
            if let Some(value) = probe(&client).await {
                return Ok(value);
            }
            if self.env.clock.monotonic() - started >= limit {
                let said = self.servers.iter().chain(&self.agents).map(|p| format!("{}:\n{}", p.name, p.last_lines()));
                let said = said.collect::<Vec<_>>().join("\n");
                return Err(DevError::Timeout { what: what.to_owned(), limit, said });
            }
            self.env.clock.sleep(POLL).await;
        }
    }
}
