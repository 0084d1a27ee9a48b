//! What the user wants to run. Written by the user only; checked by `crate::spec_rules`.

use crate::wire::wire_enum;
use std::collections::BTreeMap;

/// The spec of a workload of any kind; an app is a project of one service.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WorkloadSpec {
    /// At least one; they share a node and a network.
    #[prost(message, repeated, tag = "1")]
    pub services: Vec<ServiceSpec>,
    /// Named storage that the services mount.
    #[prost(message, repeated, tag = "2")]
    pub volumes: Vec<VolumeSpec>,
    /// Host names that lead to a service's port.
    #[prost(message, repeated, tag = "3")]
    pub ingress: Vec<Ingress>,
    /// Delete it after this, in ms since 1970; none = never.
    #[prost(uint64, optional, tag = "4")]
    pub expire_at_ms: Option<u64>,
    /// Labels that a node must have. Setting it moves nothing.
    #[prost(btree_map = "string, string", tag = "5")]
    pub selector: BTreeMap<String, String>,
    /// True = its containers are stopped and its volumes kept.
    #[prost(bool, tag = "6")]
    pub suspended: bool,
    /// Names of the databases that it uses: it follows them in a drain, and is restarted when one of them has moved.
    #[prost(string, repeated, tag = "7")]
    pub dependencies: Vec<String>,
    /// What a database is; none for the other kinds.
    #[prost(message, optional, tag = "8")]
    pub database: Option<DatabaseSpec>,
}

/// What a workload of kind Database is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DatabaseSpec {
    /// The program.
    #[prost(message, required, tag = "1")]
    pub engine: Engine,
    /// Its version as the image's tag has it, `16` or `8.4.2`.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// What a container is promised on its node. 0 = nothing asked for.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Resources {
    /// Thousandths of a core.
    #[prost(uint64, tag = "1")]
    pub cpu_millis: u64,
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub memory_bytes: u64,
    /// Bytes, for volumes and the container's own layer.
    #[prost(uint64, tag = "3")]
    pub disk_bytes: u64,
}

/// One container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct ServiceSpec {
    /// A DNS label, unique in the workload; its host name in the workload's network.
    #[prost(string, tag = "1")]
    pub name: String,
    /// As `ghcr.io/example/ledger:1.4`.
    #[prost(string, tag = "2")]
    pub image: String,
    /// Replaces the image's entry point; empty = the image's.
    #[prost(string, repeated, tag = "3")]
    pub command: Vec<String>,
    /// Replaces the image's arguments; empty = the image's.
    #[prost(string, repeated, tag = "4")]
    pub args: Vec<String>,
    /// Environment variables.
    #[prost(btree_map = "string, string", tag = "5")]
    pub env: BTreeMap<String, String>,
    /// Where volumes appear.
    #[prost(message, repeated, tag = "6")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Ports that are published on the node, or only named.
    #[prost(message, repeated, tag = "7")]
    pub ports: Vec<Port>,
    /// How to tell that it works; none = it runs.
    #[prost(message, optional, tag = "8")]
    pub health_check: Option<HealthCheck>,
    /// What it needs of its node.
    #[prost(message, optional, tag = "9")]
    pub resources: Option<Resources>,
}

/// Of the environment only the names are printed: passwords live there, and commands end up in logs through `{:?}`.
impl std::fmt::Debug for ServiceSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceSpec")
            .field("name", &self.name)
            .field("image", &self.image)
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("volume_mounts", &self.volume_mounts)
            .field("ports", &self.ports)
            .field("health_check", &self.health_check)
            .field("resources", &self.resources)
            .finish()
    }
}

/// A volume inside a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeMount {
    /// A volume of the same workload.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Absolute, unique in the service.
    #[prost(string, tag = "2")]
    pub mount_path: String,
}

/// A port of a service.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Port {
    /// Inside the container, 1 to 65535.
    #[prost(uint32, tag = "1")]
    pub container_port: u32,
    /// On the node, 1 to 65535; none = not published.
    #[prost(uint32, optional, tag = "2")]
    pub host_port: Option<u32>,
    /// Tcp unless said otherwise.
    #[prost(message, required, tag = "3")]
    pub protocol: Protocol,
    /// The address on the node that it is bound to: an IP literal; empty = 127.0.0.1.
    #[prost(string, tag = "4")]
    pub bind_address: String,
}

