//! Nodes that an operator gives up, and the volumes that stay behind on nodes.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/nodes/{node}/lost`; all optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LostRequest {
    /// Without it nothing happens: the answer says what would be given up.
    #[serde(default)]
    pub confirm: bool,
    /// For the audit and the moves that end; at most 1 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What was given up with a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct LostView {
    /// Its name.
    pub node: String,
    /// Workloads that had state there; they begin anew, elsewhere, with empty volumes.
    pub given_up: Vec<GivenUp>,
    /// Ids of the moves that it ended, or that go on without it.
    pub moves: Vec<String>,
}

/// A workload whose data on a node is given up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct GivenUp {
    /// `app`, `database` or `project`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// Its managed volumes.
    pub volumes: Vec<String>,
}

/// A volume that is kept on a node and belongs to no running workload there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct NodeVolume {
    /// Name of the workload that it was made for; its uid once it is gone.
    pub workload: String,
    /// Its name in the workload's spec.
    pub volume: String,
    /// The generation of its content; 0 = from before moves.
    pub data_generation: u64,
    /// Its content; 0 = unknown.
    pub bytes: u64,
    /// `quarantined`: kept until an operator decides; `removing`: its agent was told to remove it.
    pub state: String,
    /// Its name in the node's container engine, and in the path by which it is removed; empty until its agent has reported
    /// to a server that keeps it.
    pub engine_name: String,
}
