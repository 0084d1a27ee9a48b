//! The rules of a workload's spec. Each error names the field by its path, as `spec.services[1].image`.

use crate::limits;
use crate::model::{Ingress, Port, Probe, ServiceSpec, WorkloadKind, WorkloadSpec};
use crate::name;
use crate::rejected::Problem;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Checks a spec; the first problem found, in the order of the fields.
pub fn check(kind: WorkloadKind, spec: &WorkloadSpec) -> Result<(), Problem> {
    count("spec.services", spec.services.len(), limits::SERVICES_MAX)?;
    count("spec.volumes", spec.volumes.len(), limits::VOLUMES_MAX)?;
    count("spec.ingress", spec.ingress.len(), limits::INGRESS_MAX)?;
    if spec.services.is_empty() {
        return Err(Problem::new("spec.services", "must have at least one service"));
    }
    if spec.services.len() > 1 && kind != WorkloadKind::Project {
        return Err(Problem::new("spec.services", format!("kind {kind} has exactly one service; use kind Project")));
    }
    name::check_labels("spec.selector", &spec.selector)?;
    check_dependencies(kind, &spec.dependencies)?;
    check_database(kind, spec)?;
    let mut volumes = BTreeSet::new();
    for (at, volume) in spec.volumes.iter().enumerate() {
        let field = format!("spec.volumes[{at}].name");
        name::check_service(&field, &volume.name)?;
        unique(&field, &volume.name, &mut volumes)?;
    }
    let mut services = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (at, service) in spec.services.iter().enumerate() {
        let field = format!("spec.services[{at}]");
        name::check_service(&format!("{field}.name"), &service.name)?;
        unique(&format!("{field}.name"), &service.name, &mut services)?;
        check_service(&field, service, &volumes)?;
        check_ports(&field, &service.ports, &mut host_ports)?;
    }
    let mut ingress = BTreeSet::new();
    for (at, rule) in spec.ingress.iter().enumerate() {
        let field = format!("spec.ingress[{at}]");
        unique(&format!("{field}.name"), &rule.name, &mut ingress)?;
        check_ingress(&field, rule, &services)?;
    }
    Ok(())
}

fn check_dependencies(kind: WorkloadKind, names: &[String]) -> Result<(), Problem> {
    count("spec.dependencies", names.len(), limits::DEPENDENCIES_MAX)?;
    if kind == WorkloadKind::Database && !names.is_empty() {
        return Err(Problem::new("spec.dependencies", "a database can't depend on another"));
    }
    let mut seen = BTreeSet::new();
    for (at, name) in names.iter().enumerate() {
        let field = format!("spec.dependencies[{at}]");
        name::check_workload(&field, name)?;
        unique(&field, name, &mut seen)?;
    }
    Ok(())
}

