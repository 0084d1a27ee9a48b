//! What is counted, for Prometheus. One registry per server: a simulated cluster has several in one process.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The metrics of one server. Clones count into the same.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    propose_seconds: Histogram,
    heartbeats: Counter,
    forwarded: Counter,
    refused: Family<[(&'static str, &'static str); 1], Counter>,
    sessions: Gauge,
    term: Gauge,
    applied: Gauge,
    leader: Gauge,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("cara");
        let propose_seconds = Histogram::new(exponential_buckets(0.000_25, 2.0, 16));
        let (heartbeats, forwarded) = (Counter::default(), Counter::default());
        let (sessions, term, applied, leader) =
            (Gauge::default(), Gauge::default(), Gauge::default(), Gauge::default());
        registry.register("propose_seconds", "From proposal to applied answer", propose_seconds.clone());
        registry.register("agent_heartbeats", "Heartbeats received from agents", heartbeats.clone());
        registry.register("forwarded_requests", "API requests handed to the leader", forwarded.clone());
        let refused = Family::default();
        registry.register("refused", "Requests and connections refused before their work began", refused.clone());
        registry.register("agent_sessions", "Open agent sessions on this server", sessions.clone());
        registry.register("raft_term", "Current raft term", term.clone());
        registry.register("raft_applied_index", "Last applied log index", applied.clone());
        registry.register("raft_is_leader", "1 while this server leads", leader.clone());
        let registry = Arc::new(registry);
        Self { registry, propose_seconds, heartbeats, forwarded, refused, sessions, term, applied, leader }
    }

    /// A proposal was answered.
    pub fn proposed(&self, took: Duration) {
        self.propose_seconds.observe(took.as_secs_f64());
    }

    /// An agent was heard.
    pub fn heard(&self) {
        self.heartbeats.inc();
    }

    /// A request went to the leader.
    pub fn forwarded(&self) {
        self.forwarded.inc();
    }

    /// A request or a connection was refused before its work began, to keep a bound.
    pub fn refused(&self, why: &'static str) {
        self.refused.get_or_create(&[("reason", why)]).inc();
    }

    /// So many sessions are open.
    pub fn sessions(&self, open: usize) {
        self.sessions.set(i64::try_from(open).unwrap_or(i64::MAX));
    }

    /// The text format, with the raft gauges as of now.
    pub fn render(&self, term: u64, applied: u64, leads: bool) -> String {
        self.term.set(i64::try_from(term).unwrap_or(i64::MAX));
        self.applied.set(i64::try_from(applied).unwrap_or(i64::MAX));
        self.leader.set(i64::from(leads));
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(std::fmt::Error) => String::new(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
