//! A drain: empties one node, one verified move after the other. Databases first, then the rest; an app follows its
//! database. Cordon and plan are one entry; the first move that fails ends it, and the node stays cordoned.
//!
//! `Invariant:` at most one running drain of a node, and at most one running move of a drain.

use super::{MoveSettings, Rejection, WorkloadKind};
use crate::id::{DrainId, MoveId, NodeId, Revision, WorkloadUid};
use crate::wire::wire_enum;

/// A drain, running or over.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Drain {
    /// Never given twice.
    #[prost(message, required, tag = "1")]
    pub id: DrainId,
    /// The node that is emptied.
    #[prost(message, required, tag = "2")]
    pub node: NodeId,
    /// Its name, so that the record can be read when it is gone.
    #[prost(string, tag = "3")]
    pub node_name: String,
    /// Where everything shall go; none = each to the node that suits it.
    #[prost(message, optional, tag = "4")]
    pub target: Option<NodeId>,
    /// Whether it is over, and how.
    #[prost(message, required, tag = "5")]
    pub status: DrainStatus,
    /// Why it did not succeed, for people; empty otherwise.
    #[prost(string, tag = "6")]
    pub error: String,
    /// What was there at the start and can go, in the order of the moves.
    #[prost(message, repeated, tag = "7")]
    pub plan: Vec<WorkloadUid>,
    /// What no node can take; it stays.
    #[prost(message, repeated, tag = "8")]
    pub blocked: Vec<Blocked>,
    /// Its moves, in the order in which they ran.
    #[prost(message, repeated, tag = "9")]
    pub moves: Vec<MoveId>,
    /// How patient its moves are.
    #[prost(message, required, tag = "10")]
    pub settings: MoveSettings,
    /// How many steps there were: a command from a decision says which it saw last.
    #[prost(uint32, tag = "11")]
    pub step_count: u32,
    /// In ms since 1970.
    #[prost(uint64, tag = "12")]
    pub started_at_ms: u64,
    /// In ms since 1970; none while it runs.
    #[prost(uint64, optional, tag = "13")]
    pub finished_at_ms: Option<u64>,
    /// Set by apply.
    #[prost(message, required, tag = "14")]
    pub revision: Revision,
}

/// A workload that a drain can't move.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Blocked {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub workload: WorkloadUid,
    /// Its kind.
    #[prost(message, required, tag = "2")]
    pub kind: WorkloadKind,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Why, for people.
    #[prost(string, tag = "4")]
    pub reason: String,
    /// Why each node can't take it; the first 16, and only for the first 256 that are blocked.
    #[prost(message, repeated, tag = "5")]
    pub rejections: Vec<Rejection>,
}

wire_enum! {
    /// Whether a drain is over, and how.
    DrainStatus {
        /// Not over.
        1 => Running "running",
        /// The node is empty.
        2 => Succeeded "succeeded",
        /// A move failed, or something is blocked.
        3 => Failed "failed",
        /// An operator ended it.
        4 => Cancelled "cancelled",
    }
}

impl Drain {
    /// True until it is over.
    pub fn is_running(&self) -> bool {
        self.status == DrainStatus::Running
    }
}