fn check_database(kind: WorkloadKind, spec: &WorkloadSpec) -> Result<(), Problem> {
    let Some(database) = &spec.database else { return Ok(()) };
    if kind != WorkloadKind::Database {
        return Err(Problem::new("spec.engine", format!("kind {kind} has no engine; use kind Database")));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if !(1..=63).contains(&database.version.len()) || !database.version.bytes().all(allowed) {
        let rule = format!("{:?} must be 1 to 63 of A-Z, a-z, 0-9, '.', '_' and '-'", database.version);
        return Err(Problem::new("spec.version", rule));
    }
    Ok(())
}

fn check_resources(field: &str, service: &ServiceSpec) -> Result<(), Problem> {
    let Some(asked) = &service.resources else { return Ok(()) };
    for (name, amount, max) in [
        ("cpu", asked.cpu_millis, limits::CPU_MILLIS_MAX),
        ("memory", asked.memory_bytes, limits::RESOURCE_BYTES_MAX),
        ("disk", asked.disk_bytes, limits::RESOURCE_BYTES_MAX),
    ] {
        if amount > max {
            return Err(Problem::new(format!("{field}.resources.{name}"), format!("is {amount}, at most {max}")));
        }
    }
    Ok(())
}

fn check_service(field: &str, service: &ServiceSpec, volumes: &BTreeSet<&str>) -> Result<(), Problem> {
    text(&format!("{field}.image"), &service.image, limits::TEXT_BYTES_MAX)?;
    if service.image.is_empty() {
        return Err(Problem::new(format!("{field}.image"), "must not be empty"));
    }
    if service.image.chars().any(char::is_whitespace) {
        return Err(Problem::new(format!("{field}.image"), "must not have white space"));
    }
    for (name, words) in [("command", &service.command), ("args", &service.args)] {
        check_words(&format!("{field}.{name}"), words)?;
    }
    count(&format!("{field}.env"), service.env.len(), limits::ENV_MAX)?;
    for (key, value) in &service.env {
        if key.is_empty() || key.len() > 255 || key.contains(['=', '\0']) {
            let rule = "must be 1 to 255 bytes without '='";
            return Err(Problem::new(format!("{field}.env"), format!("the name {key:?} {rule}")));
        }
        text(&format!("{field}.env[{key}]"), value, limits::ENV_VALUE_BYTES_MAX)?;
    }
    count(&format!("{field}.volumeMounts"), service.volume_mounts.len(), limits::VOLUMES_MAX)?;
    let mut paths = BTreeSet::new();
    for (at, mount) in service.volume_mounts.iter().enumerate() {
        let field = format!("{field}.volumeMounts[{at}]");
        if !volumes.contains(mount.name.as_str()) {
            let problem = format!("{:?} is not a volume of this workload; declare it under spec.volumes", mount.name);
            return Err(Problem::new(format!("{field}.name"), problem));
        }
        let field = format!("{field}.mountPath");
        check_path(&field, &mount.mount_path)?;
        unique(&field, mount.mount_path.trim_end_matches('/'), &mut paths)?;
    }
    check_resources(field, service)?;
    check_health(field, service)
}

fn check_ports(
    field: &str,
    ports: &[Port],
    host_ports: &mut BTreeSet<(u32, crate::model::Protocol)>,
) -> Result<(), Problem> {
    count(&format!("{field}.ports"), ports.len(), limits::PORTS_MAX)?;
    for (at, port) in ports.iter().enumerate() {
        let field = format!("{field}.ports[{at}]");
        check_port(&format!("{field}.containerPort"), port.container_port)?;
        if !port.bind_address.is_empty() && port.bind_address.parse::<IpAddr>().is_err() {
            let problem = format!("{:?} is not an IP address", port.bind_address);
            return Err(Problem::new(format!("{field}.bindAddress"), problem));
        }
        let Some(host_port) = port.host_port else { continue };
        let field = format!("{field}.hostPort");
        check_port(&field, host_port)?;
        if !host_ports.insert((host_port, port.protocol)) {
            return Err(Problem::new(field, format!("{host_port}/{} is published twice", port.protocol)));
        }
    }
    Ok(())
}

fn check_health(field: &str, service: &ServiceSpec) -> Result<(), Problem> {
    let Some(health) = &service.health_check else { return Ok(()) };
    let field = format!("{field}.healthCheck");
    match health.probe {
        Probe::Http => {
            check_path(&format!("{field}.path"), &health.path)?;
            check_port(&format!("{field}.port"), health.port)
        }
        Probe::Tcp => check_port(&format!("{field}.port"), health.port),
        Probe::Exec if health.command.is_empty() => Err(Problem::new(format!("{field}.command"), "must not be empty")),
        Probe::Exec => check_words(&format!("{field}.command"), &health.command),
    }
}

fn check_ingress(field: &str, rule: &Ingress, services: &BTreeSet<&str>) -> Result<(), Problem> {
    name::check_service(&format!("{field}.name"), &rule.name)?;
    let host = rule.host.as_str();
    if !host.is_empty() && (host.len() > 253 || !host.split('.').all(name::is_dns_label)) {
        return Err(Problem::new(format!("{field}.host"), format!("{host:?} is not a DNS name in lower case")));
    }
    if !services.contains(rule.service.as_str()) {
        let problem = format!("{:?} is not a service of this workload", rule.service);
        return Err(Problem::new(format!("{field}.target.service"), problem));
    }
    check_port(&format!("{field}.target.port"), rule.port)?;
    if !matches!(rule.scope.as_str(), "" | "Internal") {
        let problem = format!("{:?} is not known; leave it out or use Internal", rule.scope);
        return Err(Problem::new(format!("{field}.access.scope"), problem));
    }
    Ok(())
}

fn check_words(field: &str, words: &[String]) -> Result<(), Problem> {
    count(field, words.len(), limits::COMMAND_WORDS_MAX)?;
    for (at, word) in words.iter().enumerate() {
        text(&format!("{field}[{at}]"), word, limits::WORD_BYTES_MAX)?;
    }
    Ok(())
}

fn check_path(field: &str, path: &str) -> Result<(), Problem> {
    text(field, path, limits::TEXT_BYTES_MAX)?;
    if !path.starts_with('/') {
        return Err(Problem::new(field, format!("{path:?} must be absolute: start it with '/'")));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(Problem::new(field, format!("{path:?} must not have '..'")));
    }
    Ok(())
}

fn check_port(field: &str, port: u32) -> Result<(), Problem> {
    if (1..=65_535).contains(&port) {
        return Ok(());
    }
    Err(Problem::new(field, format!("{port} must be 1 to 65535")))
}

fn text(field: &str, text: &str, bytes_max: usize) -> Result<(), Problem> {
    if text.len() > bytes_max {
        return Err(Problem::new(field, format!("has {} bytes, at most {bytes_max}", text.len())));
    }
    if text.contains('\0') {
        return Err(Problem::new(field, "must not have NUL characters"));
    }
    Ok(())
}

fn count(field: &str, count: usize, max: usize) -> Result<(), Problem> {
    if count > max {
        return Err(Problem::new(field, format!("has {count} entries, at most {max}")));
    }
    Ok(())
}

fn unique<'a>(field: &str, value: &'a str, seen: &mut BTreeSet<&'a str>) -> Result<(), Problem> {
    if seen.insert(value) {
        return Ok(());
    }
    Err(Problem::new(field, format!("{value:?} is there twice")))
}
