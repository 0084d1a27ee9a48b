//! Workloads: manifests in, manifests with status out. An App's single container stands directly in its spec; inside it
//! is a service named after the App.

use std::collections::BTreeMap;

use cara_core::command::ApplyWorkload;
use cara_core::model::{
    Ingress, Port, Protocol, ServiceSpec, VolumeKind, VolumeMount, VolumeSpec, Workload, WorkloadKind, WorkloadSpec,
};
use cara_core::{NodeId, Revision, State, WorkloadUid};
use cara_proto::rest;

use super::{parse_time, rfc3339};
use crate::error::ApiError;

/// The service that an App's container becomes.
const APP_SERVICE: &str = "app";

/// The kind behind the first word of a path.
pub fn kind_of(path: &str) -> Option<WorkloadKind> {
    match path {
        "apps" => Some(WorkloadKind::App),
        "projects" => Some(WorkloadKind::Project),
        "databases" => Some(WorkloadKind::Database),
        _ => None,
    }
}

/// The first word of a kind's path.
pub fn kind_path(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::App => "apps",
        WorkloadKind::Project => "projects",
        WorkloadKind::Database => "databases",
    }
}

/// Refuses another version or kind, by name.
pub(super) fn check_header(api_version: &str, kind: &str, allowed: &[&str]) -> Result<(), ApiError> {
    if api_version != rest::API_VERSION {
        return Err(ApiError::invalid(format!("apiVersion: is {api_version:?}, must be {:?}", rest::API_VERSION)));
    }
    if !allowed.contains(&kind) {
        return Err(ApiError::invalid(format!("kind: is {kind:?}, must be {}", allowed.join(" or "))));
    }
    Ok(())
}

/// The command behind a workload manifest. `node_by_name` finds the node that the user names.
///
/// # Errors
/// Names the field that isn't what it should be; the rules of the domain are checked where they are applied.
pub fn apply_workload(
    state: &State,
    kind: WorkloadKind,
    manifest: rest::WorkloadManifest,
    new_uid: WorkloadUid,
) -> Result<ApplyWorkload, ApiError> {
    check_header(&manifest.api_version, &manifest.kind, &[kind.as_str()])?;
    let meta = manifest.metadata;
    let node = match &manifest.spec.node {
        Some(name) => Some(find_node(state, name)?),
        None => None,
    };
    Ok(ApplyWorkload {
        uid: new_uid,
        kind,
        name: meta.name,
        labels: meta.labels,
        annotations: meta.annotations,
        spec: spec(kind, manifest.spec)?,
        node,
        expect_revision: (meta.resource_version > 0).then_some(Revision(meta.resource_version)),
    })
}

fn find_node(state: &State, name: &str) -> Result<NodeId, ApiError> {
    let found = state.node_by_name(name).or_else(|| state.node(&NodeId::from(name)));
    found.map(|node| node.id.clone()).ok_or_else(|| ApiError::invalid(format!("spec.node: there is no node {name:?}")))
}

fn spec(kind: WorkloadKind, from: rest::WorkloadSpec) -> Result<WorkloadSpec, ApiError> {
    let single = rest::ServiceSpec {
        name: APP_SERVICE.into(),
        image: from.image,
        command: from.command,
        args: from.args,
        env: from.env,
        ports: from.ports,
        volume_mounts: from.volume_mounts,
    };
    let has_single = single != rest::ServiceSpec { name: APP_SERVICE.into(), ..rest::ServiceSpec::default() };
    let services = match kind {
        WorkloadKind::Project if has_single => {
            return Err(ApiError::invalid("spec: a Project lists its containers in spec.services, not in spec itself"));
        }
        WorkloadKind::Project => from.services,
        WorkloadKind::App | WorkloadKind::Database if !from.services.is_empty() => {
            return Err(ApiError::invalid(
                "spec.services: only a Project has services; an App has its image in spec.image",
            ));
        }
        WorkloadKind::App | WorkloadKind::Database => vec![single],
    };
    let path = |at: usize| match kind {
        WorkloadKind::Project => format!("spec.services[{at}]"),
        WorkloadKind::App | WorkloadKind::Database => "spec".to_owned(),
    };
    Ok(WorkloadSpec {
        services: services.into_iter().enumerate().map(|(at, s)| service(&path(at), s)).collect::<Result<_, _>>()?,
        volumes: from.volumes.into_iter().enumerate().map(volume).collect::<Result<_, _>>()?,
        ingress: from.ingress.into_iter().map(ingress).collect(),
        expire_at_ms: match from.expire_at {
            Some(text) => Some(parse_time(&text).ok_or_else(|| {
                ApiError::invalid(format!("spec.expireAt: {text:?} is not a time like 2030-01-31T12:00:00Z"))
            })?),
            None => None,
        },
        selector: from.node_selector,
    })
}

