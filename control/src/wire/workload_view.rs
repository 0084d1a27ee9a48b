//! Workloads out: the spec as it can be applied again, and what is.

use cara_core::model::{Ingress, Workload, WorkloadKind};
use cara_core::{NodeId, State};
use cara_proto::rest;

use super::service::service_view;
use super::{reached_at, rfc3339};
use crate::engines;

/// A workload as the API shows it; its spec can be applied again as it is.
pub fn workload_view(state: &State, from: &Workload) -> rest::WorkloadManifest {
    rest::WorkloadManifest {
        api_version: rest::API_VERSION.into(),
        kind: from.kind.as_str().into(),
        metadata: rest::Metadata {
            name: from.name.clone(),
            uid: from.uid.to_string(),
            labels: from.labels.clone(),
            annotations: from.annotations.clone(),
            resource_version: from.revision.0,
            created_at: rfc3339(from.created_at_ms),
            updated_at: rfc3339(from.updated_at_ms),
        },
        spec: spec_view(state, from),
        status: Some(status_view(state, from)),
    }
}

fn spec_view(state: &State, from: &Workload) -> rest::WorkloadSpec {
    let mut services: Vec<_> = from.spec.services.iter().map(service_view).collect();
    let mut view = rest::WorkloadSpec {
        volumes: from
            .spec
            .volumes
            .iter()
            .map(|v| rest::VolumeSpec { name: v.name.clone(), r#type: v.kind.as_str().into() })
            .collect(),
        ingress: from.spec.ingress.iter().map(ingress_view).collect(),
        node_selector: from.spec.selector.clone(),
        node: from.explicit_node.as_ref().map(|id| state.node(id).map_or(id.to_string(), |n| n.name.clone())),
        expire_at: from.spec.expire_at_ms.map(rfc3339),
        databases: from.spec.dependencies.clone(),
        suspended: from.spec.suspended,
        ..rest::WorkloadSpec::default()
    };
    if from.kind == WorkloadKind::Project {
        view.services = services;
    } else if let Some(database) = &from.spec.database {
        // Its container follows from the engine, and has the password in its environment.
        view.volumes = Vec::new();
        view.engine = database.engine.as_str().into();
        view.version = database.version.clone();
        view.wal_archive = engines::has_archive(from);
        view.resources = services.pop().and_then(|single| single.resources);
    } else if let Some(single) = services.pop() {
        view.image = single.image;
        view.command = single.command;
        view.args = single.args;
        view.env = single.env;
        view.ports = single.ports;
        view.volume_mounts = single.volume_mounts;
        view.health_check = single.health_check;
        view.resources = single.resources;
    }
    view
}

fn ingress_view(from: &Ingress) -> rest::Ingress {
    rest::Ingress {
        name: from.name.clone(),
        host: from.host.clone(),
        target: rest::IngressTarget {
            service: from.service.clone(),
            port: u16::try_from(from.port).unwrap_or_default(),
        },
        access: (!from.scope.is_empty()).then(|| rest::IngressAccess { scope: from.scope.clone() }),
    }
}

fn status_view(state: &State, from: &Workload) -> rest::WorkloadStatus {
    let node_name = |id: &NodeId| state.node(id).map_or_else(|| id.to_string(), |node| node.name.clone());
    let status = from.status.as_ref();
    let unplaced = from.placement.is_none() && from.tried;
    rest::WorkloadStatus {
        phase: from.phase().into(),
        placement: from.placement.as_ref().map(|p| rest::PlacementView {
            node_id: p.node.to_string(),
            node_name: node_name(&p.node),
            generation: p.generation.0,
            auto_placed: p.auto_placed,
        }),
        rejected: from
            .rejections
            .iter()
            .map(|r| rest::Rejection { node: node_name(&r.node), reason: r.reason.clone() })
            .collect(),
        reason: if unplaced { "NoNode".into() } else { status.map(|s| s.reason.clone()).unwrap_or_default() },
        message: match (unplaced, from.rejected_count) {
            (true, 0) => "there is no node yet; add one with: caractrl nodes add".into(),
            (true, n) => format!("none of the {n} nodes can take it"),
            (false, _) => status.map(|s| s.message.clone()).unwrap_or_default(),
        },
        observed_generation: status.map_or(0, |s| s.observed_generation.0),
        containers: status.map(|s| s.containers.iter().map(container_view).collect()).unwrap_or_default(),
        endpoints: endpoints(state, from),
        conditions: Vec::new(),
    }
}

/// Where the published ports are, on the node that has the placement.
fn endpoints(state: &State, from: &Workload) -> Vec<rest::Endpoint> {
    let Some(node) = from.placement.as_ref().and_then(|placement| state.node(&placement.node)) else {
        return Vec::new();
    };
    let mut endpoints = Vec::new();
    for service in &from.spec.services {
        for port in &service.ports {
            let Some(host_port) = port.host_port else { continue };
            let bound_to = match port.bind_address.as_str() {
                "" => "127.0.0.1",
                // All addresses of the node: the one that it is known by will do, if it is known.
                "0.0.0.0" | "::" if !node.address.is_empty() => &node.address,
                literal => literal,
            };
            let Some(address) = reached_at(bound_to, host_port) else { continue };
            endpoints.push(rest::Endpoint {
                service: service.name.clone(),
                container_port: u16::try_from(port.container_port).unwrap_or_default(),
                protocol: port.protocol.to_string(),
                address,
            });
        }
    }
    endpoints
}

fn container_view(from: &cara_core::model::ContainerStatus) -> rest::ContainerView {
    rest::ContainerView {
        service: from.service.clone(),
        id: from.container_id.clone(),
        state: from.state.as_str().into(),
        exit_code: i64::from(from.exit_code.unwrap_or_default()),
        restarts: u64::from(from.restart_count),
        started_at: rfc3339(from.started_at_ms),
    }
}
