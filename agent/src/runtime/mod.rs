//! The container engine behind one trait: Docker in production, memory for development, simulation and benchmarks.
//!
//! The rules that both keep, held by the tests in `conformance`:
//! every call may be repeated: making what exists, starting what runs, stopping or removing what is gone is success;
//! making an object whose name belongs to somebody else is [`RuntimeError::NotOurs`], and changes nothing;
//! a container never starts again by itself, so that only the plan decides what runs.

mod error;

#[cfg(test)]
mod conformance;
pub mod docker;
#[cfg(test)]
mod engine_trouble;
pub mod memory;

use std::time::Duration;

use bytes::Bytes;
use cara_volume::Tree;
pub use error::RuntimeError;
use tokio::sync::mpsc;

use crate::labels::Labels;

/// A container engine. Containers are named by id or by name. No call hangs for ever in Docker; callers bring deadlines
/// of their own nevertheless.
#[async_trait::async_trait]
pub trait ContainerRuntime: Send + Sync + 'static {
    /// What the engine is and what its machine has.
    async fn info(&self) -> Result<EngineInfo, RuntimeError>;

    /// All containers, networks and volumes that carry every label of `filter`. An error means "unknown", never "none".
    async fn list(&self, filter: &Labels) -> Result<Listing, RuntimeError>;

    /// Makes sure that the image is on this machine; pulls it only when it is not.
    async fn ensure_image(&self, image: &str) -> Result<(), RuntimeError>;

    /// Makes a private network with these labels.
    async fn ensure_network(&self, network: &Object) -> Result<(), RuntimeError>;

    /// Removes a network. Containers must have left it.
    async fn remove_network(&self, name: &str) -> Result<(), RuntimeError>;

    /// Makes an empty volume with these labels; an existing one of the same owner keeps its content.
    async fn ensure_volume(&self, volume: &Object) -> Result<(), RuntimeError>;

    /// Removes a volume and its content. Containers must have left it.
    async fn remove_volume(&self, name: &str) -> Result<(), RuntimeError>;

    /// Makes a container, not started.
    async fn create(&self, container: &ContainerSpec) -> Result<(), RuntimeError>;

    /// Starts a container.
    async fn start(&self, container: &str) -> Result<(), RuntimeError>;

    /// Asks a container to end and kills it after `grace`. Success means that it does not run any more.
    async fn stop(&self, container: &str, grace: Duration) -> Result<(), RuntimeError>;

    /// Removes a container, killed first if it still runs.
    async fn remove(&self, container: &str) -> Result<(), RuntimeError>;

    /// Sends the container's output into `sink`; ends with the output, or when nobody listens any more.
    async fn logs(&self, container: &str, options: LogOptions, sink: mpsc::Sender<Bytes>) -> Result<(), RuntimeError>;

    /// Runs a command in a running container and gives its exit code.
    async fn exec(&self, container: &str, command: &[String]) -> Result<i64, RuntimeError>;

    /// Where the agent reaches a TCP port of a running container.
    async fn endpoint(&self, container: &str, port: u32) -> Result<Endpoint, RuntimeError>;

    /// The content of a volume, to be read or filled. What is written counts once [`ContainerRuntime::store_volume`] was told.
    /// Working on it blocks; do it through `cara_env::blocking`.
    async fn volume_tree(&self, name: &str) -> Result<Box<dyn Tree + Send>, RuntimeError>;

    /// Ends the filling of a volume: on success it holds what `tree`, which came from [`ContainerRuntime::volume_tree`], holds.
    async fn store_volume(&self, name: &str, tree: Box<dyn Tree + Send>) -> Result<(), RuntimeError>;

    /// Bytes of all files of a volume. None when nobody can say it without reading through more than a bounded number of
    /// files, or without copying the volume.
    async fn volume_bytes(&self, name: &str) -> Result<Option<u64>, RuntimeError>;

    /// Returns when a container of ours may have changed. May be late, may be wrong, may never return.
    async fn changed(&self);
}

/// The engine and its machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineInfo {
    /// `docker 20.10.24`, `memory`.
    pub engine: String,
    /// Processors.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// How a port of a container is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `host:port` to dial.
    Address(String),
    /// The engine has no network and says by itself whether something listens there.
    Engine {
        /// Something does.
        listens: bool,
    },
}

/// What exists in the engine, as far as the filter goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Containers in every state, by name.
    pub containers: Vec<ContainerInfo>,
    /// Networks, by name.
    pub networks: Vec<Object>,
    /// Volumes, by name.
    pub volumes: Vec<Object>,
}

/// A network or a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Unique in the engine for its kind.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
}

/// One container, as the engine sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerInfo {
    /// Given by the engine.
    pub id: String,
    /// Given by us.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// What it does.
    pub state: ContainerState,
    /// Set once it has ended.
    pub exit_code: Option<i64>,
    /// Wall clock of its last start in ms since 1970; 0 when it never started.
    pub started_at_ms: u64,
}

/// What a container does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerState {
    /// Made, never started.
    Created,
    /// Its process lives.
    Running,
    /// Its process lives and is stopped by the engine.
    Paused,
    /// Its process has ended.
    Exited,
    /// The engine is removing it, or has failed to.
    Dead,
}

impl ContainerState {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Exited => "exited",
            Self::Dead => "dead",
        }
    }

    /// Does its process live?
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

/// A container to be made.
#[derive(Clone, PartialEq, Eq)]
pub struct ContainerSpec {
    /// Unique in the engine.
    pub name: String,
    /// Name of the image.
    pub image: String,
    /// Replaces the image's entry point; empty = the image's.
    pub command: Vec<String>,
    /// Replaces the image's arguments; empty = the image's, unless `command` is set.
    pub args: Vec<String>,
    /// Environment, in order.
    pub env: Vec<(String, String)>,
    /// Volume name and absolute path.
    pub mounts: Vec<(String, String)>,
    /// Published ports.
    pub ports: Vec<PortSpec>,
    /// Name of the network that it joins.
    pub network: String,
    /// Its host name in that network.
    pub alias: String,
    /// Its labels.
    pub labels: Labels,
}

/// Of the environment only the names are printed: passwords live there.
impl std::fmt::Debug for ContainerSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerSpec")
            .field("name", &self.name)
            .field("image", &self.image)
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A published port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// Port inside the container.
    pub container: u32,
    /// Port on the machine.
    pub host: u32,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// Address on the machine.
    pub bind_address: String,
}

/// Which output to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The last lines; 0 = all.
    pub tail: u64,
    /// Go on with new output until the container ends.
    pub follow: bool,
    /// Begin each line with its time.
    pub timestamps: bool,
}
