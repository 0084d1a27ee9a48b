//! Between the agent's protocol and the domain.

use std::collections::BTreeMap;

use cara_core::model::{
    ContainerState, ContainerStatus, Facts, HealthCheck, Phase, QuarantinedVolume, ServiceSpec, StatusReport,
    VolumeKind, VolumeTransfer, WorkloadStatus,
};
use cara_core::{Assignment, Generation, State, Transfer, WorkloadUid};
use cara_proto::agent::VolumeRemoval;
use cara_proto::{node as wire_node, workload as wire};

use super::quantity;
use crate::engines;

/// What the agent says of its machine. Quantities that can't be read are left out: unknown is better than wrong.
/// What came with a later feature level is left out until the cluster has it.
pub fn facts(given: &wire_node::Facts, is_new: bool) -> Facts {
    let read = |map: &BTreeMap<String, String>| {
        map.iter().filter_map(|(name, text)| Some((name.clone(), quantity::parse(name, text)?))).collect()
    };
    let later = |text: &String| if is_new { text.clone() } else { String::new() };
    Facts {
        agent_version: given.agent_version.clone(),
        os: given.os.clone(),
        arch: given.arch.clone(),
        kernel: given.kernel.clone(),
        runtime: given.runtime.clone(),
        capacity: read(&given.capacity),
        allocatable: read(&given.allocatable),
        agent_commit: later(&given.agent_commit),
        os_image: later(&given.os_image),
        hostname: later(&given.hostname),
    }
}

/// What a node shall run, with the addresses of the databases that it uses.
pub fn assignment(state: &State, from: &Assignment) -> wire::Assignment {
    let spec = &from.spec;
    let variables = engines::variables(state, spec);
    wire::Assignment {
        uid: from.uid.to_string(),
        name: from.name.clone(),
        kind: from.kind.as_str().to_owned(),
        generation: from.generation.0,
        spec_revision: from.generation.0, // A new spec is granted anew, so the generation tells both.
        spec: Some(wire::Spec {
            services: spec.services.iter().map(|from| service(from, &variables)).collect(),
            volumes: spec
                .volumes
                .iter()
                .map(|v| wire::Volume { name: v.name.clone(), ephemeral: v.kind == VolumeKind::Ephemeral })
                .collect(),
        }),
        remove: from.remove,
        mode: from.mode.as_str().to_owned(),
        data_generation: from.data_generation.0,
        transfer: from.transfer.as_ref().map(transfer),
    }
}

/// A volume that the node is to remove.
pub fn removal(from: &QuarantinedVolume) -> VolumeRemoval {
    VolumeRemoval {
        uid: from.workload.to_string(),
        volume: from.volume.clone(),
        data_generation: from.data_generation.0,
        engine_name: from.engine_name.clone(),
    }
}

/// Where the source answers, and whether the relay helps, is not in the log: the session fills it in.
fn transfer(from: &Transfer) -> wire::Transfer {
    wire::Transfer {
        move_id: from.move_id.to_string(),
        source_node: from.source_node.to_string(),
        source_address: String::new(),
        target_node: from.target_node.to_string(),
        from_data_generation: from.from_data_generation.0,
        to_data_generation: from.to_data_generation.0,
        round: from.round,
        r#final: from.is_final,
        relay: false,
    }
}

fn health_check(from: &HealthCheck) -> wire::HealthCheck {
    wire::HealthCheck {
        probe: from.probe.as_str().to_owned(),
        path: from.path.clone(),
        port: from.port,
        command: from.command.clone(),
        interval_ms: u64::from(from.interval_ms),
        timeout_ms: u64::from(from.timeout_ms),
        failures_max: from.failures_max,
        start_period_ms: u64::from(from.start_period_ms),
    }
}

fn service(from: &ServiceSpec, variables: &BTreeMap<String, String>) -> wire::Service {
    // What the user has written goes before what follows from it.
    let env: BTreeMap<_, _> = variables.iter().chain(&from.env).collect();
    wire::Service {
        name: from.name.clone(),
        image: from.image.clone(),
        command: from.command.clone(),
        args: from.args.clone(),
        env: env.into_iter().map(|(name, value)| wire::EnvVar { name: name.clone(), value: value.clone() }).collect(),
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
        health_check: from.health_check.as_ref().map(health_check),
    }
}

/// What the agent says of one workload. A word that this version doesn't know counts as the most careful one. How far a
/// transfer is, is given apart: of it, only what a finished round came to enters the log.
pub fn status_report(from: wire::Status, transfers: Vec<VolumeTransfer>) -> StatusReport {
    StatusReport {
        uid: WorkloadUid::new(from.uid),
        status: WorkloadStatus {
            observed_generation: Generation(from.generation),
            phase: Phase::parse(&from.phase).unwrap_or(Phase::Pending),
            reason: from.reason,
            message: from.message,
            containers: from.containers.into_iter().map(container).collect(),
            changed_at_ms: 0,
            ready: from.ready,
            transfers,
            transfer_error: None,
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