fn service(path: &str, from: rest::ServiceSpec) -> Result<ServiceSpec, ApiError> {
    let mut env = BTreeMap::new();
    for (at, var) in from.env.into_iter().enumerate() {
        if env.insert(var.name.clone(), var.value).is_some() {
            return Err(ApiError::invalid(format!("{path}.env[{at}].name: {:?} is there twice", var.name)));
        }
    }
    let ports = from.ports.into_iter().enumerate().map(|(at, p)| port(&format!("{path}.ports[{at}]"), p));
    Ok(ServiceSpec {
        name: from.name,
        image: from.image,
        command: from.command,
        args: from.args,
        env,
        volume_mounts: from
            .volume_mounts
            .into_iter()
            .map(|m| VolumeMount { name: m.name, mount_path: m.mount_path })
            .collect(),
        ports: ports.collect::<Result<_, _>>()?,
        health_check: None,
    })
}

fn port(path: &str, from: rest::Port) -> Result<Port, ApiError> {
    let protocol = from.protocol.as_deref().unwrap_or("tcp");
    let bind = match from.bind_address.as_deref() {
        None | Some("private") => "127.0.0.1",
        Some("public") => "0.0.0.0",
        Some(literal) => literal,
    };
    Ok(Port {
        container_port: u32::from(from.container),
        host_port: from.host.map(u32::from),
        protocol: Protocol::parse(protocol)
            .ok_or_else(|| ApiError::invalid(format!("{path}.protocol: is {protocol:?}, must be tcp or udp")))?,
        bind_address: bind.to_owned(),
    })
}

fn volume((at, from): (usize, rest::VolumeSpec)) -> Result<VolumeSpec, ApiError> {
    let kind = VolumeKind::parse(&from.r#type).ok_or_else(|| {
        ApiError::invalid(format!("spec.volumes[{at}].type: is {:?}, must be Ephemeral or Managed", from.r#type))
    })?;
    Ok(VolumeSpec { name: from.name, kind })
}

fn ingress(from: rest::Ingress) -> Ingress {
    Ingress {
        name: from.name,
        host: from.host,
        service: from.target.service,
        port: u32::from(from.target.port),
        scope: from.access.map(|a| a.scope).unwrap_or_default(),
    }
}

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
        ..rest::WorkloadSpec::default()
    };
    if from.kind == WorkloadKind::Project {
        view.services = services;
    } else if let Some(single) = services.pop() {
        view.image = single.image;
        view.command = single.command;
        view.args = single.args;
        view.env = single.env;
        view.ports = single.ports;
        view.volume_mounts = single.volume_mounts;
    }
    view
}

fn service_view(from: &ServiceSpec) -> rest::ServiceSpec {
    rest::ServiceSpec {
        name: from.name.clone(),
        image: from.image.clone(),
        command: from.command.clone(),
        args: from.args.clone(),
        env: from.env.iter().map(|(name, value)| rest::EnvVar { name: name.clone(), value: value.clone() }).collect(),
        ports: from
            .ports
            .iter()
            .map(|p| rest::Port {
                container: u16::try_from(p.container_port).unwrap_or_default(),
                host: p.host_port.and_then(|port| u16::try_from(port).ok()),
                protocol: Some(p.protocol.as_str().into()),
                bind_address: Some(p.bind_address.clone()).filter(|a| !a.is_empty()),
            })
            .collect(),
        volume_mounts: from
            .volume_mounts
            .iter()
            .map(|m| rest::VolumeMount { name: m.name.clone(), mount_path: m.mount_path.clone() })
            .collect(),
    }
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
        conditions: Vec::new(),
    }
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
