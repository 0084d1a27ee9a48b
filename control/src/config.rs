//! What an operator can set.

use std::path::PathBuf;
use std::time::Duration;

use raft_store::LowSpace;

pub use crate::api::limit::Rate;
use crate::pki::LEAF_LIFE;
use crate::version::Version;

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
    /// How long a node may wait for its first session until it is shown as never connected. Default 5 minutes: long enough to
    /// walk to the machine.
    pub pending_stale_after: Duration,
    /// Agents below this version, and those that don't say theirs, are shown as outdated; none = no agent is. They run on.
    pub agent_min_version: Option<Version>,
    /// Log entries between two snapshots. Default 50,000: a snapshot copies the whole state, and the log between them is what a
    /// server that was away for some minutes catches up with.
    pub snapshot_after: u64,
    /// Bytes of applied changes that may wait in memory before they are written to the database; the log has them in any
    /// case. Default as in [`raft_store::Config`].
    pub write_behind: usize,
    /// Longest time that one API request may take, waiting for a leader included. Default 10 s.
    pub request_deadline: Duration,
    /// Tells when the database's device is nearly full; none when nobody watches it.
    pub low_space: Option<LowSpace>,
    /// The highest feature level that this server announces and reaches. Default: what this version supports. Lower, it acts
    /// like the release that had that level; a cluster beyond it is refused.
    pub feature_level_max: u32,
    /// How long a server's certificate lives that this server signs while it leads. Default 90 days; it is renewed at two
    /// thirds.
    pub server_certificate_life: Duration,
    /// Life of a node's certificate; its agent renews it at two thirds. Default 90 days.
    pub node_certificate_life: Duration,
    /// A node's certificate with less than this left is shown as `expiring`. Default 21 days: renewal has failed for a week.
    pub certificate_warning: Duration,
    /// With less than this as `critical`. Default 7 days: a week to act.
    pub certificate_critical: Duration,
    /// Largest API request body in bytes. Default 1 MiB, the same as a log entry.
    pub body_max: usize,
    /// How often one API token may be used on this server. Default 500 a second: a person and a dozen scripts together stay
    /// far below, and one that runs wild leaves the leader most of what it can do.
    pub rate_per_token: Rate,
    /// The same for one address without a valid token or certificate. Default 100 a second: a rack whose machines enrol at
    /// once passes, guessing tokens does not pay.
    pub rate_per_address: Rate,
    /// Open connections without a certificate from one address; 0 = any number. Default 1,024, a sixteenth of what a server
    /// takes in all.
    pub connections_per_address_max: usize,
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
            pending_stale_after: Duration::from_secs(5 * 60),
            agent_min_version: None,
            snapshot_after: 50_000,
            write_behind: raft_store::WRITE_BEHIND,
            request_deadline: Duration::from_secs(10),
            low_space: None,
            feature_level_max: cara_core::FEATURE_LEVEL,
            server_certificate_life: LEAF_LIFE,
            node_certificate_life: LEAF_LIFE,
            certificate_warning: Duration::from_secs(21 * DAY_S),
            certificate_critical: Duration::from_secs(7 * DAY_S),
            body_max: 1 << 20,
            rate_per_token: Rate::with_burst(500),
            rate_per_address: Rate { per_second: 100, burst: 1_000 },
            connections_per_address_max: 1_024,
        }
    }

    /// How long a node may be silent.
    pub fn agent_timeout(&self) -> Duration {
        self.agent_heartbeat * self.agent_timeout_intervals
    }
}
