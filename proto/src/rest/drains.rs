//! Drains: a node is emptied, one verified move after the other.

use serde::{Deserialize, Serialize};

use super::Rejection;

/// A drain, running or over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct DrainView {
    /// Never given twice.
    pub id: String,
    /// Id of the node that is emptied.
    pub node: String,
    /// Its name.
    pub node_name: String,
    /// Id of the node where everything goes; absent = each workload to the node that suits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// `running`, `succeeded`, `failed` or `cancelled`.
    pub status: String,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What goes, in the order of the moves as it was at the start.
    pub plan: Vec<DrainItem>,
    /// What no node can take.
    pub blocked: Vec<BlockedItem>,
    /// Ids of its moves, in the order in which they ran.
    pub moves: Vec<String>,
    /// How many workloads have gone.
    pub done: u64,
    /// How many were on the node: planned and blocked ones.
    pub total: u64,
    /// When it began.
    pub started_at: String,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
}

/// Answer to a drain with `dry_run=true`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct DrainPlan {
    /// What would go, in order.
    pub plan: Vec<DrainItem>,
    /// What no node can take now.
    pub blocked: Vec<BlockedItem>,
}

/// A workload that a drain moves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct DrainItem {
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name; its uid once it is gone.
    pub name: String,
    /// Id of the node that it goes to; absent until that is decided, when its turn comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_node: Option<String>,
}

/// A workload that a drain can't move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct BlockedItem {
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// One sentence.
    pub reason: String,
    /// Why each node can't take it; the first 16 by id.
    pub reasons: Vec<Rejection>,
}
