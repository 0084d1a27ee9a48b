//! Where a node is in the network, and how fast the way to it is.

use serde::{Deserialize, Serialize};

/// Network facts of a node. All but the address are known only while it is connected, and to the leader.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// IP address that the agent advertises; empty when it advertises a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Host name that the agent advertises; empty when it advertises an IP address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dns_name: String,
    /// How other nodes reach it: `Direct`, or `Relayed` through a server, because it can't be dialled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// Port at which its agent answers other agents for its volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_port: Option<u16>,
    /// As measured by the last copy of a volume; absent until there was one under this leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
}

/// What a node's connection carried, such as `120Mbps`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Throughput {
    /// To the node; empty = not measured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub download: String,
    /// From the node; empty = not measured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub upload: String,
    /// When the newer of the two was measured.
    pub last_test_time: String,
}
