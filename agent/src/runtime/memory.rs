//! An engine without processes: containers and volumes are entries in memory. For `caractrl dev`, the simulator and the
//! benchmark.
//!
//! A container that runs writes into its managed volumes, a line at its start, at its end, and at each listing, so that a
//! volume that is copied meanwhile changes as a real one would.
//!
//! Deterministic: no task, no thread, no randomness; time is the given clock's. The engine outlives the agent as long as
//! the caller keeps it, like a real one; [`MemoryHandle`] is the world's hand in it: faults, and what ran when.

mod faults;
mod handle;
mod state;
#[cfg(test)]
mod tests;
mod tree;
mod volumes;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cara_env::Clock;
use faults::Call;
pub use faults::{Failing, Faults};
pub use handle::{MemoryHandle, Running, Start};
use tokio::sync::{Notify, mpsc, watch};

use super::{ContainerRuntime, ContainerSpec, Endpoint, EngineInfo, Listing, LogOptions, Object, RuntimeError};
use crate::labels::Labels;
use cara_volume::{Tree, size};
use state::State;
use tree::SharedTree;

/// Images with this prefix don't exist; all others do.
pub const MISSING_PREFIX: &str = "missing/";

/// The engine. A clone is the same engine.
#[derive(Clone)]
pub struct MemoryRuntime {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Something changed; the agent may want to look.
    changed: Notify,
    /// What is wrong with the engine.
    faults: watch::Sender<Faults>,
    /// The clock of the records; the engine's own when none was given.
    recorder: Mutex<Option<Arc<dyn Clock>>>,
    info: EngineInfo,
}

impl MemoryRuntime {
    /// An empty engine on a machine with 8 processors and 16 GiB.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_capacity(clock, 8, 16 << 30)
    }

    /// An empty engine on a machine of this size.
    pub fn with_capacity(clock: Arc<dyn Clock>, cpus: u64, memory_bytes: u64) -> Self {
        let shared = Shared {
            clock,
            state: Mutex::new(State::default()),
            changed: Notify::new(),
            faults: watch::Sender::new(Faults::default()),
            recorder: Mutex::default(),
            info: EngineInfo { engine: "memory".into(), cpus, memory_bytes },
        };
        Self { shared: Arc::new(shared) }
    }

    /// The world's hand in this engine.
    pub fn handle(&self) -> MemoryHandle {
        MemoryHandle::new(self.shared.clone())
    }

    /// Waits while the engine hangs, fails if it must, then works on its state.
    async fn call<T>(&self, call: Call<'_>, work: impl FnOnce(&mut State, Now) -> T) -> Result<T, RuntimeError> {
        let mut faults = self.shared.faults.subscribe();
        // The sender lives in `shared`, so waiting can't fail.
        drop(faults.wait_for(|faults| !faults.holds(call)).await);
        let delay = faults.borrow().delay(call);
        if !delay.is_zero() {
            tokio::select! {
                biased;
                // Lifted while we waited.
                _ = faults.wait_for(|faults| faults.delay(call) < delay) => {}
                () = self.shared.clock.sleep(delay) => {}
            }
            drop(faults.wait_for(|faults| !faults.holds(call)).await);
        }
        if let Some(error) = faults.borrow().error(call) {
            return Err(error);
        }
        Ok(work(&mut self.shared.lock(), self.shared.now()))
    }

    /// As [`Self::call`], and tells the agent that something changed.
    async fn change<T>(&self, call: Call<'_>, work: impl FnOnce(&mut State, Now) -> T) -> Result<T, RuntimeError> {
        let done = self.call(call, work).await?;
        self.shared.changed.notify_one();
        Ok(done)
    }
}

/// All clocks at one moment.
#[derive(Debug, Clone, Copy)]
struct Now {
    /// For the records of what ran.
    recorded: Duration,
    wall_ms: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let recorded = recorder.as_ref().unwrap_or(&self.clock).monotonic();
        Now { recorded, wall_ms: self.clock.wall_ms() }
    }

    /// Asks the faults, which may count what they are asked for.
    fn ask<T>(&self, ask: impl FnOnce(&mut Faults) -> Option<T>) -> Option<T> {
        let mut answer = None;
        self.faults.send_if_modified(|faults| {
            answer = ask(faults);
            false // Who waits, waits for nothing that counts.
        });
        answer
    }
}

impl std::fmt::Debug for MemoryRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemoryRuntime")
    }
}

