//! Indexes derived from the objects. Never stored: rebuilt on load, kept by `write`.

use crate::id::{DrainId, MoveId, NodeId, TokenId, WorkloadUid};
use crate::model::{Drain, JoinToken, Move, Node, Workload, WorkloadKind};
use crate::schedule::{self, Booked};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Index {
    pub node_by_name: BTreeMap<String, NodeId>,
    pub node_by_fingerprint: BTreeMap<String, NodeId>,
    pub join_token_by_hash: BTreeMap<String, TokenId>,
    pub join_token_by_end: BTreeSet<(u64, TokenId)>,
    pub api_token_by_hash: BTreeMap<String, TokenId>,
    pub workload_by_name: BTreeMap<WorkloadKind, BTreeMap<String, WorkloadUid>>,
    pub placed: BTreeMap<NodeId, BTreeSet<WorkloadUid>>,
    /// The nodes that take new placements, with the number of workloads that are placed on each.
    pub open_node_by_placed: BTreeSet<(usize, NodeId)>,
    pub unplaced: BTreeSet<WorkloadUid>,
    pub by_expiry: BTreeSet<(u64, WorkloadUid)>,
    /// Those that name a database among their dependencies, by its name.
    pub dependants: BTreeMap<String, BTreeSet<WorkloadUid>>,
    /// What the workloads placed on a node ask for together.
    pub booked: BTreeMap<NodeId, Booked>,
    /// Running moves only.
    pub move_by_workload: BTreeMap<WorkloadUid, MoveId>,
    /// Running moves only, by both ends.
    pub moves_by_node: BTreeMap<NodeId, BTreeSet<MoveId>>,
    /// Running drains only.
    pub drain_by_node: BTreeMap<NodeId, DrainId>,
}

/// What a node is found by, beside its id.
#[derive(PartialEq)]
pub(super) struct KnownBy {
    name: String,
    /// Of its certificate, and of the one before while that is taken as well.
    fingerprints: [Option<String>; 2],
    /// It takes new placements.
    open: bool,
}

impl KnownBy {
    pub fn of(node: &Node) -> Self {
        let certificate = node.certificate.as_ref();
        let previous = certificate.and_then(|certificate| certificate.previous.as_ref());
        let fingerprints = [certificate.map(|c| c.fingerprint.clone()), previous.map(|p| p.fingerprint.clone())];
        Self { name: node.name.clone(), fingerprints, open: schedule::is_open(node) }
    }
}

/// What a workload is found by, beside its uid.
#[derive(PartialEq)]
pub(super) struct FoundBy {
    kind: WorkloadKind,
    name: String,
    end_ms: Option<u64>,
    dependencies: Vec<String>,
    /// It is to have a node and has none.
    waits: bool,
    /// Where it is placed, and what it asks for there.
    node: Option<NodeId>,
    booked: Booked,
}

impl FoundBy {
    pub fn of(workload: &Workload) -> Self {
        Self {
            kind: workload.kind,
            name: workload.name.clone(),
            end_ms: workload.spec.expire_at_ms.filter(|_| !workload.deleting),
            dependencies: workload.spec.dependencies.clone(),
            waits: workload.placement.is_none() && !workload.deleting,
            node: workload.placement.as_ref().map(|placement| placement.node.clone()),
            booked: Booked::of(workload),
        }
    }
}

/// Takes one out of a set, and the set away when it is empty.
fn take_out<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    let Some(set) = sets.get_mut(key) else { return };
    set.remove(value);
    if set.is_empty() {
        sets.remove(key);
    }
}

impl Index {
    pub fn add_node(&mut self, node: &Node) {
        self.make_known(KnownBy::of(node), &node.id);
    }

    pub fn placed_count(&self, node: &NodeId) -> usize {
        self.placed.get(node).map_or(0, BTreeSet::len)
    }

    /// After the number of workloads on a node was `before`. On load, workloads may come before their nodes.
    fn recount(&mut self, node: &NodeId, before: usize) {
        let mut entry = (before, node.clone());
        if self.open_node_by_placed.remove(&entry) {
            entry.0 = self.placed_count(node);
            self.open_node_by_placed.insert(entry);
        }
    }

    /// After a node was changed. Most changes don't touch what it is known by.
    pub fn edit_node(&mut self, before: &KnownBy, node: &Node) {
        let now = KnownBy::of(node);
        if *before != now {
            self.forget(before, &node.id);
            self.make_known(now, &node.id);
        }
    }

