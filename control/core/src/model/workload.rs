//! A workload: what runs, and where.
//!
//! ```text
//! unplaced --grant--> placed(generation) --new spec: grant again, same node--> placed(generation + n)
//!     |                  | delete
//!   delete               v
//!     v               deleting --agent proves removal--> gone
//!    gone
//! ```
//! A running move (`Move`) may hold it meanwhile: then nothing but the move changes spec or placement.
//!
//! `Invariant:` a generation is granted once; `placement.generation <= last_generation`. A deletion is never undone.

use super::{Phase, WorkloadSpec, WorkloadStatus};
use crate::id::{Generation, NodeId, Revision, WorkloadUid};
use crate::wire::wire_enum;
use std::collections::BTreeMap;

/// A workload.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Workload {
    /// Never given twice.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Unique among workloads of its kind.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Never changes.
    #[prost(message, required, tag = "3")]
    pub kind: WorkloadKind,
    /// By the user.
    #[prost(btree_map = "string, string", tag = "4")]
    pub labels: BTreeMap<String, String>,
    /// By the user.
    #[prost(btree_map = "string, string", tag = "5")]
    pub annotations: BTreeMap<String, String>,
    /// By the user.
    #[prost(message, required, tag = "6")]
    pub spec: WorkloadSpec,
    /// The node that the user named; none = the scheduler chooses.
    #[prost(message, optional, tag = "7")]
    pub explicit_node: Option<NodeId>,
    /// Asked to be deleted; its node removes it, then it is gone. Never taken back.
    #[prost(bool, tag = "8")]
    pub deleting: bool,
    /// By the leader.
    #[prost(message, optional, tag = "9")]
    pub placement: Option<Placement>,
    /// The highest generation ever granted.
    #[prost(message, required, tag = "10")]
    pub last_generation: Generation,
    /// By the agent; cleared when the placement is revoked.
    #[prost(message, optional, tag = "11")]
    pub status: Option<WorkloadStatus>,
    /// Why the last attempt to place it found no node; empty when placed. The first 16 nodes by id.
    #[prost(message, repeated, tag = "12")]
    pub rejections: Vec<Rejection>,
    /// How many nodes the last attempt rejected.
    #[prost(uint32, tag = "13")]
    pub rejected_count: u32,
    /// True when an attempt to place it has failed since it was last placed or created: tells "no node exists" from
    /// "not tried yet".
    #[prost(bool, tag = "14")]
    pub tried: bool,
    /// In ms since 1970.
    #[prost(uint64, tag = "15")]
    pub created_at_ms: u64,
    /// In ms since 1970; by the user's changes only.
    #[prost(uint64, tag = "16")]
    pub updated_at_ms: u64,
    /// Set by apply.
    #[prost(message, required, tag = "17")]
    pub revision: Revision,
    /// The generation under which its managed volumes were made; part of their names on the node. 0 = from before moves:
    /// their names have no such part. Changes only when a move commits, or when the data were given up.
    #[prost(message, required, tag = "18")]
    pub data_generation: Generation,
    /// The data were given up: the next grant begins with new, empty volumes.
    #[prost(bool, tag = "19")]
    pub fresh_data: bool,
}

/// A workload bound to a node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Placement {
    /// Where.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Under which grant.
    #[prost(message, required, tag = "2")]
    pub generation: Generation,
    /// When, in ms since 1970.
    #[prost(uint64, tag = "3")]
    pub assigned_at_ms: u64,
    /// True when the scheduler chose the node, false when the user did.
    #[prost(bool, tag = "4")]
    pub auto_placed: bool,
}

/// Why a node was not taken.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Rejection {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// For people: `offline`, `cordoned`, `lacks label site=hall-b`.
    #[prost(string, tag = "2")]
    pub reason: String,
}

wire_enum! {
    /// What the user called it; inside, all are one.
    WorkloadKind {
        /// One service.
        1 => App "App",
        /// One service with an engine's rules.
        2 => Database "Database",
        /// Services that share a node and a network.
        3 => Project "Project",
    }
}

impl Workload {
    /// True when two running copies could damage data; such a workload keeps its claim on a lost node.
    pub fn is_stateful(&self) -> bool {
        self.kind == WorkloadKind::Database || self.spec.has_state()
    }

    /// The phase as users see it: `Terminating` while it is being deleted, `Pending` until a node has it, `Scheduled`
    /// until that node reports this generation, then what the node reports.
    pub fn phase(&self) -> &'static str {
        if self.deleting {
            return "Terminating";
        }
        let Some(placement) = &self.placement else { return "Pending" };
        match &self.status {
            Some(status) if status.observed_generation == placement.generation => match status.phase {
                Phase::Pending => "Scheduled",
                Phase::Running => "Running",
                Phase::Failed => "Failed",
                Phase::Stopped => "Stopped",
            },
            Some(_) | None => "Scheduled",
        }
    }
}
