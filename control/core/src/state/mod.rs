//! The replicated state: objects, and indexes that are derived from them.
//!
//! Reading is here; `write` has the only ways to change it (they keep the indexes and note what changed), `apply` runs
//! an entry, `load` turns it into key/value pairs and back.
//!
//! `Invariant:` two servers that applied the same entries have equal states, byte for byte in `dump`.

mod apply;
mod fnv;
mod index;
mod key;
mod load;
mod moving;
mod place;
mod replies;
mod write;

pub use key::Key;
pub(crate) use moving::MoveStart;
pub(crate) use place::is_news;

use crate::id::{DrainId, MoveId, NodeId, Revision, ServerId, TokenId, WorkloadUid};
use crate::model::{
    ApiToken, AuditRecord, Cluster, Drain, JoinToken, Move, Node, NodeEvent, NodeEvents, Server, Workload, WorkloadKind,
};
use crate::schedule::Booked;
use index::Index;
use replies::Replies;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that the servers share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    meta: Meta,
    cluster: Option<Cluster>,
    servers: BTreeMap<ServerId, Server>,
    nodes: BTreeMap<NodeId, Node>,
    node_events: BTreeMap<NodeId, NodeEvents>,
    join_tokens: BTreeMap<TokenId, JoinToken>,
    api_tokens: BTreeMap<TokenId, ApiToken>,
    workloads: BTreeMap<WorkloadUid, Workload>,
    audit: BTreeMap<Revision, AuditRecord>,
    replies: Replies,
    moves: BTreeMap<MoveId, Move>,
    drains: BTreeMap<DrainId, Drain>,
    index: Index,
    /// Keys of objects that changed since the last entry was finished; empty between entries.
    dirty: BTreeSet<Key>,
}

/// What the log itself leaves behind.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Meta {
    /// The last entry that was accepted.
    #[prost(message, required, tag = "1")]
    pub revision: Revision,
    /// Its time, in ms since 1970.
    #[prost(uint64, tag = "2")]
    pub at_ms: u64,
}

impl State {
    /// The last entry that was accepted; 0 before the first.
    pub fn revision(&self) -> Revision {
        self.meta.revision
    }

    /// The log's time in ms since 1970: of the last entry that was accepted.
    pub fn at_ms(&self) -> u64 {
        self.meta.at_ms
    }

    /// The cluster; `None` before `InitCluster`.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// The incarnation; 0 before `InitCluster`.
    pub fn incarnation(&self) -> u64 {
        self.cluster.as_ref().map_or(0, |cluster| cluster.incarnation)
    }