    pub fn remove_node(&mut self, node: &Node) {
        self.forget(&KnownBy::of(node), &node.id);
    }

    fn make_known(&mut self, by: KnownBy, id: &NodeId) {
        self.node_by_name.insert(by.name, id.clone());
        self.node_by_fingerprint.extend(by.fingerprints.into_iter().flatten().map(|print| (print, id.clone())));
        if by.open {
            self.open_node_by_placed.insert((self.placed_count(id), id.clone()));
        }
    }

    fn forget(&mut self, by: &KnownBy, id: &NodeId) {
        self.node_by_name.remove(&by.name);
        for fingerprint in by.fingerprints.iter().flatten() {
            self.node_by_fingerprint.remove(fingerprint);
        }
        if by.open {
            self.open_node_by_placed.remove(&(self.placed_count(id), id.clone()));
        }
    }

    pub fn add_join_token(&mut self, token: &JoinToken) {
        self.join_token_by_hash.insert(token.hash.clone(), token.id.clone());
        self.join_token_by_end.insert((token.expires_at_ms, token.id.clone()));
    }

    pub fn remove_join_token(&mut self, token: &JoinToken) {
        self.join_token_by_hash.remove(&token.hash);
        self.join_token_by_end.remove(&(token.expires_at_ms, token.id.clone()));
    }

    pub fn add_workload(&mut self, workload: &Workload) {
        self.make_found(FoundBy::of(workload), &workload.uid);
    }

    /// After a workload was changed. Most changes, such as its status, don't touch what it is found by.
    pub fn edit_workload(&mut self, before: &FoundBy, workload: &Workload) {
        let now = FoundBy::of(workload);
        if *before != now {
            self.lose(before, &workload.uid);
            self.make_found(now, &workload.uid);
        }
    }

    pub fn remove_workload(&mut self, workload: &Workload) {
        self.lose(&FoundBy::of(workload), &workload.uid);
    }

    fn make_found(&mut self, by: FoundBy, uid: &WorkloadUid) {
        self.workload_by_name.entry(by.kind).or_default().insert(by.name, uid.clone());
        self.by_expiry.extend(by.end_ms.map(|end_ms| (end_ms, uid.clone())));
        for database in by.dependencies {
            self.dependants.entry(database).or_default().insert(uid.clone());
        }
        if by.waits {
            self.unplaced.insert(uid.clone());
        }
        let Some(node) = by.node else { return };
        let before = self.placed_count(&node);
        self.placed.entry(node.clone()).or_default().insert(uid.clone());
        self.recount(&node, before);
        if by.booked != Booked::default() {
            self.booked.entry(node).or_default().add(by.booked);
        }
    }

    fn lose(&mut self, by: &FoundBy, uid: &WorkloadUid) {
        if let Some(names) = self.workload_by_name.get_mut(&by.kind) {
            names.remove(&by.name);
            if names.is_empty() {
                self.workload_by_name.remove(&by.kind);
            }
        }
        if let Some(end_ms) = by.end_ms {
            self.by_expiry.remove(&(end_ms, uid.clone()));
        }
        for database in &by.dependencies {
            take_out(&mut self.dependants, database, uid);
        }
        self.unplaced.remove(uid);
        let Some(node) = &by.node else { return };
        let before = self.placed_count(node);
        take_out(&mut self.placed, node, uid);
        self.recount(node, before);
        if let Some(booked) = self.booked.get_mut(node) {
            booked.take(by.booked);
            if *booked == Booked::default() {
                self.booked.remove(node);
            }
        }
    }

    pub fn add_move(&mut self, mv: &Move) {
        if !mv.is_running() {
            return;
        }
        self.move_by_workload.insert(mv.workload.clone(), mv.id.clone());
        for node in [&mv.source, &mv.target] {
            self.moves_by_node.entry(node.clone()).or_default().insert(mv.id.clone());
        }
    }

    pub fn remove_move(&mut self, mv: &Move) {
        if !mv.is_running() {
            return;
        }
        self.move_by_workload.remove(&mv.workload);
        for node in [&mv.source, &mv.target] {
            take_out(&mut self.moves_by_node, node, &mv.id);
        }
    }

    pub fn add_drain(&mut self, drain: &Drain) {
        if drain.is_running() {
            self.drain_by_node.insert(drain.node.clone(), drain.id.clone());
        }
    }

    pub fn remove_drain(&mut self, drain: &Drain) {
        if drain.is_running() {
            self.drain_by_node.remove(&drain.node);
        }
    }
}
