//! A small agent that obeys the contract: it takes its node's desired set into a ledger that survives crashes, brings its
//! one workload there step by step, and reports what is so. Volumes are values: how often each node wrote into them.

use cara_core::model::{ContainerStatus, Phase, RemovedGrant, VolumeTransfer, WorkloadStatus};
use cara_core::{Assignment, Generation, Mode, Transfer};
use std::collections::BTreeMap;

/// The content of a volume: the writes of the source's copies and of the target's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    pub by_source: u8,
    pub by_target: u8,
    /// Damaged in a copy.
    pub damaged: bool,
}

/// What of the desired set the agent wrote down: the fields that it acts by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    pub generation: Generation,
    pub data_generation: Generation,
    pub mode: Mode,
    /// From, to, round, final.
    pub transfer: Option<(Generation, Generation, u32, bool)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Container {
    pub generation: Generation,
    pub data_generation: Generation,
    pub running: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agent {
    /// Whether the machine is on.
    pub up: bool,
    /// On its disk.
    pub ledger: Option<Order>,
    pub container: Option<Container>,
    pub volumes: BTreeMap<Generation, (Content, bool)>,
    /// In its memory: image and network are there for this grant.
    pub ready: Option<Generation>,
    /// On its disk, written before it is reported: the last round that it finished, with the two digests. Were it
    /// forgotten, the round would be copied again, maybe into a volume that was proven and is about to be mounted.
    pub copied: Option<(u32, Content, Content)>,
    /// In its memory: nothing that could run is left of this grant.
    pub removed: Option<Generation>,
    /// The next start fails, until somebody mends it.
    pub start_broken: bool,
    /// The next copy is damaged on its way.
    pub copy_broken: bool,
}

/// A rule that an agent breaks, to show that the search would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    None,
    /// Starts in the mode `stop`, too, after its machine comes back.
    StartsInStop,
    /// Says that it has stopped before it has.
    StopsInWordOnly,
    /// Reports a discarded copy gone while it still runs.
    DiscardsInWordOnly,
    /// Runs on the volume as the round before the last left it: reports digests that it has not computed.
    TrustsTheSourceDigest,
    /// Keeps only in memory which rounds are done.
    ForgetsFinishedRounds,
    /// Deletes the source's volume as soon as it is told to stop.
    StopDeletes,
}

impl Order {
    pub fn of(assignment: &Assignment) -> Order {
        let parts = |t: &Transfer| (t.from_data_generation, t.to_data_generation, t.round, t.is_final);
        Order {
            generation: assignment.generation,
            data_generation: assignment.data_generation,
            mode: assignment.mode,
            transfer: assignment.transfer.as_ref().map(parts),
        }
    }
}

impl Agent {
    /// Takes the desired set: writes it down before anything else.
    pub fn take(&mut self, order: Option<Order>) {
        let mode = order.as_ref().map(|order| order.mode);
        self.ledger = order;
        // What it noted for one mode means nothing in another.
        if mode != Some(Mode::Receive) {
            (self.ready, self.copied) = (None, None);
        }
        if !matches!(mode, Some(Mode::Discard | Mode::Retire)) {
            self.removed = None;
        }
    }

    pub fn is_running(&self) -> bool {
        self.container.as_ref().is_some_and(|container| container.running)
    }

    /// The machine loses power: what ran is stopped, what was in memory is gone.
    pub fn crash(&mut self, mutant: Mutant) {
        self.up = false;
        if let Some(container) = &mut self.container {
            container.running = false;
        }
        self.forget(mutant);
    }

    /// The agent alone ends and begins again: containers run on, memory is gone.
    pub fn restart_process(&mut self, mutant: Mutant) {
        self.forget(mutant);
    }

    fn forget(&mut self, mutant: Mutant) {
        self.ready = None;
        if mutant == Mutant::ForgetsFinishedRounds {
            self.copied = None;
        }
        self.removed = None;
    }

