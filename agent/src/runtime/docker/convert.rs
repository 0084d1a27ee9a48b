//! Between our words and Docker's.

use bollard::errors::Error;
use bollard::models;
use bollard::query_parameters as query;

use crate::labels::{self, Labels};
use crate::runtime::{ContainerInfo, ContainerSpec, ContainerState, Listing, LogOptions, Object, RuntimeError};

/// Docker's error in our words.
pub(super) fn error(host: &str, operation: &'static str, subject: &str, error: Error) -> RuntimeError {
    let away = |cause: String| RuntimeError::Away { endpoint: host.to_owned(), cause };
    match error {
        Error::DockerResponseServerError { message, .. } | Error::DockerStreamError { error: message } => {
            refused(operation, subject, message.trim())
        }
        Error::SocketNotFoundError(path) => away(format!("there is no socket {path}")),
        Error::RequestTimeoutError => away("it did not answer".into()),
        error @ (Error::IOError { .. }
        | Error::HyperLegacyError { .. }
        | Error::HyperResponseError { .. }
        | Error::HttpClientError { .. }) => away(crate::enrol::with_causes(&error)),
        other => refused(operation, subject, &other.to_string()),
    }
}

fn refused(operation: &'static str, subject: &str, message: &str) -> RuntimeError {
    let taken = ["port is already allocated", "address already in use", "failed to bind host port"];
    if operation == "start" && taken.iter().any(|text| message.contains(text)) {
        return RuntimeError::PortTaken { container: subject.to_owned(), cause: message.to_owned() };
    }
    RuntimeError::Failed { operation, subject: subject.to_owned(), cause: message.to_owned() }
}

/// Docker's filter for objects that carry all these labels. Generic, since Docker's client wants its own map type.
pub(super) fn label_filter<M: FromIterator<(String, Vec<String>)>>(labels: &Labels) -> M {
    let wanted = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    [("label".to_owned(), wanted)].into_iter().collect()
}

/// Events that may matter to a reconciler.
pub(super) fn events() -> query::EventsOptions {
    let list = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let filters = [
        ("type".to_owned(), list(&["container"])),
        ("event".to_owned(), list(&["create", "start", "die", "destroy", "pause", "unpause"])),
        ("label".to_owned(), list(&[labels::CLUSTER])),
    ];
    query::EventsOptions { filters: Some(filters.into_iter().collect()), ..Default::default() }
}

/// An image name with a tag: without one, Docker would pull every tag.
pub(super) fn tagged(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains(':') || image.contains('@') { image.to_owned() } else { format!("{image}:latest") }
}

pub(super) fn network(network: &Object) -> models::NetworkCreateRequest {
    models::NetworkCreateRequest {
        name: network.name.clone(),
        driver: Some("bridge".into()),
        labels: Some(network.labels.clone().into_iter().collect()),
        ..Default::default()
    }
}

pub(super) fn volume(volume: &Object) -> models::VolumeCreateRequest {
    models::VolumeCreateRequest {
        name: Some(volume.name.clone()),
        labels: Some(volume.labels.clone().into_iter().collect()),
        ..Default::default()
    }
}

/// Networks and volumes of a listing, by name.
pub(super) fn objects(networks: Vec<models::Network>, volumes: models::VolumeListResponse) -> Listing {
    let networks = networks.into_iter().map(|network| Object {
        name: network.name.unwrap_or_default(),
        labels: network.labels.unwrap_or_default().into_iter().collect(),
    });
    let volumes = volumes.volumes.unwrap_or_default().into_iter();
    let volumes = volumes.map(|volume| Object { name: volume.name, labels: volume.labels.into_iter().collect() });
    let mut listing = Listing { containers: Vec::new(), networks: networks.collect(), volumes: volumes.collect() };
    listing.networks.sort_by(|a, b| a.name.cmp(&b.name));
    listing.volumes.sort_by(|a, b| a.name.cmp(&b.name));
    listing
}

