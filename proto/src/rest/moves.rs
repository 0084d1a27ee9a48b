//! Moves: a workload goes to another node, each step proven before the next. Keys are snake_case, as for all resources
//! that span several nodes.

use serde::{Deserialize, Serialize};

use super::Rejection;

/// Body of `POST /api/v1/{apps,databases,projects}/{name}/move`; all optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// Id or name of the node to go to; empty or absent = one is chosen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_id: String,
    /// How long the source may take to stop, and the target to become healthy; absent = 300 s, at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_timeout_s: Option<u64>,
    /// Attempts at a phase that fails, until the move is rolled back; absent = 5, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Between two attempts; absent = 3 s, at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// How long the old copy of what has no state goes on after the switch, so that clients can follow; absent = 5 s,
    /// 0 = none, at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_delay_s: Option<u64>,
    /// Say what would happen, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// A move, running or over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct MoveView {
    /// Never given twice.
    pub id: String,
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// Id of the node that it leaves.
    pub from: String,
    /// Name of the node that it leaves.
    pub from_node: String,
    /// Id of the node that it goes to.
    pub to: String,
    /// Name of the node that it goes to.
    pub to_node: String,
    /// The scheduler chose the target.
    pub auto_target: bool,
    /// The drain that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_id: Option<String>,
    /// Two running copies could damage data: the source stops before the target starts.
    pub stateful: bool,
    /// `preflight`, `stop_source`, `copy_volumes`, `place`, `verify`, `stop_old`, `finalize`, `done` or `rollback`.
    pub phase: String,
    /// `running`, `succeeded`, `failed` or `rolled_back`.
    pub status: String,
    /// Attempts at the present phase, from 1.
    pub attempt: u32,
    /// The round of copying that is wanted, from 1; 0 = nothing to copy.
    pub round: u32,
    /// The newest 64, oldest first.
    pub steps: Vec<MoveStepView>,
    /// When it began.
    pub started_at: String,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// When the source was recorded as stopped; absent when nothing had to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<String>,
    /// From the recorded stop to the switch, as measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downtime_ms: Option<u64>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It can still be taken back.
    pub cancellable: bool,
    /// How far the copying is; absent when there is nothing to copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<MoveTransfer>,
    /// One sentence: what it waits for, and what the operator can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
}

/// One thing that happened in a move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct MoveStepView {
    /// In which phase.
    pub phase: String,
    /// `ok`, `retry`, `waiting` or `failed`.
    pub outcome: String,
    /// For people.
    pub detail: String,
    /// When.
    pub at: String,
    /// Which attempt it was, from 1.
    pub attempt: u32,
}

/// How far a move's copying is. Between two rounds it comes from the leader's memory: after a change of leader it is
/// coarse until the target reports again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct MoveTransfer {
    /// Content of the volumes; 0 = not known yet.
    pub bytes_total: u64,
    /// Of these: at the target.
    pub bytes_done: u64,
    /// Content that was sent in this round.
    pub bytes_sent: u64,
    /// Lately; 0 while nothing is sent.
    pub rate_bytes_per_second: u64,
    /// The round that these numbers are about, from 1.
    pub round: u32,
    /// Why it doesn't go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Answer to a move with `dry_run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct MovePlan {
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// Name of the node that it would leave.
    pub from_node: String,
    /// Name of the node that it would go to.
    pub to_node: String,
    /// The scheduler would choose the target.
    pub auto_target: bool,
    /// The source would stop before the target starts.
    pub stateful: bool,
    /// In order.
    pub phases: Vec<String>,
    /// What would have to be copied; absent = nothing, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Absent = not known. 0 for what has no state: the target works before the source stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_downtime_ms: Option<u64>,
    /// Why the other nodes were not chosen; the first 16 by id.
    pub rejected: Vec<Rejection>,
    /// What the operator should know first.
    pub warnings: Vec<String>,
}

/// A list without a manifest's frame: moves, drains, volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "{T}Items"))]
pub struct Items<T> {
    /// Never null.
    pub items: Vec<T>,
}

/// Body of `PUT /api/v1/apps/{name}/node` and `POST /api/v1/apps/{name}/move-with-volumes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodeChoice {
    /// Id or name; empty = one is chosen.
    pub node_id: String,
}

/// The older view of an app's move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AppMoveView {
    /// The move's id; empty when there was nothing to move.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Name of the app.
    pub service_name: String,
    /// Id of the node that it leaves.
    pub from: String,
    /// Id of the node that it goes to.
    pub to: String,
    /// `running`, `succeeded` or `failed`.
    pub status: String,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In order.
    pub steps: Vec<AppMoveStep>,
}

/// A step of the older view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AppMoveStep {
    /// `stop_app`, `move_volume:<volume>`, `update_placement` or `resume_app`.
    pub name: String,
    /// `pending`, `running`, `succeeded` or `failed`.
    pub status: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Absent until it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Absent until it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
}
