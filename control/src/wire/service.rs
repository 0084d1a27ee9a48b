//! Containers of a workload: as a manifest writes them, and back.

use std::collections::BTreeMap;

use cara_core::model::{HealthCheck, Port, Probe, Protocol, Resources, ServiceSpec, VolumeMount};
use cara_proto::rest;

use super::{duration, quantity};
use crate::error::ApiError;

/// A container of a manifest. `path` is where it stands there.
///
/// # Errors
/// Names the field that isn't what it should be.
pub fn service(path: &str, from: rest::ServiceSpec) -> Result<ServiceSpec, ApiError> {
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
        health_check: from.health_check.map(|h| health_check(&format!("{path}.healthCheck"), h)).transpose()?,
        resources: from.resources.map(|r| resources(&format!("{path}.resources"), &r)).transpose()?,
    })
}

/// What a container asks for; nothing said is nothing asked.
///
/// # Errors
/// Names the quantity that can't be read.
pub fn resources(path: &str, from: &rest::Resources) -> Result<Resources, ApiError> {
    let read = |name: &str, text: &str| {
        if text.is_empty() {
            return Ok(0);
        }
        let wrong = || ApiError::invalid(format!("{path}.{name}: {text:?} is not a quantity like 500m, 2 or 256Mi"));
        quantity::parse(name, text).ok_or_else(wrong)
    };
    Ok(Resources {
        cpu_millis: read("cpu", &from.cpu)?,
        memory_bytes: read("memory", &from.memory)?,
        disk_bytes: read("disk", &from.disk)?,
    })
}

fn health_check(path: &str, from: rest::HealthCheck) -> Result<HealthCheck, ApiError> {
    let probe = Probe::parse(&from.r#type)
        .ok_or_else(|| ApiError::invalid(format!("{path}.type: is {:?}, must be http, tcp or exec", from.r#type)))?;
    let time = |name: &str, text: &str| {
        if text.is_empty() {
            return Ok(0);
        }
        let wrong = || ApiError::invalid(format!("{path}.{name}: {text:?} is not a duration like 500ms, 10s or 2m"));
        duration::parse(text).ok_or_else(wrong)
    };
    Ok(HealthCheck {
        probe,
        path: if probe == Probe::Http && from.path.is_empty() { "/".into() } else { from.path },
        port: from.port.map(u32::from).unwrap_or_default(),
        command: from.command,
        interval_ms: time("interval", &from.interval)?,
        timeout_ms: time("timeout", &from.timeout)?,
        failures_max: from.failures.unwrap_or_default(),
        start_period_ms: time("startPeriod", &from.start_period)?,
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

/// The inverse of [`service`].
pub fn service_view(from: &ServiceSpec) -> rest::ServiceSpec {
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
        health_check: from.health_check.as_ref().map(health_check_view),
        resources: from.resources.as_ref().map(resources_view),
    }
}

/// The inverse of [`resources`].
pub fn resources_view(from: &Resources) -> rest::Resources {
    let write = |name, value| if value == 0 { String::new() } else { quantity::format(name, value) };
    rest::Resources {
        cpu: write("cpu", from.cpu_millis),
        memory: write("memory", from.memory_bytes),
        disk: write("disk", from.disk_bytes),
    }
}

fn health_check_view(from: &HealthCheck) -> rest::HealthCheck {
    rest::HealthCheck {
        r#type: from.probe.as_str().into(),
        path: from.path.clone(),
        port: u16::try_from(from.port).ok().filter(|port| *port > 0),
        command: from.command.clone(),
        interval: duration::format(from.interval_ms),
        timeout: duration::format(from.timeout_ms),
        failures: (from.failures_max > 0).then_some(from.failures_max),
        start_period: duration::format(from.start_period_ms),
    }
}
