//! Between the agent's protocol and the domain.

use std::collections::BTreeMap;

use cara_core::model::{
    ContainerState, ContainerStatus, Facts, Phase, ServiceSpec, StatusReport, VolumeKind, WorkloadStatus,
};
use cara_core::{Assignment, Generation, WorkloadUid};
use cara_proto::{node as wire_node, workload as wire};

use super::quantity;

/// What the agent says of its machine. Quantities that can't be read are left out: unknown is better than wrong.
pub fn facts(given: &wire_node::Facts) -> Facts {
    let read = |map: &BTreeMap<String, String>| {
        map.iter().filter_map(|(name, text)| Some((name.clone(), quantity::parse(name, text)?))).collect()
    };
    Facts {
        agent_version: given.agent_version.clone(),
        os: given.os.clone(),
        arch: given.arch.clone(),
        kernel: given.kernel.clone(),
        runtime: given.runtime.clone(),
        capacity: read(&given.capacity),
        allocatable: read(&given.allocatable),
    }
}

/// What a node shall run.
pub fn assignment(from: &Assignment) -> wire::Assignment {
    let spec = &from.spec;
    wire::Assignment {
        uid: from.uid.to_string(),
        name: from.name.clone(),
        kind: from.kind.as_str().to_owned(),
        generation: from.generation.0,
        spec_revision: from.generation.0, // A new spec is granted anew, so the generation tells both.
        spec: Some(wire::Spec {
            services: spec.services.iter().map(service).collect(),
            volumes: spec
                .volumes
                .iter()
                .map(|v| wire::Volume { name: v.name.clone(), ephemeral: v.kind == VolumeKind::Ephemeral })
                .collect(),
        }),
        remove: from.remove,
    }
}

fn service(from: &ServiceSpec) -> wire::Service {
    wire::Service {
        name: from.name.clone(),
        image: from.image.clone(),
        command: from.command.clone(),
        args: from.args.clone(),
        env: from.env.iter().map(|(name, value)| wire::EnvVar { name: name.clone(), value: value.clone() }).collect(),
        mounts: from
            .volume_mounts
            .iter()
            .map(|m| wire::Mount { volume: m.name.clone(), path: m.mount_path.clone() })
            .collect(),
        ports: from
            .ports
            .iter()
            .map(|p| wire::Port {
                container: p.container_port,
                host: p.host_port.unwrap_or_default(),
                protocol: p.protocol.as_str().to_owned(),
                bind_address: p.bind_address.clone(),
            })
            .collect(),
    }
}

/// What the agent says of one workload. A word that this version doesn't know counts as the most careful one.
pub fn status_report(from: wire::Status) -> StatusReport {
    StatusReport {
        uid: WorkloadUid::new(from.uid),
        status: WorkloadStatus {
            observed_generation: Generation(from.generation),
            phase: Phase::parse(&from.phase).unwrap_or(Phase::Pending),
            reason: from.reason,
            message: from.message,
            containers: from.containers.into_iter().map(container).collect(),
            changed_at_ms: 0,
        },
    }
}

fn container(from: wire::Container) -> ContainerStatus {
    let state = ContainerState::parse(&from.state).unwrap_or(ContainerState::Other);
    let ended = matches!(state, ContainerState::Exited);
    ContainerStatus {
        service: from.service,
        container_id: from.id,
        state,
        restart_count: u32::try_from(from.restarts).unwrap_or(u32::MAX),
        exit_code: ended.then_some(i32::try_from(from.exit_code).unwrap_or(-1)),
        started_at_ms: from.started_at_ms,
        ..ContainerStatus::default()
    }
}