    /// All servers, by id.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.values()
    }

    /// The server with this id.
    pub fn server(&self, id: ServerId) -> Option<&Server> {
        self.servers.get(&id)
    }

    /// The id for the next server: higher than every id ever given, because an old one must not vote on an empty disk.
    pub fn next_server_id(&self) -> ServerId {
        self.cluster.as_ref().map_or(ServerId(1), |cluster| cluster.last_server_id.next())
    }

    /// All nodes, by id.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.nodes.values()
    }

    /// The node with this id.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The node with this name.
    pub fn node_by_name(&self, name: &str) -> Option<&Node> {
        self.index.node_by_name.get(name).and_then(|id| self.nodes.get(id))
    }

    /// The node whose certificate has this fingerprint, as the current one or the one before. Whether it is accepted is
    /// `Certificate::accepts`.
    pub fn node_by_fingerprint(&self, fingerprint: &str) -> Option<&Node> {
        self.index.node_by_fingerprint.get(fingerprint).and_then(|id| self.nodes.get(id))
    }

    /// The node's events, oldest first; the newest 200.
    pub fn node_events(&self, id: &NodeId) -> &[NodeEvent] {
        self.node_events.get(id).map_or(&[], |events| &events.events)
    }

    /// All join tokens, by id.
    pub fn join_tokens(&self) -> impl ExactSizeIterator<Item = &JoinToken> {
        self.join_tokens.values()
    }

    /// The join token with this id.
    pub fn join_token(&self, id: &TokenId) -> Option<&JoinToken> {
        self.join_tokens.get(id)
    }

    /// The join token whose text has this SHA-256 (lowercase hex).
    pub fn join_token_by_hash(&self, hash: &str) -> Option<&JoinToken> {
        self.index.join_token_by_hash.get(hash).and_then(|id| self.join_tokens.get(id))
    }

    /// All API tokens, by id, revoked ones included.
    pub fn api_tokens(&self) -> impl ExactSizeIterator<Item = &ApiToken> {
        self.api_tokens.values()
    }

    /// The API token with this id.
    pub fn api_token(&self, id: &TokenId) -> Option<&ApiToken> {
        self.api_tokens.get(id)
    }

    /// The API token whose text has this SHA-256 (lowercase hex). Whether it may be used is `ApiToken::is_valid`.
    pub fn api_token_by_hash(&self, hash: &str) -> Option<&ApiToken> {
        self.index.api_token_by_hash.get(hash).and_then(|id| self.api_tokens.get(id))
    }

    /// All workloads, by uid.
    pub fn workloads(&self) -> impl ExactSizeIterator<Item = &Workload> {
        self.workloads.values()
    }

    /// The workload with this uid.
    pub fn workload(&self, uid: &WorkloadUid) -> Option<&Workload> {
        self.workloads.get(uid)
    }

    /// The workload of this kind with this name.
    pub fn workload_by_name(&self, kind: WorkloadKind, name: &str) -> Option<&Workload> {
        self.index.workload_by_name.get(&kind).and_then(|names| names.get(name)).and_then(|uid| self.workloads.get(uid))
    }

    /// The workloads that are placed on a node, by uid, those being deleted included.
    pub fn placed_on(&self, node: &NodeId) -> impl Iterator<Item = &Workload> {
        self.index.placed.get(node).into_iter().flatten().filter_map(|uid| self.workloads.get(uid))
    }

    /// How many workloads are placed on a node, those being deleted included.
    pub fn placed_count(&self, node: &NodeId) -> usize {
        self.index.placed_count(node)
    }

    /// The nodes that are online and not cordoned, each with the number of workloads that are placed on it, the emptiest
    /// first, ties by id.
    pub fn open_nodes_by_placed(&self) -> impl Iterator<Item = (usize, &NodeId)> {
        self.index.open_node_by_placed.iter().map(|(placed, id)| (*placed, id))
    }

    /// The workloads that have no placement and are not being deleted, by uid.
    pub fn unplaced(&self) -> impl Iterator<Item = &Workload> {
        self.index.unplaced.iter().filter_map(|uid| self.workloads.get(uid))
    }

    /// The workloads that expire and are not being deleted, the earliest first, with their end in ms since 1970.
    pub fn by_expiry(&self) -> impl Iterator<Item = (u64, &Workload)> {
        self.index.by_expiry.iter().filter_map(|(end_ms, uid)| self.workloads.get(uid).map(|w| (*end_ms, w)))
    }

    /// The workloads that name this database among their dependencies, by uid.
    pub(crate) fn dependants(&self, database: &str) -> impl Iterator<Item = &Workload> {
        let uids = self.index.dependants.get(database).into_iter().flatten();
        uids.filter_map(|uid| self.workloads.get(uid))
    }

    /// All moves that are kept, by id: those that run and the newest that are over.
    pub fn moves(&self) -> impl ExactSizeIterator<Item = &Move> {
        self.moves.values()
    }

    /// The move with this id.
    pub fn get_move(&self, id: &MoveId) -> Option<&Move> {
        self.moves.get(id)
    }

    /// The moves that run, by workload.
    pub fn running_moves(&self) -> impl Iterator<Item = &Move> {
        self.index.move_by_workload.values().filter_map(|id| self.moves.get(id))
    }

    /// The move that holds this workload.
    pub fn running_move(&self, workload: &WorkloadUid) -> Option<&Move> {
        self.index.move_by_workload.get(workload).and_then(|id| self.moves.get(id))
    }

    /// The running moves that this node is an end of, by id.
    pub fn moves_on(&self, node: &NodeId) -> impl Iterator<Item = &Move> {
        self.index.moves_by_node.get(node).into_iter().flatten().filter_map(|id| self.moves.get(id))
    }

    /// The running moves that bring a workload to this node which is not placed there yet, by id.
    pub fn incoming(&self, node: &NodeId) -> impl Iterator<Item = &Move> {
        self.moves_on(node).filter(move |mv| mv.target == *node && !mv.is_committed())
    }

    /// All drains that are kept, by id: those that run and the newest that are over.
    pub fn drains(&self) -> impl ExactSizeIterator<Item = &Drain> {
        self.drains.values()
    }

    /// The drain with this id.
    pub fn drain(&self, id: &DrainId) -> Option<&Drain> {
        self.drains.get(id)
    }

    /// The drain that empties this node now.
    pub fn running_drain(&self, node: &NodeId) -> Option<&Drain> {
        self.index.drain_by_node.get(node).and_then(|id| self.drains.get(id))
    }

    /// The drains that run, by node.
    pub fn running_drains(&self) -> impl Iterator<Item = &Drain> {
        self.index.drain_by_node.values().filter_map(|id| self.drains.get(id))
    }

    /// What is asked for on a node: by what is placed there, and by what is being moved there.
    pub(crate) fn booked(&self, node: &NodeId) -> Booked {
        let mut booked = self.index.booked.get(node).copied().unwrap_or_default();
        for workload in self.incoming(node).filter_map(|mv| self.workloads.get(&mv.workload)) {
            booked.add(Booked::of(workload));
        }
        booked
    }

    /// The audit, oldest first; the newest 10 000.
    pub fn audit(&self) -> impl DoubleEndedIterator<Item = &AuditRecord> {
        self.audit.values()
    }

    /// Was this command of this actor carried out with this request id, and is its reply still kept for retries?
    pub fn has_reply(&self, request_id: &str, actor: &str, command: &str) -> bool {
        self.replies.get(request_id).is_some_and(|stored| stored.actor == actor && stored.command == command)
    }

    /// How many replies are kept for retries.
    pub fn replies_kept(&self) -> usize {
        self.replies.len()
    }
}
