//! Docker through its socket. Every call has a deadline; "away", "silent" and "refused" are told apart.

mod convert;
mod spool;
mod volumes;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::exec::StartExecResults;
use bollard::query_parameters as query;
use bytes::Bytes;
use cara_env::Clock;
use cara_volume::Tree;
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::{ContainerRuntime, ContainerSpec, Endpoint, EngineInfo, Listing, LogOptions, Object, RuntimeError};
use crate::labels::{self, Labels};

/// Where Docker listens unless told otherwise.
pub const HOST_DEFAULT: &str = "unix:///var/run/docker.sock";

/// Questions: a healthy engine answers in milliseconds.
const ASK: Duration = Duration::from_secs(10);
/// Changes: a busy disk makes them slow.
const CHANGE: Duration = Duration::from_secs(50);
/// A large image over a slow link; the caller may give up sooner.
const PULL: Duration = Duration::from_secs(15 * 60);
/// The engine's own time after the grace of a stop.
const STOP_EXTRA: Duration = Duration::from_secs(20);
/// Output that doesn't follow comes without pauses; a stream that Docker forgot to end must not stay.
const LOG_PAUSE: Duration = Duration::from_secs(30);
/// After the event stream broke; the resync covers the gap.
const EVENTS_RETRY: Duration = Duration::from_secs(5);

type Events = Pin<Box<dyn Stream<Item = Result<bollard::models::EventMessage, Error>> + Send>>;

/// A Docker engine, dialled when it is needed.
pub struct DockerRuntime {
    clock: Arc<dyn Clock>,
    host: String,
    /// Connected and of a negotiated version; forgotten when the engine goes away.
    client: Mutex<Option<Docker>>,
    events: tokio::sync::Mutex<Option<Events>>,
    /// Where copies of volumes lie that can't be worked on in place.
    spool: Option<PathBuf>,
    /// Copies made so far: each has a name of its own.
    spooled: AtomicU64,
}

impl DockerRuntime {
    /// The engine at `host` (`unix:///path`, `tcp://host:port`). Nothing is dialled yet.
    pub fn new(clock: Arc<dyn Clock>, host: &str) -> Self {
        let (client, events) = (Mutex::new(None), tokio::sync::Mutex::new(None));
        Self { clock, host: host.to_owned(), client, events, spool: None, spooled: AtomicU64::new(0) }
    }

    /// As [`DockerRuntime::new`], with a folder for copies of volumes that this process can't reach in the engine's own
    /// folders. What an earlier process has left in it is removed.
    pub fn with_spool(clock: Arc<dyn Clock>, host: &str, spool: &Path) -> Self {
        if let Err(error) = std::fs::remove_dir_all(spool)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!("can't empty {}: {error}; it takes space that is not needed", spool.display());
        }
        Self { spool: Some(spool.to_owned()), ..Self::new(clock, host) }
    }

    /// Where the engine is.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(super) async fn client(&self) -> Result<Docker, RuntimeError> {
        let known = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(client) = known {
            return Ok(client);
        }
        let connecting = async { Docker::connect_with_host(&self.host)?.negotiate_version().await };
        let client = self.within("connect to", "", ASK, connecting).await?;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    /// Runs a call with a deadline and puts its error into our words.
    async fn within<T>(
        &self,
        operation: &'static str,
        subject: &str,
        limit: Duration,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, RuntimeError> {
        let error = match cara_env::timeout(&*self.clock, limit, call).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => convert::error(&self.host, operation, subject, error),
            Err(_) => {
                let operation = format!("{operation} {subject}").trim_end().to_owned();
                RuntimeError::Deadline { engine: format!("docker engine at {}", self.host), operation, limit }
            }
        };
        if matches!(error, RuntimeError::Away { .. }) {
            // It may come back as another version.
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Err(error)
    }

    /// As [`Self::within`]; these HTTP codes count as success.
    async fn settle(
        &self,
        operation: &'static str,
        subject: &str,
        limit: Duration,
        fine: &'static [u16],
        call: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), RuntimeError> {
        let call = async {
            match call.await {
                Err(Error::DockerResponseServerError { status_code, .. }) if fine.contains(&status_code) => Ok(()),
                done => done,
            }
        };
        self.within(operation, subject, limit, call).await
    }

    /// Finds out whose the existing object is.
    fn check_owner(
        kind: &'static str,
        name: &str,
        existing: impl IntoIterator<Item = (String, String)>,
        wanted: &Labels,
    ) -> Result<(), RuntimeError> {
        let existing: Labels = existing.into_iter().collect();
        if labels::same_owner(&existing, wanted) {
            Ok(())
        } else {
            Err(RuntimeError::NotOurs { kind, name: name.to_owned() })
        }
    }
}

