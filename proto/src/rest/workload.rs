//! Workloads: Apps, Databases and Projects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Condition, Metadata};

/// A workload, in and out. The three kinds share one shape; an App has exactly one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadManifest {
    /// Always `caravanserai/v1`.
    #[cfg_attr(feature = "openapi", schemars(extend("const" = super::API_VERSION)))]
    pub api_version: String,
    /// `App`, `Database` or `Project`.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["App", "Database", "Project"])))]
    pub kind: String,
    /// Name and labels.
    pub metadata: Metadata,
    /// What the user wants.
    pub spec: WorkloadSpec,
    /// What is; ignored on the way in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkloadStatus>,
}

/// Written by the user. An `App` uses `image`, `command`, `args`, `env`, `ports`, `volumeMounts`, `healthCheck` (one
/// container); a `Project` uses `services`; a `Database` uses `engine`, and everything else follows from that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadSpec {
    /// App: the image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// App: replaces the image's entrypoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// App: replaces the image's arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// App: environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// App: published ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// App: mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// App: how its agent finds out that it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// App and Database: what it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// App and Project: names of Databases that it uses. Each becomes `DATABASE_URL` in its environment, or
    /// `<NAME>_URL` when there are several; it is restarted when one of them has moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<String>,
    /// Database: `postgres`, `mysql` or `redis`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Database: the image's version; absent = one that is known to work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Database: keep a second volume for an archive of its write-ahead log; postgres only. Never pruned by the cluster: it
    /// grows until the operator removes what no backup needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wal_archive: bool,
    /// Stopped, with its node and its volumes kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Project: containers that share a node and a network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceSpec>,
    /// Named storage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeSpec>,
    /// Project: host names that lead to a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<Ingress>,
    /// Only nodes that have all these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Exactly this node, by name; absent = placed automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When the workload ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_at: Option<String>,
}

/// One container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceSpec {
    /// DNS label, unique in the workload; also the name under which its siblings reach it.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Replaces the image's entrypoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Replaces the image's arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Published ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// How its agent finds out that it works; absent = it works as long as it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// What it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// What a container asks for, as quantities: booked on its node, not enforced. Absent = nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// For example `500m` or `2`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpu: String,
    /// For example `256Mi`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub memory: String,
    /// For example `1Gi`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disk: String,
}

/// How an agent finds out that a container works. Times are durations like `500ms`, `10s` or `2m`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HealthCheck {
    /// `http` (a status below 400), `tcp` (it accepts a connection) or `exec` (exit code 0).
    pub r#type: String,
    /// http: the path; absent = `/`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// http, tcp: inside the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// exec: the command, run in the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// From one answer to the next question; absent = 10 s.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interval: String,
    /// How long one answer may take; absent = 5 s.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timeout: String,
    /// Failures one after another that make it unhealthy; absent = 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// After a start, failures count only from here on; absent = at once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub start_period: String,
}

/// One environment variable.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvVar {
    /// Not empty, no `=`.
    pub name: String,
    /// May be empty.
    #[serde(default)]
    pub value: String,
}

/// Never prints the value: secrets live there.
impl std::fmt::Debug for EnvVar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvVar").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A port that is published on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Port {
    /// 1..=65535, inside the container.
    pub container: u16,
    /// 1..=65535 on the node; absent = not published, reachable by its siblings only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u16>,
    /// `tcp` (default) or `udp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Address on the node: `private` (default, 127.0.0.1), `public` (0.0.0.0) or a literal IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<String>,
}

/// Where a volume appears in a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeMount {
    /// A volume declared in `spec.volumes`.
    pub name: String,
    /// Absolute.
    pub mount_path: String,
}

/// Named storage of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeSpec {
    /// Unique in the workload.
    pub name: String,
    /// `Ephemeral` (removed with the workload) or `Managed` (kept).
    pub r#type: String,
}

/// A host name that leads to a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ingress {
    /// Unique in the workload.
    pub name: String,
    /// Host name; with a dot verbatim.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Where it leads.
    pub target: IngressTarget,
    /// Who may come in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<IngressAccess>,
}

/// Where an ingress leads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IngressTarget {
    /// A service of the workload.
    pub service: String,
    /// 1..=65535.
    pub port: u16,
}

/// Who may use an ingress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IngressAccess {
    /// Empty or `Internal`.
    #[serde(default)]
    pub scope: String,
}

/// Placement by the leader, the rest by the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// `Pending`, `Scheduled`, `Running`, `Stopped`, `Failed`, `Terminating`.
    pub phase: String,
    /// Where it is placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementView>,
    /// Why each node was not chosen; filled while the workload is unplaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejection>,
    /// One word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// One sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation that the agent reports on.
    #[serde(default)]
    pub observed_generation: u64,
    /// One per service.
    #[serde(default)]
    pub containers: Vec<ContainerView>,
    /// Where its published ports are found, on the node that has it now. During a move this changes at the switch; the old
    /// copy of what has no state goes on for a while after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// At most one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A workload bound to a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlacementView {
    /// Id of the node.
    pub node_id: String,
    /// Name of the node.
    pub node_name: String,
    /// Rises with each placement of the workload, never repeats.
    pub generation: u64,
    /// The scheduler chose the node.
    pub auto_placed: bool,
}

/// A published port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Service of the workload.
    pub service: String,
    /// Inside the container.
    pub container_port: u16,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// `HOST:PORT`; the host is the node's address where the port is open to other machines, and otherwise what it is
    /// bound to on the node.
    pub address: String,
}

/// Why a node was not chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// Name of the node.
    pub node: String,
    /// For example `cordoned` or `label disk=ssd missing`.
    pub reason: String,
}

/// One container as the agent sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContainerView {
    /// Service of the workload.
    pub service: String,
    /// Id in the node's engine.
    pub id: String,
    /// `running`, `exited`, ...
    pub state: String,
    /// Exit code of the last run.
    pub exit_code: i64,
    /// How often the agent has restarted it.
    pub restarts: u64,
    /// Start of the current run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started_at: String,
}

/// `GET /api/v1/databases/{name}/connection`, for root tokens only.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseConnection {
    /// With the password.
    pub url: String,
}

/// Never prints the URL: the password is in it.
impl std::fmt::Debug for DatabaseConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseConnection").finish_non_exhaustive()
    }
}
