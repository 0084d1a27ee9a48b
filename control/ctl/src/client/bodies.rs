//! What the API says about moves, drains, placement and lost nodes, as far as this program needs it. Fields that are
//! absent read as empty and unknown ones are passed over, so that an older or newer server is understood too; output
//! for programs is printed as it came and never goes through here.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A move, running or over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Move {
    /// Never given twice.
    pub id: String,
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// Name of the node that it leaves.
    pub from_node: String,
    /// Name of the node that it goes to.
    pub to_node: String,
    /// The scheduler chose the target.
    pub auto_target: bool,
    /// The drain that it belongs to.
    pub drain_id: Option<String>,
    /// Two running copies could damage data, so it stops before it starts elsewhere.
    pub stateful: bool,
    /// What it does now, for example `copy_volumes`.
    pub phase: String,
    /// `running`, `succeeded`, `failed` or `rolled_back`.
    pub status: String,
    /// The newest steps, oldest first.
    pub steps: Vec<MoveStep>,
    /// RFC 3339.
    pub started_at: String,
    /// RFC 3339; none while it runs.
    pub finished_at: Option<String>,
    /// When the source was recorded as stopped, RFC 3339.
    pub stopped_at: Option<String>,
    /// From the recorded stop to the switch; none until then, and when nothing had to stop.
    pub downtime_ms: Option<u64>,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// It can still be taken back.
    pub cancellable: bool,
    /// Bytes on their way.
    pub transfer: Option<Transfer>,
    /// One sentence: what it waits for, and the operator's next step.
    pub waiting_for: Option<String>,
}

/// One thing that happened in a move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct MoveStep {
    /// In which phase.
    pub phase: String,
    /// `ok`, `retry`, `waiting` or `failed`.
    pub outcome: String,
    /// For people.
    pub detail: String,
    /// RFC 3339.
    pub at: String,
    /// Which attempt it was, from 1.
    pub attempt: u64,
}

/// How far the copying is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Transfer {
    /// Bytes of the volumes.
    pub bytes_total: u64,
    /// Bytes that the target has, copied or found there.
    pub bytes_done: u64,
    /// Bytes that went over the network.
    pub bytes_sent: u64,
    /// 0 = not known.
    pub rate_bytes_per_second: u64,
    /// The round of copying, from 1.
    pub round: u64,
    /// What stands in the way.
    pub error: Option<String>,
}

/// What a move would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct MovePlan {
    /// Name of the node that it would leave.
    pub from_node: String,
    /// Name of the node that it would go to.
    pub to_node: String,
    /// The scheduler chose the target.
    pub auto_target: bool,
    /// It would stop before it starts elsewhere.
    pub stateful: bool,
    /// In order.
    pub phases: Vec<String>,
    /// Bytes to copy; none = nothing to copy, or not known.
    pub bytes: Option<u64>,
    /// None = not known.
    pub predicted_downtime_ms: Option<u64>,
    /// Why the other nodes were not chosen.
    pub rejected: Vec<NodeReason>,
    /// What the operator should know first.
    pub warnings: Vec<String>,
}

/// Why a node was not chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeReason {
    /// Name of the node.
    pub node: String,
    /// For example `cordoned`.
    pub reason: String,
}

/// A drain, running or over; in a dry run only `plan` and `blocked` are set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Drain {
    /// Never given twice.
    pub id: String,
    /// Name of the node that is emptied.
    pub node_name: String,
    /// Name of the node where everything goes.
    pub target_name: Option<String>,
    /// `running`, `succeeded`, `failed` or `cancelled`.
    pub status: String,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// What goes, in the order of the moves.
    pub plan: Vec<DrainItem>,
    /// What no node can take.
    pub blocked: Vec<Blocked>,
    /// Ids of its moves, in the order in which they ran.
    pub moves: Vec<String>,
    /// How many workloads have gone.
    pub done: u64,
    /// How many shall go.
    pub total: u64,
    /// RFC 3339.
    pub started_at: String,
    /// RFC 3339; none while it runs.
    pub finished_at: Option<String>,
}

/// A workload that a drain moves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct DrainItem {
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// Name of the node that it would go to; none = decided when it is its turn.
    pub to_node: Option<String>,
}

/// A workload that a drain can't move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Blocked {
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// Why each node can't take it.
    pub reasons: Vec<NodeReason>,
}

/// Where a workload is and where it may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Placement {
    /// Name of its node; none while it is unplaced.
    pub node_name: Option<String>,
    /// The scheduler chose it.
    pub auto_placed: bool,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Ids of the nodes that may have it.
    pub eligible_node_ids: Vec<String>,
    /// Why the others may not.
    pub rejected: Vec<NodeReason>,
}

/// What came of declaring a node lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Lost {
    /// Workloads whose data on the node is given up.
    pub given_up: Vec<GivenUp>,
}

/// A workload whose data is given up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct GivenUp {
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// Its volumes.
    pub volumes: Vec<String>,
}

/// The older view of an app's move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct AppMove {
    /// Never given twice; empty when there was nothing to wait for.
    pub id: String,
    /// `running`, `succeeded` or `failed`.
    pub status: String,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// What was done, oldest first.
    pub steps: Vec<AppMoveStep>,
}

/// A step of the older view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct AppMoveStep {
    /// For example `update_placement`.
    pub name: String,
    /// `pending`, `running`, `succeeded` or `failed`.
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
}
