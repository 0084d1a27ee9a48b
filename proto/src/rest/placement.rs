//! Placement: where a workload is, and where it may be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Rejection;

/// `GET /api/v1/{apps,databases,projects}/{name}/placement`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct PlacementReport {
    /// Id of its node; absent while it is unplaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Name of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The scheduler chose it.
    pub auto_placed: bool,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Nodes that could take it now, its own one included, by id.
    pub eligible_node_ids: Vec<String>,
    /// Why the others can't, by id.
    pub rejected: Vec<Rejection>,
}

/// Body of `PUT` on the same path. Moves nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlacementRequest {
    /// Labels that a node must have; replaces all.
    pub node_selector: BTreeMap<String, String>,
}