pub(super) fn container(container: models::ContainerInspectResponse) -> ContainerInfo {
    let state = container.state.unwrap_or_default();
    let word = match state.status {
        Some(models::ContainerStateStatusEnum::CREATED) => ContainerState::Created,
        // Restarting can't be: our containers have no restart policy.
        Some(models::ContainerStateStatusEnum::RUNNING | models::ContainerStateStatusEnum::RESTARTING) => {
            ContainerState::Running
        }
        Some(models::ContainerStateStatusEnum::PAUSED) => ContainerState::Paused,
        Some(models::ContainerStateStatusEnum::EXITED) => ContainerState::Exited,
        _ => ContainerState::Dead,
    };
    ContainerInfo {
        id: container.id.unwrap_or_default(),
        name: container.name.unwrap_or_default().trim_start_matches('/').to_owned(),
        labels: container.config.and_then(|c| c.labels).unwrap_or_default().into_iter().collect(),
        state: word,
        exit_code: state.exit_code.filter(|_| matches!(word, ContainerState::Exited | ContainerState::Dead)),
        started_at_ms: started_at_ms(state.started_at.as_deref().unwrap_or_default()),
    }
}

/// Docker writes the year 1 for "never".
fn started_at_ms(text: &str) -> u64 {
    let parsed: Option<jiff::Timestamp> = text.parse().ok();
    parsed.and_then(|at| u64::try_from(at.as_millisecond()).ok()).unwrap_or_default()
}

