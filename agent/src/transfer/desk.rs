//! Begins what the desired set wants of transfers, and ends what it wants no more. Owned by the reconciler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cara_env::Task;
use cara_proto::workload::{Assignment, Transfer};
use tokio::sync::watch;

use super::Ground;
use super::listen;
pub(crate) use super::progress::Statuses;
use super::progress::Teller;
use super::pull::{Memory, Pull};
use super::source::VolumesService;
use super::tunnel::TunnelListener;
use crate::mode::Mode;
use crate::observed::Observed;
use crate::plan::{managed_volumes, newest};

/// All transfers of this node.
pub(crate) struct Desk {
    ground: Ground,
    /// Rounds that run, by uid.
    pulls: BTreeMap<String, Running>,
    /// What is kept of moves to this node, by uid: the move and its memory.
    memories: BTreeMap<String, (String, Arc<Memory>)>,
    /// Moves from this node that go through the relay. Dropping a sender ends it.
    relays: BTreeMap<String, watch::Sender<bool>>,
    statuses: watch::Sender<Statuses>,
}

struct Running {
    transfer: Transfer,
    given_up: Arc<AtomicBool>,
    task: Task<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Release);
        self.task.abort();
    }
}

impl Desk {
    pub(crate) fn new(ground: Ground) -> Self {
        Self {
            ground,
            pulls: BTreeMap::new(),
            memories: BTreeMap::new(),
            relays: BTreeMap::new(),
            statuses: watch::Sender::new(Statuses::new()),
        }
    }

    /// Changes whenever there is something to report.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Statuses> {
        self.statuses.subscribe()
    }

    /// Makes the running transfers those that are wanted. What was copied into a volume that is gone counts for nothing, and
    /// nothing is copied into one that isn't among the `staged`.
    pub(crate) fn follow(&mut self, desired: &[Assignment], observed: &Observed, staged: &BTreeSet<String>) {
        let wanted = newest(desired);
        let owner = self.ground.owner.clone();
        let node = &owner.node_id;
        let can_be_filled = |assignment: &Assignment| {
            let footprint = observed.workloads.get(&assignment.uid);
            let is_copy = |name: &String| footprint.is_some_and(|f| f.has_volume(name)) && staged.contains(name);
            footprint.is_none_or(|footprint| footprint.containers.is_empty())
                && managed_volumes(&owner, assignment).iter().all(|(_, name)| is_copy(name))
        };
        let of =
            |uid: &str| wanted.get(uid).filter(|assignment| can_be_filled(assignment)).and_then(|a| incoming(a, node));
        self.pulls.retain(|uid, running| of(uid) == Some(&running.transfer));
        self.memories.retain(|uid, (move_id, _)| of(uid).is_some_and(|transfer| transfer.move_id == *move_id));
        self.statuses.send_if_modified(|statuses| {
            let before = statuses.len();
            statuses.retain(|uid, status| of(uid).is_some_and(|transfer| transfer.move_id == status.move_id));
            statuses.len() != before
        });
        for (uid, assignment) in &wanted {
            if let Some(transfer) = of(uid) {
                self.pull(uid, assignment, transfer);
            }
        }
        let outgoing: Vec<&str> = wanted.values().filter_map(|assignment| relayed(assignment, node)).collect();
        self.relays.retain(|move_id, _| outgoing.contains(&move_id.as_str()));
        for move_id in outgoing {
            self.relay(move_id);
        }
    }

    /// Begins the round, unless it runs or is done.
    fn pull(&mut self, uid: &str, assignment: &Assignment, transfer: &Transfer) {
        let is_done = self.statuses.borrow().get(uid).is_some_and(|status| {
            (status.move_id.as_str(), status.round, status.r#final)
                == (transfer.move_id.as_str(), transfer.round, transfer.r#final)
        });
        if self.pulls.contains_key(uid) || is_done || transfer.round == 0 {
            return;
        }
        let memory =
            &self.memories.entry(uid.to_owned()).or_insert_with(|| (transfer.move_id.clone(), Arc::default())).1;
        let given_up = Arc::new(AtomicBool::new(false));
        let now = self.ground.env.clock.monotonic();
        let pull = Pull {
            ground: self.ground.clone(),
            uid: uid.to_owned(),
            transfer: transfer.clone(),
            volumes: managed_volumes(&self.ground.owner, assignment),
            memory: memory.clone(),
            teller: Teller::new(uid, transfer, self.statuses.clone(), now),
            given_up: given_up.clone(),
            finished: BTreeMap::new(),
            sent_before: 0,
        };
        let running = Running { transfer: transfer.clone(), given_up, task: cara_env::spawn(pull.run()) };
        self.pulls.insert(uid.to_owned(), running);
    }

    /// Answers the target of a move through the leader.
    fn relay(&mut self, move_id: &str) {
        if self.relays.contains_key(move_id) {
            return;
        }
        let (stop, stopped) = watch::channel(false);
        let ground = self.ground.clone();
        let listener = Box::new(TunnelListener { ground: ground.clone(), move_id: move_id.to_owned() });
        let service = VolumesService::new(ground.clone());
        drop(cara_env::spawn(listen::serve(ground, listener, service, stopped)));
        self.relays.insert(move_id.to_owned(), stop);
    }
}

/// The transfer that fills this node's volumes.
fn incoming<'a>(assignment: &'a Assignment, node: &str) -> Option<&'a Transfer> {
    let transfer = assignment.transfer.as_ref().filter(|_| Mode::of(assignment) == Mode::Receive)?;
    (transfer.target_node == node && transfer.to_data_generation == assignment.data_generation).then_some(transfer)
}

/// The move whose target is to be answered through the relay.
fn relayed<'a>(assignment: &'a Assignment, node: &str) -> Option<&'a str> {
    let transfer = assignment.transfer.as_ref()?;
    (transfer.relay && transfer.source_node == node).then_some(transfer.move_id.as_str())
}
