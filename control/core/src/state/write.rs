//! The only ways to change the state: each keeps the indexes and notes the key, so that exactly what changed is stored.

use super::index::{FoundBy, KnownBy};
use super::{Key, State};
use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{DrainId, MoveId, NodeId, ServerId, TokenId, WorkloadUid};
use crate::limits;
use crate::model::{
    ApiToken, Cluster, Connection, Drain, JoinToken, Move, Node, NodeEvent, NodeEvents, Server, Workload,
};
use crate::planted::planted;

impl State {
    pub(crate) fn set_cluster(&mut self, cluster: Cluster) {
        self.dirty.insert(Key::Cluster);
        self.cluster = Some(cluster);
    }

    pub(crate) fn put_server(&mut self, cx: &Context, mut server: Server) {
        server.revision = cx.revision;
        self.dirty.insert(Key::Server(server.id));
        self.servers.insert(server.id, server);
    }

    pub(crate) fn remove_server(&mut self, id: ServerId) {
        self.dirty.insert(Key::Server(id));
        self.servers.remove(&id);
    }

    /// Adds a node that is new; one that exists is changed with `edit_node`.
    pub(crate) fn put_node(&mut self, cx: &Context, mut node: Node) {
        node.revision = cx.revision;
        self.dirty.insert(Key::Node(node.id.clone()));
        self.index.add_node(&node);
        self.nodes.insert(node.id.clone(), node);
    }