impl std::fmt::Debug for DockerRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DockerRuntime").field("host", &self.host).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl ContainerRuntime for DockerRuntime {
    async fn info(&self) -> Result<EngineInfo, RuntimeError> {
        let client = self.client().await?;
        let info = self.within("ask", "the engine", ASK, client.info()).await?;
        Ok(EngineInfo {
            engine: format!("docker {}", info.server_version.unwrap_or_default()),
            cpus: info.ncpu.and_then(|n| u64::try_from(n).ok()).unwrap_or_default(),
            memory_bytes: info.mem_total.and_then(|n| u64::try_from(n).ok()).unwrap_or_default(),
        })
    }

    async fn list(&self, filter: &Labels) -> Result<Listing, RuntimeError> {
        let client = self.client().await?;
        let filters = || Some(convert::label_filter(filter));
        let options = query::ListContainersOptions { all: true, filters: filters(), ..Default::default() };
        let containers = self.within("list", "containers", ASK, client.list_containers(Some(options))).await?;
        let options = query::ListNetworksOptions { filters: filters() };
        let networks = self.within("list", "networks", ASK, client.list_networks(Some(options))).await?;
        let options = query::ListVolumesOptions { filters: filters() };
        let volumes = self.within("list", "volumes", ASK, client.list_volumes(Some(options))).await?;
        let mut listing = convert::objects(networks, volumes);
        for summary in containers {
            let id = summary.id.unwrap_or_default();
            let inspect = client.inspect_container(&id, None::<query::InspectContainerOptions>);
            let inspect = async {
                match inspect.await {
                    Ok(container) => Ok(Some(container)),
                    // Removed since the listing.
                    Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
                    Err(error) => Err(error),
                }
            };
            if let Some(container) = self.within("inspect", &id, ASK, inspect).await? {
                listing.containers.push(convert::container(container));
            }
        }
        listing.containers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    async fn ensure_image(&self, image: &str) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        let present = async {
            match client.inspect_image(image).await {
                Ok(_) => Ok(true),
                Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
                Err(error) => Err(error),
            }
        };
        if self.within("look for image", image, ASK, present).await? {
            return Ok(());
        }
        tracing::info!(image, "pulling");
        let options = query::CreateImageOptions { from_image: Some(convert::tagged(image)), ..Default::default() };
        let pull = async {
            let mut progress = client.create_image(Some(options), None, None);
            while let Some(step) = progress.next().await {
                step?;
            }
            Ok(())
        };
        self.within("pull", image, PULL, pull).await.map_err(|error| match error {
            RuntimeError::Failed { cause, .. } => RuntimeError::ImageMissing { image: image.to_owned(), cause },
            RuntimeError::Deadline { limit, .. } => {
                let cause = format!("the pull was not done after {} minutes", limit.as_secs() / 60);
                RuntimeError::ImageMissing { image: image.to_owned(), cause }
            }
            other => other,
        })
    }

    async fn ensure_network(&self, network: &Object) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        // Docker lets two networks have one name, so we look first; nobody else makes networks of this name.
        let existing = async {
            match client.inspect_network(&network.name, None::<query::InspectNetworkOptions>).await {
                Ok(found) => Ok(Some(found)),
                Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        if let Some(found) = self.within("look for network", &network.name, ASK, existing).await? {
            return Self::check_owner("network", &network.name, found.labels.unwrap_or_default(), &network.labels);
        }
        let create = client.create_network(convert::network(network));
        self.within("create", &network.name, CHANGE, create).await.map(drop)
    }

    async fn remove_network(&self, name: &str) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        self.settle("remove", name, CHANGE, &[404], client.remove_network(name)).await
    }

    async fn ensure_volume(&self, volume: &Object) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        let create = client.create_volume(convert::volume(volume));
        let made = self.within("create", &volume.name, CHANGE, create).await?;
        // Docker answers with the existing volume of this name, whoever's it is.
        Self::check_owner("volume", &volume.name, made.labels, &volume.labels)
    }

    async fn remove_volume(&self, name: &str) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        // One may be left from a copy that was cut off, and it would hold the volume.
        self.remove(&convert::helper_name(name)).await?;
        let remove = client.remove_volume(name, None::<query::RemoveVolumeOptions>);
        self.settle("remove", name, CHANGE, &[404], remove).await
    }

    async fn create(&self, container: &ContainerSpec) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        let options = query::CreateContainerOptions { name: Some(container.name.clone()), ..Default::default() };
        let create = client.create_container(Some(options), convert::create_body(container));
        let create = async {
            match create.await {
                Ok(_) => Ok(true),
                Err(Error::DockerResponseServerError { status_code: 409, .. }) => Ok(false),
                Err(error) => Err(error),
            }
        };
        if self.within("create", &container.name, CHANGE, create).await? {
            return Ok(());
        }
        let inspect = client.inspect_container(&container.name, None::<query::InspectContainerOptions>);
        let found = self.within("inspect", &container.name, ASK, inspect).await?;
        let existing: Labels = found.config.and_then(|c| c.labels).unwrap_or_default().into_iter().collect();
        // The image may have labels of its own; ours must all be there.
        if container.labels.iter().all(|(key, value)| existing.get(key) == Some(value)) {
            Ok(())
        } else {
            Err(RuntimeError::NotOurs { kind: "container", name: container.name.clone() })
        }
    }

    async fn start(&self, container: &str) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        let start = client.start_container(container, None::<query::StartContainerOptions>);
        self.settle("start", container, CHANGE, &[304], start).await
    }

    async fn stop(&self, container: &str, grace: Duration) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        let t = i32::try_from(grace.as_secs()).ok();
        let stop = client.stop_container(container, Some(query::StopContainerOptions { t, signal: None }));
        self.settle("stop", container, grace + STOP_EXTRA, &[304, 404], stop).await
    }

    async fn remove(&self, container: &str) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        // `v` removes the image's nameless volumes only; ours have names.
        let options = query::RemoveContainerOptions { v: true, force: true, link: false };
        let remove = client.remove_container(container, Some(options));
        // 409: its removal is under way; the next listing shows how it ended.
        self.settle("remove", container, CHANGE, &[404, 409], remove).await
    }

    async fn logs(&self, container: &str, options: LogOptions, sink: mpsc::Sender<Bytes>) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        let mut output = Box::pin(client.logs(container, Some(convert::logs(options))));
        loop {
            let next = async { output.next().await.transpose() };
            let piece = if options.follow {
                next.await.map_err(|error| convert::error(&self.host, "read the output of", container, error))?
            } else {
                self.within("read the output of", container, LOG_PAUSE, next).await?
            };
            let Some(piece) = piece else { return Ok(()) };
            if sink.send(piece.into_bytes()).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn exec(&self, container: &str, command: &[String]) -> Result<i64, RuntimeError> {
        let client = self.client().await?;
        let create = client.create_exec(container, convert::exec(command));
        let made = self.within("run a command in", container, ASK, create).await?;
        let running = async {
            // Attached, because the answer's end is the command's end; what it says is of no interest.
            if let StartExecResults::Attached { mut output, .. } = client.start_exec(&made.id, None).await? {
                while output.next().await.transpose()?.is_some() {}
            }
            client.inspect_exec(&made.id).await
        };
        let ended = self.within("run a command in", container, CHANGE, running).await?;
        ended.exit_code.ok_or_else(|| {
            let cause = "the command has not ended".to_owned();
            RuntimeError::Failed { operation: "run a command in", subject: container.to_owned(), cause }
        })
    }

    async fn endpoint(&self, container: &str, port: u32) -> Result<Endpoint, RuntimeError> {
        let client = self.client().await?;
        let inspect = client.inspect_container(container, None::<query::InspectContainerOptions>);
        let found = self.within("inspect", container, ASK, inspect).await?;
        let address = convert::address(found, port).ok_or_else(|| {
            let cause = "it has no address in its network".to_owned();
            RuntimeError::Failed { operation: "reach", subject: container.to_owned(), cause }
        })?;
        Ok(Endpoint::Address(address))
    }

    async fn volume_tree(&self, name: &str) -> Result<Box<dyn Tree + Send>, RuntimeError> {
        self.open_volume(name).await
    }

    async fn store_volume(&self, name: &str, tree: Box<dyn Tree + Send>) -> Result<(), RuntimeError> {
        self.close_volume(name, tree).await
    }

    async fn volume_bytes(&self, name: &str) -> Result<Option<u64>, RuntimeError> {
        self.measure_volume(name).await
    }

    async fn changed(&self) {
        let mut events = self.events.lock().await;
        if events.is_none()
            && let Ok(client) = self.client().await
        {
            *events = Some(Box::pin(client.events(Some(convert::events()))));
        }
        let happened = match events.as_mut() {
            Some(stream) => matches!(stream.next().await, Some(Ok(_))),
            None => false,
        };
        if !happened {
            *events = None;
            self.clock.sleep(EVENTS_RETRY).await;
        }
    }
}
