//! Settings of one member, with defaults and the reasons for them.

use std::sync::Arc;
use std::time::Duration;

use crate::OpenError;

/// The largest command, in bytes. Entries are kept in memory several times while they are replicated; larger work is
/// cut into several commands.
pub const COMMAND_MAX: usize = 1024 * 1024;

/// Bytes of applied changes that wait in memory at most: some thousand entries, which a restart applies again in a tenth of
/// a second.
pub const WRITE_BEHIND: usize = 4 * 1024 * 1024;

/// Asked before each proposal: true while the device is so full that only what frees room may still be written.
pub type LowSpace = Arc<dyn Fn() -> bool + Send + Sync>;

/// Settings of one member.
#[derive(Clone)]
pub struct Config {
    /// This server's id. Never given to another server, nor to the same server with an empty disk.
    pub id: u64,
    /// The cluster that the database belongs to; checked when it is opened.
    pub cluster: String,
    /// True when the server is being created (init, join), false when it runs again. An empty database under a known id
    /// has forgotten its vote and could elect a second leader, so `false` refuses it, and `true` refuses a used one.
    pub expect_empty: bool,
    /// Pause between two heartbeats of the leader. 200 ms: five chances before the first election can start.
    pub heartbeat: Duration,
    /// A follower that hears nothing waits at least this long before it asks for an election. 1 s: above a slow sync
    /// and a long scheduling pause, below what an operator notices.
    pub election_min: Duration,
    /// ... and at most this long; the spread avoids split votes.
    pub election_max: Duration,
    /// Bytes of applied changes that may wait in memory until they are written to the store's state; 0 writes them at
    /// once. [`WRITE_BEHIND`].
    pub write_behind: usize,
    /// A snapshot is built after this many entries since the last one.
    pub snapshot_after: u64,
    /// Entries kept behind a snapshot, so that a follower that was away shortly catches up without one.
    pub keep_logs: u64,
    /// Entries in one append request at most.
    pub max_payload: u64,
    /// Bytes of one stored and sent piece of a snapshot. 1 MiB: far below the limit of a gRPC message.
    pub snapshot_chunk: usize,
    /// How long a whole snapshot may take to be sent and installed.
    pub snapshot_timeout: Duration,
    /// How long [`crate::RaftStore::propose`] waits for an outcome before it says that it is unknown.
    pub propose_timeout: Duration,
    /// How long [`crate::RaftStore::read_barrier`] waits for a quorum.
    pub read_timeout: Duration,
    /// Tells when room is short; none when nobody watches the device.
    pub low_space: Option<LowSpace>,
}

impl Config {
    /// The defaults for server `id` of `cluster`, running again.
    pub fn new(id: u64, cluster: impl Into<String>) -> Self {
        Self {
            id,
            cluster: cluster.into(),
            expect_empty: false,
            heartbeat: Duration::from_millis(200),
            election_min: Duration::from_millis(1_000),
            election_max: Duration::from_millis(1_400),
            write_behind: WRITE_BEHIND,
            snapshot_after: 50_000,
            keep_logs: 25_000,
            max_payload: 512,
            snapshot_chunk: 1024 * 1024,
            snapshot_timeout: Duration::from_secs(120),
            propose_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(3),
            low_space: None,
        }
    }

    pub(crate) fn for_openraft(&self) -> Result<openraft::Config, OpenError> {
        if self.election_max / 2 <= self.heartbeat || self.election_max <= self.election_min {
            let (heartbeat, min, max) = (self.heartbeat, self.election_min, self.election_max);
            return Err(OpenError::Config(format!(
                "a heartbeat every {heartbeat:?} and elections after {min:?} to {max:?} of silence; the longest silence \
                 must be over two heartbeats and over the shortest one"
            )));
        }
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        // openraft waits twice: its leader lease, which is its own `election_timeout_max`, and only then a timeout
        // between its min and max. Our two bounds are of the whole silence, so both parts are cut to fit.
        let lease = ms(self.election_max) / 2;
        let min = ms(self.election_min).saturating_sub(lease).max(ms(self.heartbeat) + 1);
        let max = lease.max(min + 1);
        let config = openraft::Config {
            cluster_name: self.cluster.clone(),
            heartbeat_interval: ms(self.heartbeat),
            election_timeout_min: min,
            election_timeout_max: max,
            install_snapshot_timeout: ms(self.snapshot_timeout),
            max_payload_entries: self.max_payload,
            snapshot_policy: openraft::SnapshotPolicy::LogsSinceLast(self.snapshot_after),
            max_in_snapshot_log_to_keep: self.keep_logs,
            purge_batch_size: (self.keep_logs / 4).clamp(1, 1_024), // One range delete per batch, not per entry.
            snapshot_max_chunk_size: self.snapshot_chunk as u64,
            removed_leader_step_down: openraft::StepDownPolicy::After(ms(self.heartbeat)),
            enable_pre_vote: Some(true),
            // A restarted leader has to win an election again: it may have missed one.
            enable_leader_restore: Some(false),
            allow_log_reversion: Some(false),
            ..openraft::Config::default()
        };
        config.validate().map_err(|error| OpenError::Config(error.to_string()))
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("id", &self.id).field("cluster", &self.cluster).finish_non_exhaustive()
    }
}