    /// Changes a node in place; does nothing when there is none.
    pub(crate) fn edit_node(&mut self, cx: &Context, id: &NodeId, change: impl FnOnce(&mut Node)) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        let before = KnownBy::of(node);
        change(node);
        node.revision = cx.revision;
        self.index.edit_node(&before, node);
        self.dirty.insert(Key::Node(id.clone()));
    }

    /// Writes down a later sign of life. The node's revision stays: nothing about it changed.
    pub(crate) fn raise_last_seen(&mut self, id: &NodeId, last_seen_ms: u64) {
        let Some(node) = self.nodes.get_mut(id).filter(|node| node.last_seen_ms < last_seen_ms) else { return };
        node.last_seen_ms = last_seen_ms;
        self.dirty.insert(Key::Node(id.clone()));
    }

    pub(crate) fn remove_node(&mut self, id: &NodeId) {
        if let Some(node) = self.nodes.remove(id) {
            self.index.remove_node(&node);
            self.dirty.insert(Key::Node(id.clone()));
        }
        if self.node_events.remove(id).is_some() {
            self.dirty.insert(Key::NodeEvents(id.clone()));
        }
    }

    /// Adds to the node's events; the oldest go beyond 200.
    pub(crate) fn push_node_event(&mut self, id: &NodeId, event: NodeEvent) {
        let ring = self.node_events.entry(id.clone());
        let ring = ring.or_insert_with(|| NodeEvents { node: id.clone(), events: Vec::new() });
        ring.events.push(event);
        let excess = ring.events.len().saturating_sub(limits::NODE_EVENTS_MAX);
        ring.events.drain(..excess);
        self.dirty.insert(Key::NodeEvents(id.clone()));
    }

    /// Sets the connection, writes the edge into the node's events and reports it. Nothing when it is that already.
    pub(crate) fn set_connection(&mut self, cx: &Context, id: &NodeId, to: Connection, reason: &str) -> Vec<Event> {
        let Some(node) = self.nodes.get(id) else { return Vec::new() };
        let (from, name) = (node.connection, node.name.clone());
        if from == to {
            return Vec::new();
        }
        let since_ms = if self.supports(Feature::Lifecycle) { cx.at_ms } else { 0 };
        self.edit_node(cx, id, |node| {
            node.connection = to;
            node.connection_since_ms = since_ms;
        });
        let (from_text, to_text) = (from.to_string(), to.to_string());
        let event = NodeEvent { at_ms: cx.at_ms, from: from_text, to: to_text, reason: reason.to_owned() };
        self.push_node_event(id, event);
        vec![Event::NodeConnectionChanged { node: id.clone(), name, from, to, reason: reason.to_owned() }]
    }

    /// Ends the node's session, if it has one, and sets it offline.
    pub(crate) fn end_session(&mut self, cx: &Context, id: &NodeId, reason: &str) -> Vec<Event> {
        let Some(node) = self.nodes.get(id) else { return Vec::new() };
        let Some(session) = &node.session else { return Vec::new() };
        let mut events =
            vec![Event::NodeSessionClosed { node: id.clone(), name: node.name.clone(), epoch: session.epoch }];
        self.edit_node(cx, id, |node| node.session = None);
        events.extend(self.set_connection(cx, id, Connection::Offline, reason));
        events
    }

    pub(crate) fn put_join_token(&mut self, cx: &Context, mut token: JoinToken) {
        token.revision = cx.revision;
        self.dirty.insert(Key::JoinToken(token.id.clone()));
        self.index.add_join_token(&token);
        self.join_tokens.insert(token.id.clone(), token);
    }

    pub(crate) fn edit_join_token(&mut self, cx: &Context, id: &TokenId, change: impl FnOnce(&mut JoinToken)) {
        let Some(token) = self.join_tokens.get_mut(id) else { return };
        change(token);
        token.revision = cx.revision;
        self.dirty.insert(Key::JoinToken(id.clone()));
    }

    pub(crate) fn remove_join_token(&mut self, id: &TokenId) {
        let Some(token) = self.join_tokens.remove(id) else { return };
        self.index.remove_join_token(&token);
        self.dirty.insert(Key::JoinToken(id.clone()));
    }

    /// A few join tokens that ended so long ago that nobody retries with them.
    pub(crate) fn outdated_join_tokens(&self, at_ms: u64) -> Vec<TokenId> {
        let outdated = |end: u64| end.saturating_add(limits::JOIN_TOKEN_KEPT_MS) < at_ms;
        let by_end = self.index.join_token_by_end.iter().take(limits::JOIN_TOKENS_DROPPED_PER_ENTRY);
        by_end.take_while(|(end, _)| outdated(*end)).map(|(_, id)| id.clone()).collect()
    }

    pub(crate) fn put_api_token(&mut self, cx: &Context, mut token: ApiToken) {
        token.revision = cx.revision;
        self.dirty.insert(Key::ApiToken(token.id.clone()));
        self.index.api_token_by_hash.insert(token.hash.clone(), token.id.clone());
        self.api_tokens.insert(token.id.clone(), token);
    }

    pub(crate) fn edit_api_token(&mut self, cx: &Context, id: &TokenId, change: impl FnOnce(&mut ApiToken)) {
        let Some(token) = self.api_tokens.get_mut(id) else { return };
        change(token);
        token.revision = cx.revision;
        self.dirty.insert(Key::ApiToken(id.clone()));
    }

    /// Writes down a later use. The token's revision stays: nothing about it changed.
    pub(crate) fn raise_last_used(&mut self, id: &TokenId, at_ms: u64) {
        let Some(token) = self.api_tokens.get_mut(id).filter(|token| token.last_used_ms < at_ms) else { return };
        token.last_used_ms = at_ms;
        self.dirty.insert(Key::ApiToken(id.clone()));
    }

    pub(crate) fn remove_api_token(&mut self, id: &TokenId) {
        let Some(token) = self.api_tokens.remove(id) else { return };
        self.index.api_token_by_hash.remove(&token.hash);
        self.dirty.insert(Key::ApiToken(id.clone()));
    }

    /// Adds a workload that is new; one that exists is changed with `edit_workload`.
    pub(crate) fn put_workload(&mut self, cx: &Context, mut workload: Workload) {
        workload.revision = cx.revision;
        self.dirty.insert(Key::Workload(workload.uid.clone()));
        self.index.add_workload(&workload);
        self.workloads.insert(workload.uid.clone(), workload);
    }

    /// Changes a workload in place; does nothing when there is none.
    pub(crate) fn edit_workload(&mut self, cx: &Context, uid: &WorkloadUid, change: impl FnOnce(&mut Workload)) {
        let Some(workload) = self.workloads.get_mut(uid) else { return };
        let found_by = FoundBy::of(workload);
        change(workload);
        workload.revision = cx.revision;
        self.index.edit_workload(&found_by, workload);
        self.dirty.insert(Key::Workload(uid.clone()));
    }

    pub(crate) fn remove_workload(&mut self, uid: &WorkloadUid) {
        let Some(workload) = self.workloads.remove(uid) else { return };
        if !planted("deleted-workload-stays-indexed") {
            self.index.remove_workload(&workload);
        }
        self.dirty.insert(Key::Workload(uid.clone()));
    }

    /// Adds a move that is new; one that exists is changed with `edit_move`.
    pub(crate) fn put_move(&mut self, cx: &Context, mut mv: Move) {
        mv.revision = cx.revision;
        self.dirty.insert(Key::Move(mv.id.clone()));
        self.index.add_move(&mv);
        self.moves.insert(mv.id.clone(), mv);
    }

    /// Changes a move in place; does nothing when there is none.
    pub(crate) fn edit_move(&mut self, cx: &Context, id: &MoveId, change: impl FnOnce(&mut Move)) {
        let Some(mv) = self.moves.get_mut(id) else { return };
        self.index.remove_move(mv);
        change(mv);
        mv.revision = cx.revision;
        self.index.add_move(mv);
        self.dirty.insert(Key::Move(id.clone()));
    }

    pub(crate) fn remove_move(&mut self, id: &MoveId) {
        let Some(mv) = self.moves.remove(id) else { return };
        self.index.remove_move(&mv);
        self.dirty.insert(Key::Move(id.clone()));
    }

    /// Adds a drain that is new; one that exists is changed with `edit_drain`.
    pub(crate) fn put_drain(&mut self, cx: &Context, mut drain: Drain) {
        drain.revision = cx.revision;
        self.dirty.insert(Key::Drain(drain.id.clone()));
        self.index.add_drain(&drain);
        self.drains.insert(drain.id.clone(), drain);
    }

    /// Changes a drain in place; does nothing when there is none.
    pub(crate) fn edit_drain(&mut self, cx: &Context, id: &DrainId, change: impl FnOnce(&mut Drain)) {
        let Some(drain) = self.drains.get_mut(id) else { return };
        self.index.remove_drain(drain);
        change(drain);
        drain.revision = cx.revision;
        self.index.add_drain(drain);
        self.dirty.insert(Key::Drain(id.clone()));
    }

    pub(crate) fn remove_drain(&mut self, id: &DrainId) {
        let Some(drain) = self.drains.remove(id) else { return };
        self.index.remove_drain(&drain);
        self.dirty.insert(Key::Drain(id.clone()));
    }
}
