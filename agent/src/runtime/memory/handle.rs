//! The world's hand in a memory engine: make it fail, hang or lose containers, and read what ran when.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cara_env::Clock;

use super::{Failing, Faults, MemoryRuntime, Shared};
use crate::labels::{self, Labels};
use crate::runtime::{ContainerInfo, ContainerSpec, Listing, Object, RuntimeError};

/// Controls one engine. A clone controls the same.
#[derive(Clone)]
pub struct MemoryHandle {
    shared: Arc<Shared>,
}

/// A container that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its id.
    pub container: String,
    /// Uid of its workload; empty for a foreign container.
    pub uid: String,
    /// Its service.
    pub service: String,
    /// Generation of the placement that it belongs to.
    pub generation: u64,
    /// Wall clock of its start in ms since 1970.
    pub started_at_ms: u64,
}

/// One start of a container, for checkers: two copies overlap if their intervals do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Id of the container.
    pub container: String,
    /// Uid of its workload.
    pub uid: String,
    /// Its service.
    pub service: String,
    /// Generation of the placement.
    pub generation: u64,
    /// All its labels.
    pub labels: Labels,
    /// When its process began to live, by the clock of the records ([`MemoryHandle::record_by`]).
    pub started_at: Duration,
    /// When its process was gone, by the same clock; none while it runs.
    pub ended_at: Option<Duration>,
    /// Digests of its volumes just before it wrote anything, by engine name.
    pub volumes: BTreeMap<String, String>,
}

impl Start {
    pub(super) fn of(info: &ContainerInfo, started_at: Duration) -> Self {
        let (uid, service, generation) = identity(&info.labels);
        Self {
            container: info.id.clone(),
            uid,
            service,
            generation,
            labels: info.labels.clone(),
            started_at,
            ended_at: None,
            volumes: BTreeMap::new(),
        }
    }
}

impl MemoryHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The containers that run now, by name.
    pub fn running(&self) -> Vec<Running> {
        let state = self.shared.lock();
        let alive = state.containers.values().map(|c| &c.info).filter(|info| info.state.is_alive());
        let running = alive.map(|info| {
            let (uid, service, generation) = identity(&info.labels);
            Running { container: info.id.clone(), uid, service, generation, started_at_ms: info.started_at_ms }
        });
        running.collect()
    }

    /// Every start so far, oldest first, each with the whole interval in which its process lived; the last 10 000.
    pub fn starts(&self) -> Vec<Start> {
        self.shared.lock().starts.iter().cloned().collect()
    }

    /// Starts that [`MemoryHandle::starts`] does not tell any more, since there were too many. A checker that sees
    /// more than 0 here can't say that everything was well.
    pub fn forgotten(&self) -> u64 {
        self.shared.lock().forgotten
    }

    /// All containers, networks and volumes that exist now, whoever owns them. No fault reaches this.
    pub fn listing(&self) -> Listing {
        self.shared.lock().list(&Labels::new())
    }

    /// Names a volume's content, as a round of a transfer would. None when there is no such volume. No fault reaches this.
    pub fn volume_digest(&self, name: &str) -> Option<String> {
        self.shared.lock().volumes.digest(name)
    }

    /// What containers have written into a managed volume, oldest first: `<generation> <counter> started|lives|stopped`.
    pub fn volume_lines(&self, name: &str) -> Vec<String> {
        self.shared.lock().volumes.lines(name)
    }

    /// From now on starts and ends are recorded by this clock instead of the engine's own, so that the records of
    /// engines on different machines can be compared.
    pub fn record_by(&self, clock: Arc<dyn Clock>) {
        *self.shared.recorder.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
    }

    /// What is wrong with the engine now.
    pub fn faults(&self) -> Faults {
        self.shared.faults.borrow().clone()
    }

    /// Changes what is wrong with the engine.
    pub fn fault(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.faults.send_modify(change);
    }

    /// Lifts every fault; calls that wait go on. What has failed or ended stays so.
    pub fn clear(&self) {
        self.shared.faults.send_replace(Faults::default());
    }

    /// The next start fails with this message.
    pub fn fail_next_start(&self, message: &str) {
        self.fault(|faults| faults.fail_starts = Failing::next(1, message));
    }

    /// While true, every call waits, as with an engine that accepts and never answers.
    pub fn hang(&self, hang: bool) {
        self.fault(|faults| faults.hang = hang);
    }

    /// The container (by id or name) ends with this code.
    pub fn exit(&self, container: &str, code: i64) {
        let now = self.shared.now();
        self.shared.lock().end(container, code, now);
        self.shared.changed.notify_one();
    }

    /// Every container ends, as when the machine loses power. Volumes stay.
    pub fn exit_all(&self) {
        self.exit_all_with(255);
    }

    /// Every container ends with this code.
    pub fn exit_all_with(&self, code: i64) {
        for running in self.running() {
            self.exit(&running.container, code);
        }
    }

    /// Puts a running container of somebody else, with these labels and a network of its own, beside ours.
    ///
    /// # Errors
    /// As the engine's own calls, for example when the name is taken.
    pub async fn add_foreign(&self, name: &str, labels: Labels) -> Result<(), RuntimeError> {
        use crate::runtime::ContainerRuntime;
        let engine = MemoryRuntime { shared: self.shared.clone() };
        let network = format!("{name}-net");
        engine.ensure_network(&Object { name: network.clone(), labels: labels.clone() }).await?;
        let spec = ContainerSpec {
            name: name.to_owned(),
            image: "foreign".into(),
            command: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            mounts: Vec::new(),
            ports: Vec::new(),
            network,
            alias: name.to_owned(),
            labels,
        };
        engine.create(&spec).await?;
        engine.start(name).await
    }
}

impl std::fmt::Debug for MemoryHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemoryHandle")
    }
}

fn identity(labels: &Labels) -> (String, String, u64) {
    let text = |key: &str| labels.get(key).cloned().unwrap_or_default();
    let generation = labels.get(labels::GENERATION).and_then(|g| g.parse().ok()).unwrap_or_default();
    (text(labels::UID), text(labels::SERVICE), generation)
}
