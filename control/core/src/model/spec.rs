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
}

/// One container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
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

impl WorkloadSpec {
    /// True when a second running copy could damage data: it has a managed volume.
    pub fn has_state(&self) -> bool {
        self.volumes.iter().any(|volume| volume.kind == VolumeKind::Managed)
    }
}