#[async_trait::async_trait]
impl ContainerRuntime for MemoryRuntime {
    async fn info(&self) -> Result<EngineInfo, RuntimeError> {
        self.call(Call::Other, |_, _| self.shared.info.clone()).await
    }

    async fn list(&self, filter: &Labels) -> Result<Listing, RuntimeError> {
        self.call(Call::List, |state, now| state.live_and_list(filter, now)).await
    }

    async fn ensure_image(&self, image: &str) -> Result<(), RuntimeError> {
        self.call(Call::Image(image), |_, _| ()).await?;
        let cause = format!("the memory runtime has no image whose name begins with {MISSING_PREFIX}");
        let missing = image.starts_with(MISSING_PREFIX);
        if missing { Err(RuntimeError::ImageMissing { image: image.to_owned(), cause }) } else { Ok(()) }
    }

    async fn ensure_network(&self, network: &Object) -> Result<(), RuntimeError> {
        self.change(Call::Other, |state, _| state.ensure_network(network)).await?
    }

    async fn remove_network(&self, name: &str) -> Result<(), RuntimeError> {
        self.change(Call::Other, |state, _| state.remove_network(name)).await?
    }

    async fn ensure_volume(&self, volume: &Object) -> Result<(), RuntimeError> {
        self.change(Call::Volume("create", &volume.name), |state, _| state.ensure_volume(volume)).await?
    }

    async fn remove_volume(&self, name: &str) -> Result<(), RuntimeError> {
        self.change(Call::Volume("remove", name), |state, _| state.remove_volume(name)).await?
    }

    async fn create(&self, container: &ContainerSpec) -> Result<(), RuntimeError> {
        let failure = |name: &str| self.shared.ask(|faults| faults.take_create(name));
        self.change(Call::Other, |state, now| state.create(container, now, failure)).await?
    }

    async fn start(&self, container: &str) -> Result<(), RuntimeError> {
        let failure = |name: &str| self.shared.ask(|faults| faults.take_start(name));
        self.change(Call::Start, |state, now| state.start(container, now, failure)).await?
    }

    async fn stop(&self, container: &str, _grace: Duration) -> Result<(), RuntimeError> {
        self.change(Call::Other, |state, now| state.end(container, 143, now)).await
    }

    async fn remove(&self, container: &str) -> Result<(), RuntimeError> {
        self.change(Call::Other, |state, now| state.remove(container, now)).await
    }

    async fn logs(&self, container: &str, options: LogOptions, sink: mpsc::Sender<Bytes>) -> Result<(), RuntimeError> {
        let lines = self.call(Call::Other, |state, _| state.logs(container, options)).await??;
        for line in lines {
            if sink.send(line.into()).await.is_err() {
                return Ok(());
            }
        }
        if options.follow {
            // Nothing here writes on; the one who follows ends it.
            sink.closed().await;
        }
        Ok(())
    }

    async fn exec(&self, container: &str, _command: &[String]) -> Result<i64, RuntimeError> {
        let unwell = self.shared.faults.borrow().unwell.clone();
        self.call(Call::Other, |state, _| state.is_well(container, &unwell)).await?.map(|well| if well { 0 } else { 1 })
    }

    async fn endpoint(&self, container: &str, _port: u32) -> Result<Endpoint, RuntimeError> {
        let unwell = self.shared.faults.borrow().unwell.clone();
        let well = self.call(Call::Other, |state, _| state.is_well(container, &unwell)).await?;
        well.map(|listens| Endpoint::Engine { listens })
    }

    async fn volume_tree(&self, name: &str) -> Result<Box<dyn Tree + Send>, RuntimeError> {
        self.call(Call::Volume("open", name), |state, _| state.volumes.check(name)).await??;
        Ok(Box::new(SharedTree::new(self.shared.clone(), name)))
    }

    async fn store_volume(&self, name: &str, _tree: Box<dyn Tree + Send>) -> Result<(), RuntimeError> {
        // The tree is the volume itself.
        self.call(Call::Volume("store", name), |state, _| state.volumes.check(name)).await?
    }

    async fn volume_bytes(&self, name: &str) -> Result<Option<u64>, RuntimeError> {
        self.call(Call::Volume("measure", name), |state, _| state.volumes.check(name)).await??;
        let failed = |error: cara_volume::TreeError| {
            let (operation, cause) = ("measure", error.to_string());
            RuntimeError::Failed { operation, subject: name.to_owned(), cause }
        };
        size::bytes(&SharedTree::new(self.shared.clone(), name), u64::MAX).map_err(failed)
    }

    async fn changed(&self) {
        self.shared.changed.notified().await;
    }
}