/// When a service counts as working.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthCheck {
    /// What is asked.
    #[prost(message, required, tag = "1")]
    pub probe: Probe,
    /// For the probe `http`: absolute path, a 2xx or 3xx answer is healthy.
    #[prost(string, tag = "2")]
    pub path: String,
    /// For `http` and `tcp`: the port inside the container.
    #[prost(uint32, tag = "3")]
    pub port: u32,
    /// For `exec`: exit 0 is healthy.
    #[prost(string, repeated, tag = "4")]
    pub command: Vec<String>,
    /// Between two probes; 0 = the agent's default.
    #[prost(uint32, tag = "5")]
    pub interval_ms: u32,
    /// Of one probe; 0 = the agent's default.
    #[prost(uint32, tag = "6")]
    pub timeout_ms: u32,
    /// Failures in a row until it counts as not healthy; 0 = the agent's default.
    #[prost(uint32, tag = "7")]
    pub failures_max: u32,
    /// Failures in this time after a start don't count; 0 = the agent's default.
    #[prost(uint32, tag = "8")]
    pub start_period_ms: u32,
}

/// Named storage of a workload.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeSpec {
    /// A DNS label, unique in the workload.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How precious its content is.
    #[prost(message, required, tag = "2")]
    pub kind: VolumeKind,
}

/// A host name that leads to a service.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Ingress {
    /// A DNS label, unique in the workload.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Empty = derived from the names.
    #[prost(string, tag = "2")]
    pub host: String,
    /// A service of the workload.
    #[prost(string, tag = "3")]
    pub service: String,
    /// Inside the container, 1 to 65535.
    #[prost(uint32, tag = "4")]
    pub port: u32,
    /// Empty or `Internal`.
    #[prost(string, tag = "5")]
    pub scope: String,
}

wire_enum! {
    /// Transport of a port.
    Protocol {
        /// TCP.
        1 => Tcp "tcp",
        /// UDP.
        2 => Udp "udp",
    }
}

wire_enum! {
    /// What a health check asks.
    Probe {
        /// An HTTP request.
        1 => Http "http",
        /// A TCP connection.
        2 => Tcp "tcp",
        /// A command inside the container.
        3 => Exec "exec",
    }
}

wire_enum! {
    /// How precious a volume's content is.
    VolumeKind {
        /// Gone with the placement; a workload of only these may be started elsewhere.
        1 => Ephemeral "Ephemeral",
        /// Kept; its workload is stateful and never runs twice.
        2 => Managed "Managed",
    }
}

wire_enum! {
    /// The program of a database.
    Engine {
        /// PostgreSQL.
        1 => Postgres "postgres",
        /// MySQL.
        2 => Mysql "mysql",
        /// Redis.
        3 => Redis "redis",
    }
}

impl WorkloadSpec {
    /// The managed volumes, which a move takes along, in the order of the spec.
    pub fn managed_volumes(&self) -> impl Iterator<Item = &str> {
        self.volumes.iter().filter(|volume| volume.kind == VolumeKind::Managed).map(|volume| volume.name.as_str())
    }

    /// What all its services together are promised.
    pub fn requests(&self) -> Resources {
        let mut sum = Resources::default();
        for service in self.services.iter().filter_map(|service| service.resources.as_ref()) {
            sum.cpu_millis = sum.cpu_millis.saturating_add(service.cpu_millis);
            sum.memory_bytes = sum.memory_bytes.saturating_add(service.memory_bytes);
            sum.disk_bytes = sum.disk_bytes.saturating_add(service.disk_bytes);
        }
        sum
    }

    /// True when it says something that servers from before moves would not see.
    pub(crate) fn needs_moves(&self) -> bool {
        let service = |service: &ServiceSpec| {
            service.resources.is_some()
                || service.health_check.as_ref().is_some_and(|health| health.start_period_ms != 0)
        };
        self.suspended || !self.dependencies.is_empty() || self.database.is_some() || self.services.iter().any(service)
    }

    /// True when a second running copy could damage data: it has a managed volume.
    pub fn has_state(&self) -> bool {
        self.volumes.iter().any(|volume| volume.kind == VolumeKind::Managed)
    }
}
