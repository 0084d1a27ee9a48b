//! What an agent reports about a workload. Written by the agent that holds the placement, under its session's epoch.

use crate::id::{Generation, WorkloadUid};
use crate::wire::wire_enum;

/// The last report about a workload.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WorkloadStatus {
    /// The generation of the placement that it is about.
    #[prost(message, required, tag = "1")]
    pub observed_generation: Generation,
    /// In one word.
    #[prost(message, required, tag = "2")]
    pub phase: Phase,
    /// A stable word for why, as `ImagePullFailed`; may be empty.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// For people; may be empty.
    #[prost(string, tag = "4")]
    pub message: String,
    /// One for each container that exists.
    #[prost(message, repeated, tag = "5")]
    pub containers: Vec<ContainerStatus>,
    /// When the phase changed last, in ms since 1970. Set by apply.
    #[prost(uint64, tag = "6")]
    pub changed_at_ms: u64,
    /// On the target of a move: the image is there and the network made, so that only the start is left.
    #[prost(bool, tag = "7")]
    pub ready: bool,
    /// On the target of a move: how far each managed volume is.
    #[prost(message, repeated, tag = "8")]
    pub transfers: Vec<VolumeTransfer>,
    /// On the target of a move: why the round that runs does not go on; none while it does.
    #[prost(message, optional, tag = "9")]
    pub transfer_error: Option<TransferError>,
}

/// The last attempt at a round of copying has failed. The target tries on by itself, from where it came to.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TransferError {
    /// One word for programs, as `source_failed`.
    #[prost(string, tag = "1")]
    pub code: String,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// What was sent in this round so far, in all attempts.
    #[prost(uint64, tag = "3")]
    pub bytes_sent: u64,
}

/// The last round of a volume's copy that the target finished.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeTransfer {
    /// The volume.
    #[prost(string, tag = "1")]
    pub volume: String,
    /// The round that is done, as the move numbers them; 0 = none yet.
    #[prost(uint32, tag = "2")]
    pub round_done: u32,
    /// The volume's size.
    #[prost(uint64, tag = "3")]
    pub bytes_total: u64,
    /// What this round had to send.
    #[prost(uint64, tag = "4")]
    pub bytes_sent: u64,
    /// Over the whole volume at the source, as the source says; empty = not known.
    #[prost(string, tag = "5")]
    pub source_digest: String,
    /// Over the whole staged volume, computed by the target; empty = not known.
    #[prost(string, tag = "6")]
    pub target_digest: String,
}

/// A copy of a workload of which nothing that could run is left on a node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RemovedGrant {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// The grant that was to be discarded or retired.
    #[prost(message, required, tag = "2")]
    pub generation: Generation,
}

/// One container, as the runtime shows it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerStatus {
    /// The service that it runs.
    #[prost(string, tag = "1")]
    pub service: String,
    /// The runtime's id.
    #[prost(string, tag = "2")]
    pub container_id: String,
    /// In one word.
    #[prost(message, required, tag = "3")]
    pub state: ContainerState,
    /// Published ports as `127.0.0.1:8080->80/tcp`.
    #[prost(string, repeated, tag = "4")]
    pub ports: Vec<String>,
    /// Restarts since it was created.
    #[prost(uint32, tag = "5")]
    pub restart_count: u32,
    /// Of the last run; none while it runs.
    #[prost(int32, optional, tag = "6")]
    pub exit_code: Option<i32>,
    /// The image that it was made from, with digest where known.
    #[prost(string, tag = "7")]
    pub image: String,
    /// Start of the current run, in ms since 1970 by the node's clock; 0 = not known.
    #[prost(uint64, tag = "8")]
    pub started_at_ms: u64,
}

/// What an agent says about one workload.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StatusReport {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Its status; `observed_generation` must be the placement's, otherwise the report is passed over.
    #[prost(message, required, tag = "2")]
    pub status: WorkloadStatus,
}

wire_enum! {
    /// A workload's phase, as its agent sees it.
    Phase {
        /// Being prepared: pulling, creating, starting.
        1 => Pending "Pending",
        /// All services run, and are healthy where they have a check.
        2 => Running "Running",
        /// At least one service can't run; `reason` says why.
        3 => Failed "Failed",
        /// Stopped as asked.
        4 => Stopped "Stopped",
    }
}

wire_enum! {
    /// A container's state.
    ContainerState {
        /// Made, not started.
        1 => Created "created",
        /// Running, health not yet known or not asked.
        2 => Running "running",
        /// Running and healthy.
        3 => Healthy "healthy",
        /// Running and not healthy.
        4 => Unhealthy "unhealthy",
        /// Between two runs.
        5 => Restarting "restarting",
        /// Ended.
        6 => Exited "exited",
        /// Paused, or a state that we have no word for.
        7 => Other "other",
    }
}