    /// One step towards the ledger, copies apart; they need the other machine.
    pub fn act(&mut self, stateful: bool, mutant: Mutant) {
        let Some(order) = self.ledger.clone() else {
            self.container = None; // No grant: what of ours runs here is an orphan.
            return;
        };
        match order.mode {
            Mode::Run => self.run(&order, stateful),
            Mode::Stop if mutant == Mutant::StartsInStop && !self.is_running() => self.run(&order, stateful),
            Mode::Stop => {
                if let Some(container) = self.container.as_mut().filter(|_| mutant != Mutant::StopsInWordOnly) {
                    container.running = false;
                }
                if mutant == Mutant::StopDeletes {
                    self.volumes.remove(&order.data_generation);
                }
            }
            Mode::Receive => {
                self.container = None;
                self.ready = Some(order.generation);
            }
            Mode::Discard => {
                if mutant != Mutant::DiscardsInWordOnly {
                    self.container = None;
                }
                // What was mounted is kept aside, what was only staged goes.
                self.volumes.retain(|data, (_, mounted)| *data != order.generation || *mounted);
                self.removed = Some(order.generation);
            }
            Mode::Retire => {
                self.container = None;
                self.removed = Some(order.generation);
            }
        }
    }

    fn run(&mut self, order: &Order, stateful: bool) {
        match &mut self.container {
            Some(container) if container.generation == order.generation => {
                container.running = !self.start_broken || container.running;
            }
            Some(container) if container.running => container.running = false,
            Some(_) | None if self.start_broken => self.container = None,
            Some(_) | None => {
                self.container = Some(Container {
                    generation: order.generation,
                    data_generation: order.data_generation,
                    running: true,
                });
                if stateful {
                    // Docker makes a volume that isn't there: empty.
                    self.volumes.entry(order.data_generation).or_default().1 = true;
                }
            }
        }
    }

    /// The copy that the ledger asks this end to fill, unless it is done.
    pub fn copy_due(&self) -> Option<(Generation, Generation, u32, bool)> {
        let order = self.ledger.as_ref().filter(|order| order.mode == Mode::Receive)?;
        order.transfer.filter(|(_, _, round, _)| self.copied.is_none_or(|(done, _, _)| done != *round))
    }

    /// Takes the source's content into the staged volume.
    pub fn copy(&mut self, to: Generation, round: u32, source: Content, mutant: Mutant) {
        let damaged = self.copy_broken;
        if mutant == Mutant::TrustsTheSourceDigest && self.volumes.contains_key(&to) {
            self.copied = Some((round, source, source));
            return;
        }
        let content = Content { damaged, ..source };
        self.volumes.insert(to, (content, false));
        self.copied = Some((round, source, content));
    }

    /// What it says about its workload, and which copy it has removed.
    pub fn report(&self, mutant: Mutant) -> (Option<WorkloadStatus>, Option<RemovedGrant>) {
        let Some(order) = &self.ledger else { return (None, None) };
        let gone = self.removed.filter(|gone| *gone == order.generation);
        if matches!(order.mode, Mode::Discard | Mode::Retire) {
            return (None, gone.map(|generation| RemovedGrant { uid: super::world::UID.into(), generation }));
        }
        let container = self.container.as_ref().filter(|container| container.generation == order.generation);
        let running = container.is_some_and(|container| container.running);
        let phase = match order.mode {
            Mode::Run if running => Phase::Running,
            Mode::Run if self.start_broken => Phase::Failed,
            Mode::Stop if !self.is_running() || mutant == Mutant::StopsInWordOnly => Phase::Stopped,
            Mode::Run | Mode::Stop | Mode::Receive | Mode::Discard | Mode::Retire => Phase::Pending,
        };
        let digest = |content: &Content| format!("{content:?}");
        let transfer = |(round_done, source, target): &(u32, Content, Content)| VolumeTransfer {
            volume: "data".into(),
            round_done: *round_done,
            source_digest: digest(source),
            target_digest: digest(target),
            ..Default::default()
        };
        let status = WorkloadStatus {
            observed_generation: order.generation,
            phase,
            ready: order.mode == Mode::Receive && self.ready == Some(order.generation),
            transfers: self.copied.iter().filter(|_| order.mode == Mode::Receive).map(transfer).collect(),
            containers: container.iter().map(|_| ContainerStatus::default()).collect(),
            ..Default::default()
        };
        (Some(status), None)
    }
}
