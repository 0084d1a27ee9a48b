//! Nodes: manifests in, manifests with status out.

use cara_core::command::ApplyNode;
use cara_core::model::{Connection, Node};
use cara_core::{NodeId, Revision, State};
use cara_proto::rest::{
    API_VERSION, Accepts, AgentInfo, Condition, Metadata, Network, NodeManifest, NodeSpec, NodeStatus, SessionView,
};

use super::certificate::{Warnings, certificate_view, identity_condition};
use super::{quantity, rfc3339};
use crate::error::ApiError;

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

/// A node as the API shows it. `last_heard_ms` is the leader's own knowledge, newer than the checkpoint.
pub fn node_view(
    state: &State,
    node: &Node,
    last_heard_ms: Option<u64>,
    warnings: Warnings,
    now_ms: u64,
) -> NodeManifest {
    let last_seen = last_heard_ms.unwrap_or(0).max(node.last_seen_ms);
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
            schedulable: node.schedulable,
            lost: node.lost,
            address: node.address.clone(),
            accepts: Accepts { app: node.accepts_app, database: node.accepts_database, build: node.accepts_build },
            workloads: state.placed_count(&node.id) as u64,
            last_heartbeat: (last_seen > 0).then(|| rfc3339(last_seen)),
            session: node.session.as_ref().map(|s| SessionView { epoch: s.epoch.0, server: server_name(s.server) }),
            certificate: certificate.map(|c| certificate_view(c, warnings, now_ms)),
            agent: certificate.map(|_| AgentInfo {
                version: facts.agent_version.clone(),
                os: facts.os.clone(),
                arch: facts.arch.clone(),
                kernel: facts.kernel.clone(),
                runtime: facts.runtime.clone(),
                feature_level: node.feature_level,
            }),
            network: (!node.address.is_empty()).then(|| Network { ip: node.address.clone() }),
            capacity: quantities(&facts.capacity),
            allocatable: quantities(&facts.allocatable),
            conditions: [Some(heartbeat_condition(state, node)), identity_condition(node, now_ms)]
                .into_iter()
                .flatten()
                .collect(),
        }),
    }
}

fn heartbeat_condition(state: &State, node: &Node) -> Condition {
    let (status, reason) = match node.connection {
        Connection::Pending => ("Unknown", "NeverConnected"),
        Connection::Online => ("True", "HeartbeatRecent"),
        Connection::Offline => ("False", "HeartbeatStale"),
    };
    let last = state.node_events(&node.id).last();
    Condition {
        r#type: "Heartbeat".into(),
        status: status.into(),
        reason: reason.into(),
        message: last.map(|event| event.reason.clone()).unwrap_or_default(),
        last_transition_time: last.map(|event| rfc3339(event.at_ms)).unwrap_or_default(),
    }
}
