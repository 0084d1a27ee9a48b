//! What an operator can set.

use std::path::PathBuf;
use std::time::Duration;

use raft_store::LowSpace;

use crate::pki::LEAF_LIFE;

const DAY_S: u64 = 24 * 60 * 60;

/// Settings of one server. Everything that identifies it is in its data folder, not here.
#[derive(Clone)]
pub struct Config {
    /// The folder with `server.json` and the database.
    pub data_dir: PathBuf,
    /// Overrides the address to listen on that `init` or `join` recorded.
    pub listen: Option<String>,
    /// Between two raft heartbeats of the leader. Default 200 ms: five lost ones in a row before anyone is impatient.
    pub raft_heartbeat: Duration,
    /// A follower that hears nothing for this long (up to 1.4 times as long, at random) calls an election. Default 1 s.
    pub election_timeout: Duration,
    /// Between two heartbeats of an agent. Default 15 s.
    pub agent_heartbeat: Duration,
    /// A node that is silent for this many intervals is offline. Default 3.
    pub agent_timeout_intervals: u32,
    /// Log entries between two snapshots. Default 10,000.
    pub snapshot_after: u64,
    /// Longest time that one API request may take, waiting for a leader included. Default 10 s.
    pub request_deadline: Duration,
    /// Tells when the database's device is nearly full; none when nobody watches it.
    pub low_space: Option<LowSpace>,
    /// The highest feature level that this server announces and reaches. Default: what this version supports. Lower, it acts
    /// like the release that had that level; a cluster beyond it is refused.
    pub feature_level_max: u32,
    /// Life of a node's certificate; its agent renews it at two thirds. Default 90 days.
    pub node_certificate_life: Duration,
    /// A node's certificate with less than this left is shown as `expiring`. Default 21 days: renewal has failed for a week.
    pub certificate_warning: Duration,
    /// With less than this as `critical`. Default 7 days: a week to act.
    pub certificate_critical: Duration,
    /// Largest API request body in bytes. Default 1 MiB, the same as a log entry.
    pub body_max: usize,
}

impl Config {
    /// The defaults for a data folder.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            listen: None,
            raft_heartbeat: Duration::from_millis(200),
            election_timeout: Duration::from_secs(1),
            agent_heartbeat: Duration::from_secs(15),
            agent_timeout_intervals: 3,
            snapshot_after: 10_000,
            request_deadline: Duration::from_secs(10),
            low_space: None,
            feature_level_max: cara_core::FEATURE_LEVEL,
            node_certificate_life: LEAF_LIFE,
            certificate_warning: Duration::from_secs(21 * DAY_S),
            certificate_critical: Duration::from_secs(7 * DAY_S),
            body_max: 1 << 20,
        }
    }

    /// How long a node may be silent.
    pub fn agent_timeout(&self) -> Duration {
        self.agent_heartbeat * self.agent_timeout_intervals
    }
}
