//! Nodes: the manifest that people apply and the status that the system adds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Metadata, Network};

/// A node, in and out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeManifest {
    /// Always `caravanserai/v1`.
    #[cfg_attr(feature = "openapi", schemars(extend("const" = super::API_VERSION)))]
    pub api_version: String,
    /// Always `Node`.
    #[cfg_attr(feature = "openapi", schemars(extend("const" = "Node")))]
    pub kind: String,
    /// Name and labels.
    pub metadata: Metadata,
    /// What the operator wants.
    #[serde(default)]
    pub spec: NodeSpec,
    /// What is; ignored on the way in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
}

/// Written by the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSpec {
    /// Informational.
    #[serde(default)]
    pub hostname: String,
    /// Cordoned: takes no new workloads.
    #[serde(default)]
    pub unschedulable: bool,
}

/// Written by the leader, from what it hears of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// `Ready`, `NotReady` or `Draining`: derived from the two axes below.
    pub state: String,
    /// `pending`, `online` or `offline`.
    pub connection: String,
    /// It was let in or declared a while ago (5 minutes, unless the servers are told otherwise) and has never connected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_connected: bool,
    /// Takes new workloads.
    pub schedulable: bool,
    /// An operator gave it up; until its next session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// `host:port` or host under which others reach the node; empty until it enrols.
    #[serde(default)]
    pub address: String,
    /// Where it stands, as the operator has said (`PUT /api/v1/nodes/{node}/region`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Which kinds it takes.
    pub accepts: Accepts,
    /// How many workloads are placed here.
    pub workloads: u64,
    /// The last heartbeat known; coarse (about 30 s) on a server that isn't the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<String>,
    /// The agent's open session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionView>,
    /// The agent's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateView>,
    /// What the agent says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentInfo>,
    /// Where the node is in the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Kubernetes-style quantities.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, String>,
    /// What is left for workloads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, String>,
    /// At most one per type.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Which kinds of workloads a node takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Accepts {
    /// Apps and projects.
    pub app: bool,
    /// Databases.
    pub database: bool,
    /// Image builds.
    pub build: bool,
}

/// The open session of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Rises with each session of the node.
    pub epoch: u64,
    /// Name of the server that holds it.
    pub server: String,
}

/// A node's certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CertificateView {
    /// `ok`, `expiring` (21 d left), `critical` (7 d left), `expired`, `revoked` or `unknown`.
    pub state: String,
    /// Whole days left; negative once expired.
    pub days_remaining: i64,
    /// End of validity.
    pub not_after: String,
    /// Rises with each renewal.
    pub generation: u64,
    /// SHA-256 of the certificate, hex.
    pub fingerprint: String,
}

/// What an agent reports of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Version of `cara-agent`.
    pub version: String,
    /// From which source it was built; empty = it has not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// Below the least version that the servers ask for, or it has not said its version.
    #[serde(default)]
    pub outdated: bool,
    /// For example `linux`.
    pub os: String,
    /// For example `Debian GNU/Linux 12 (bookworm)`; empty = it has not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os_image: String,
    /// For example `x86_64`.
    pub arch: String,
    /// What the machine calls itself; empty = it has not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Container engine and its version.
    pub runtime: String,
    /// The highest feature level that it supports; 0 = it has not said.
    #[serde(default)]
    pub feature_level: u32,
}

/// A typed statement about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// For example `Heartbeat`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// One sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The last sign that it rests on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_heartbeat_time: String,
    /// When `status` last changed; absent when that is not kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_transition_time: String,
}

/// One change of a node's connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConnectionEvent {
    /// When the leader decided it.
    pub at: String,
    /// Status before.
    pub from: String,
    /// Status after.
    pub to: String,
    /// Why.
    pub reason: String,
}
