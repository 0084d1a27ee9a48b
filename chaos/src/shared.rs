//! What the machines of a simulated world, its driver and its judges hand to each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_control::setup::Founded;
use cara_transport::JoinToken;
use tokio::runtime::Handle;

use crate::order::Order;
use crate::workload::Phase;
use crate::workload::history::History;

/// A machine that joins while the world runs.
#[derive(Debug, Clone)]
pub struct Newcomer {
    /// Its name.
    pub name: String,
    /// The token that it was given.
    pub token: JoinToken,
}

/// What is handed between the machines and the driver.
#[derive(Default)]
pub(crate) struct Desk {
    founded: Option<Founded>,
    phase: Phase,
    pub(crate) nodes: Vec<String>,
    reserved: usize,
    pub(crate) newcomers_max: usize,
    newcomers: Vec<Newcomer>,
    renewals: Vec<u64>,
    orders: Vec<Order>,
    /// Given and not carried out.
    open_orders: usize,
    /// What orders are about that a client works on.
    in_hand: Vec<String>,
    /// Tokens with which machines shall get a new identity.
    returns: BTreeMap<String, JoinToken>,
    carried_out: Vec<Order>,
    /// Machines that run the release before this one.
    pub(crate) old: BTreeSet<String>,
    runtimes: BTreeMap<String, Handle>,
    /// How long servers' certificates live; none = as usual.
    pub(crate) certificate_life: Option<Duration>,
    /// How often the CA was replaced, or may have been.
    rotations: usize,
}

/// What the machines, the driver and the checkers share.
#[derive(Default)]
pub struct Shared {
    history: Mutex<History>,
    desk: Mutex<Desk>,
    stale_reads: AtomicBool,
}

impl Shared {
    /// For the driver, which sets up what is on it.
    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What init told the operator; none before.
    pub fn founded(&self) -> Option<Founded> {
        self.desk().founded.clone()
    }

    /// The first server has made the cluster.
    pub(crate) fn note_founded(&self, founded: Founded) {
        self.desk().founded = Some(founded);
    }

    /// A server's process has begun on this runtime.
    pub(crate) fn note_runtime(&self, server: &str, runtime: Handle) {
        self.desk().runtimes.insert(server.to_owned(), runtime);
    }

    /// The history so far.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime of a server's last process, to compare what it polls with what its gate admits.
    pub fn runtime(&self, server: &str) -> Option<Handle> {
        self.desk().runtimes.get(server).cloned()
    }

    /// Does the machine run the release before this one?
    pub fn is_old(&self, host: &str) -> bool {
        self.desk().old.contains(host)
    }

    /// How long servers' certificates live; none = as usual.
    pub fn certificate_life(&self) -> Option<Duration> {
        self.desk().certificate_life
    }

    /// What clients shall do now.
    pub fn phase(&self) -> Phase {
        self.desk().phase
    }

    /// Tells clients what to do from now on.
    pub fn set_phase(&self, phase: Phase) {
        self.desk().phase = phase;
    }

    /// Do clients read with `consistency=stale`?
    pub fn stale_reads(&self) -> bool {
        self.stale_reads.load(Ordering::Relaxed)
    }

    /// Lets clients read with `consistency=stale`: a planted fault for the checkers.
    pub fn set_stale_reads(&self, on: bool) {
        self.stale_reads.store(on, Ordering::Relaxed);
    }

    /// The nodes that were there from the begin.
    pub fn nodes(&self) -> Vec<String> {
        self.desk().nodes.clone()
    }

    /// Names for so many machines that shall join; none when enough have joined.
    pub fn reserve_newcomers(&self, count: usize) -> Option<Vec<String>> {
        let mut desk = self.desk();
        let first = desk.reserved + 1;
        let most = desk.newcomers_max;
        (desk.reserved + count <= most).then(|| {
            desk.reserved += count;
            (first..first + count).map(|i| format!("x{i}")).collect()
        })
    }

    /// Machines for the driver to switch on.
    pub fn add_newcomers(&self, newcomers: impl Iterator<Item = Newcomer>) {
        self.desk().newcomers.extend(newcomers);
    }

    /// Who shall join now.
    pub(crate) fn take_newcomers(&self) -> Vec<Newcomer> {
        std::mem::take(&mut self.desk().newcomers)
    }

    /// May the CA be replaced once more? Clients follow the CA that they began with only so far.
    pub fn may_rotate(&self) -> bool {
        self.desk().rotations < cara_core::limits::FORMER_CAS_MAX
    }

    /// The CA is being replaced, or may be.
    pub fn note_rotation(&self) {
        self.desk().rotations += 1;
    }

    /// Asks the driver to let a node's certificate come of age.
    pub fn ask_for_renewal(&self, node: u64) {
        self.desk().renewals.push(node);
    }

    /// Nodes, by number, whose certificates shall come of age.
    pub fn take_renewals(&self) -> Vec<u64> {
        std::mem::take(&mut self.desk().renewals)
    }

    /// Asks the clients to do an operator's work.
    pub fn order(&self, order: Order) {
        let mut desk = self.desk();
        desk.open_orders += 1;
        desk.orders.push(order);
    }

    /// Could not be carried out yet.
    pub fn order_again(&self, order: Order) {
        let mut desk = self.desk();
        desk.in_hand.retain(|subject| subject != order.subject());
        desk.orders.insert(0, order);
    }

    /// The next work of an operator, for a client that has time.
    pub fn take_order(&self) -> Option<Order> {
        let mut desk = self.desk();
        let is_free = |order: &Order| !desk.in_hand.iter().any(|subject| subject == order.subject());
        let next = desk.orders.iter().position(is_free)?;
        let order = desk.orders.remove(next);
        desk.in_hand.push(order.subject().to_owned());
        Some(order)
    }

    /// A machine shall get a new identity with this token.
    pub fn give_return(&self, machine: &str, token: JoinToken) {
        self.desk().returns.insert(machine.to_owned(), token);
    }

    /// The token with which this machine shall get a new identity.
    pub fn return_of(&self, machine: &str) -> Option<JoinToken> {
        self.desk().returns.get(machine).cloned()
    }

    /// The machine has its new identity, or this token does not help.
    pub fn end_return(&self, machine: &str) {
        self.desk().returns.remove(machine);
    }

    /// Is all of an operator's work done?
    pub fn has_no_orders(&self) -> bool {
        let desk = self.desk();
        desk.open_orders == 0 && desk.returns.is_empty()
    }

    /// An order was carried out.
    pub fn carried_out(&self, order: Order) {
        let mut desk = self.desk();
        desk.open_orders -= 1;
        desk.in_hand.retain(|subject| subject != order.subject());
        desk.carried_out.push(order);
    }

    /// The orders carried out since the last call.
    pub fn take_carried_out(&self) -> Vec<Order> {
        std::mem::take(&mut self.desk().carried_out)
    }
}
