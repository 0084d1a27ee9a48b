//! Nodes: manifests in, manifests with status out.

use cara_core::command::ApplyNode;
use cara_core::model::Node;
use cara_core::{NodeId, Revision, State};
use cara_proto::rest::{API_VERSION, Accepts, AgentInfo, Metadata, NodeManifest, NodeSpec, NodeStatus, SessionView};

use super::certificate::{Warnings, certificate_view};
use super::node_conditions::conditions;
use super::node_network::network;
use super::{quantity, rfc3339};
use crate::error::ApiError;
use crate::sessions::Link;
use crate::version::{Version, is_outdated};

/// The command behind a node manifest.
///
/// # Errors
/// Names the field that isn't what it should be.
pub fn node_manifest(manifest: NodeManifest, new_id: NodeId) -> Result<ApplyNode, ApiError> {
    super::workload::check_header(&manifest.api_version, &manifest.kind, &["Node"])?;
    let meta = manifest.metadata;
    Ok(ApplyNode {
        node: new_id,
        name: meta.name,
        labels: meta.labels,
        annotations: meta.annotations,
        unschedulable: Some(manifest.spec.unschedulable),
        address: manifest.spec.hostname,
        expect_revision: (meta.resource_version > 0).then_some(Revision(meta.resource_version)),
    })
}

/// What the answering server knows about a node beside the state.
#[derive(Debug, Clone, Default)]
pub struct Around<'a> {
    /// This server's wall clock.
    pub now_ms: u64,
    /// The last sign of life that this server itself has heard, newer than the checkpoint, by its wall clock.
    pub last_heard_ms: Option<u64>,
    /// The way to the node, while it is connected here.
    pub link: Option<Link>,
    /// Silence until a node is offline.
    pub timeout_ms: u64,
    /// How long a node may wait for its first session.
    pub pending_stale_ms: u64,
    /// The least version of agents.
    pub agent_min_version: Option<&'a Version>,
    /// From when on the end of its certificate is told.
    pub warnings: Warnings,
}

impl Around<'_> {
    /// Has it waited too long for its first session?
    pub fn never_connected(&self, node: &Node) -> bool {
        node.waits_since_ms().is_some_and(|since| self.now_ms >= since.saturating_add(self.pending_stale_ms))
    }
}

/// A node as the API shows it.
pub fn node_view(state: &State, node: &Node, around: &Around<'_>) -> NodeManifest {
    let last_seen = around.last_heard_ms.unwrap_or(0).max(node.last_seen_ms);
    let certificate = node.certificate.as_ref();
    let facts = &node.facts;
    let quantities = |map: &std::collections::BTreeMap<String, u64>| {
        map.iter().map(|(name, value)| (name.clone(), quantity::format(name, *value))).collect()
    };
    let server_name = |id| state.server(id).map_or_else(|| format!("server {id}"), |s| s.name.clone());
    NodeManifest {
        api_version: API_VERSION.into(),
        kind: "Node".into(),
        metadata: Metadata {
            name: node.name.clone(),
            uid: node.id.to_string(),
            labels: node.labels.clone(),
            annotations: node.annotations.clone(),
            resource_version: node.revision.0,
            created_at: rfc3339(node.created_at_ms),
            updated_at: String::new(),
        },
        spec: NodeSpec { hostname: node.address.clone(), unschedulable: !node.schedulable },
        status: Some(NodeStatus {
            state: node.view().as_str().into(),
            connection: node.connection.as_str().into(),
            never_connected: around.never_connected(node),
            schedulable: node.schedulable,
            lost: node.lost,
            address: node.address.clone(),
            region: node.region.clone(),
            accepts: Accepts { app: node.accepts_app, database: node.accepts_database, build: node.accepts_build },
            workloads: state.placed_count(&node.id) as u64,
            last_heartbeat: (last_seen > 0).then(|| rfc3339(last_seen)),
            session: node.session.as_ref().map(|s| SessionView { epoch: s.epoch.0, server: server_name(s.server) }),
            certificate: certificate.map(|c| certificate_view(c, around.warnings, around.now_ms)),
            agent: certificate.map(|_| agent_info(node, around)),
            network: network(node, around),
            capacity: quantities(&facts.capacity),
            allocatable: quantities(&facts.allocatable),
            conditions: conditions(state, node, around),
        }),
    }
}

fn agent_info(node: &Node, around: &Around<'_>) -> AgentInfo {
    let facts = &node.facts;
    AgentInfo {
        version: facts.agent_version.clone(),
        commit: facts.agent_commit.clone(),
        outdated: is_outdated(&facts.agent_version, around.agent_min_version),
        os: facts.os.clone(),
        os_image: facts.os_image.clone(),
        arch: facts.arch.clone(),
        hostname: facts.hostname.clone(),
        kernel: facts.kernel.clone(),
        runtime: facts.runtime.clone(),
        feature_level: node.feature_level,
    }
}
