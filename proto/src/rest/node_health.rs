//! How a node is, and where it stands.

use serde::{Deserialize, Serialize};

use super::Condition;

/// Answer of `GET /api/v1/nodes/{node}/health`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeHealth {
    /// The node's name.
    pub node: String,
    /// `pending`, `online` or `offline`.
    pub connection: String,
    /// It was let in or declared a while ago and has never connected.
    pub never_connected: bool,
    /// `Heartbeat` and `Ready`; `DiskPressure` and `MemoryPressure` while its agent says what its machine has.
    pub conditions: Vec<Condition>,
}

/// Body of `PUT /api/v1/nodes/{node}/region`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeRegion {
    /// Where the node stands, in the operator's own words; empty removes it. At most 512 bytes.
    pub region: String,
}