pub(super) fn create_body(container: &ContainerSpec) -> models::ContainerCreateBody {
    let key = |port: &crate::runtime::PortSpec| format!("{}/{}", port.container, port.protocol);
    let mut exposed: Vec<String> = container.ports.iter().map(key).collect();
    exposed.sort();
    exposed.dedup();
    let bindings = exposed.iter().map(|wanted| {
        let ports = container.ports.iter().filter(|port| key(port) == *wanted);
        let bindings = ports.map(|port| models::PortBinding {
            host_ip: Some(port.bind_address.clone()),
            host_port: Some(port.host.to_string()),
        });
        (wanted.clone(), Some(bindings.collect()))
    });
    let mounts = container.mounts.iter().map(|(volume, path)| models::Mount {
        target: Some(path.clone()),
        source: Some(volume.clone()),
        typ: Some(models::MountType::VOLUME),
        ..Default::default()
    });
    let endpoint = models::EndpointSettings { aliases: Some(vec![container.alias.clone()]), ..Default::default() };
    let host = models::HostConfig {
        network_mode: Some(container.network.clone()),
        port_bindings: Some(bindings.collect()),
        mounts: Some(mounts.collect()),
        // Only the plan starts a container again: Docker would also do it for a placement that has been taken away.
        restart_policy: Some(models::RestartPolicy {
            name: Some(models::RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        ..Default::default()
    };
    models::ContainerCreateBody {
        image: Some(container.image.clone()),
        entrypoint: Some(container.command.clone()).filter(|words| !words.is_empty()),
        cmd: Some(container.args.clone()).filter(|words| !words.is_empty()),
        env: Some(container.env.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(container.labels.clone().into_iter().collect()),
        exposed_ports: Some(exposed),
        host_config: Some(host),
        networking_config: Some(models::NetworkingConfig {
            endpoints_config: Some([(container.network.clone(), endpoint)].into_iter().collect()),
        }),
        ..Default::default()
    }
}

/// The name of the container through which a volume is copied.
pub(super) fn helper_name(volume: &str) -> String {
    format!("{volume}-copy")
}

/// A container that only mounts a volume and is never started.
pub(super) fn helper(image: &str, volume: &str, path: &str) -> models::ContainerCreateBody {
    let mount = models::Mount {
        target: Some(path.to_owned()),
        source: Some(volume.to_owned()),
        typ: Some(models::MountType::VOLUME),
        // Else Docker would fill an empty volume with what the image has at that path.
        volume_options: Some(models::MountVolumeOptions { no_copy: Some(true), ..Default::default() }),
        ..Default::default()
    };
    models::ContainerCreateBody {
        image: Some(image.to_owned()),
        // An image without a command of its own can't be made into a container.
        cmd: Some(vec!["never-started".to_owned()]),
        host_config: Some(models::HostConfig { mounts: Some(vec![mount]), ..Default::default() }),
        ..Default::default()
    }
}

pub(super) fn exec(command: &[String]) -> models::ExecConfig {
    models::ExecConfig {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(command.to_vec()),
        ..Default::default()
    }
}

/// Where this machine reaches a container's TCP port: where it is published, else in the container's own network.
pub(super) fn address(container: models::ContainerInspectResponse, port: u32) -> Option<String> {
    let settings = container.network_settings?;
    let bindings = settings.ports.unwrap_or_default().remove(&format!("{port}/tcp")).flatten().unwrap_or_default();
    let published = bindings.into_iter().find_map(|binding| {
        let host_port = binding.host_port.filter(|port| !port.is_empty())?;
        let host = match binding.host_ip.as_deref() {
            None | Some("" | "0.0.0.0" | "::") => "127.0.0.1".to_owned(),
            Some(ip) if ip.contains(':') => format!("[{ip}]"),
            Some(ip) => ip.to_owned(),
        };
        Some(format!("{host}:{host_port}"))
    });
    published.or_else(|| {
        let mut networks = settings.networks.unwrap_or_default().into_values();
        let ip = networks.find_map(|network| network.ip_address.filter(|ip| !ip.is_empty()))?;
        Some(format!("{ip}:{port}"))
    })
}

pub(super) fn logs(options: LogOptions) -> query::LogsOptions {
    query::LogsOptions {
        follow: options.follow,
        stdout: true,
        stderr: true,
        timestamps: options.timestamps,
        tail: if options.tail == 0 { "all".to_owned() } else { options.tail.to_string() },
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_means_latest() {
        assert_eq!(tagged("nginx"), "nginx:latest");
        assert_eq!(tagged("localhost:5000/a/b"), "localhost:5000/a/b:latest");
        assert_eq!(tagged("localhost:5000/a/b:1"), "localhost:5000/a/b:1");
        assert_eq!(tagged("a@sha256:00"), "a@sha256:00");
    }

    #[test]
    fn a_port_is_reached_where_it_is_published_and_else_in_its_network() {
        let inspected = |host_ip: &str| -> models::ContainerInspectResponse {
            let bound = format!(r#"{{"80/tcp": [{{"HostIp": "{host_ip}", "HostPort": "8080"}}], "81/tcp": null}}"#);
            let networks = r#"{"net": {"IPAddress": "172.18.0.2"}}"#;
            let text = format!(r#"{{"NetworkSettings": {{"Ports": {bound}, "Networks": {networks}}}}}"#);
            serde_json::from_str(&text).expect("as Docker answers")
        };
        assert_eq!(address(inspected("0.0.0.0"), 80).as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(address(inspected("10.0.0.7"), 80).as_deref(), Some("10.0.0.7:8080"));
        assert_eq!(address(inspected("fd00::7"), 80).as_deref(), Some("[fd00::7]:8080"));
        assert_eq!(address(inspected(""), 81).as_deref(), Some("172.18.0.2:81"));
        assert_eq!(address(models::ContainerInspectResponse::default(), 80), None);
    }

    #[test]
    fn docker_s_year_one_means_never() {
        assert_eq!(started_at_ms("0001-01-01T00:00:00Z"), 0);
        assert_eq!(started_at_ms("2026-11-29T15:00:00.123456789Z"), 1_795_964_400_123);
    }

    #[test]
    fn a_taken_port_is_told_apart_from_other_failures() {
        let refuse = |message: &str| {
            let error = Error::DockerResponseServerError { status_code: 500, message: message.into() };
            super::error("h", "start", "c", error).reason()
        };
        assert_eq!(refuse("Bind for 127.0.0.1:80 failed: port is already allocated"), "PortTaken");
        assert_eq!(refuse("exec: \"nope\": executable file not found"), "StartFailed");
    }
}
