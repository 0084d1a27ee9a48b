//! The agents that are connected to this server, which is the leader. All of it is soft: a new leader starts empty and
//! learns by being called.
//!
//! Invariant: closing a session can't touch a newer one of the same node; everything is keyed by (node, epoch).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Bytes;
use cara_core::reconcile::{Cut, Heartbeat};
use cara_core::{Epoch, NodeId};
use cara_proto::agent::{Goodbye, LogsRequest};
use cara_proto::node::Readings;
use tokio::sync::{Notify, mpsc};

use crate::claims::{Claims, Known};

/// Chunks of a log that wait for a slow reader; 32 KiB each.
const LOG_CHUNKS: usize = 16;
/// Log streams that are open at once over all nodes.
const LOG_STREAMS_MAX: usize = 256;

/// What a session's task is told.
#[derive(Debug)]
pub enum Order {
    /// Say goodbye and end.
    End(Goodbye),
    /// Ask the agent for a log.
    Logs(LogsRequest),
    /// Ask the agent whether it lives.
    Challenge(u64),
}

/// One connected agent.
#[derive(Clone)]
struct Session {
    epoch: u64,
    orders: mpsc::Sender<Order>,
    desired: Arc<Notify>,
    volume_address: String,
}

/// What a session brings along.
pub struct Opened {
    /// Rises with each session of the node.
    pub epoch: u64,
    /// Where its task hears orders.
    pub orders: mpsc::Sender<Order>,
    /// Notified when the desired set may have changed.
    pub desired: Arc<Notify>,
    /// `host:port` at which the agent answers other agents for its volumes; empty = it can't.
    pub volume_address: String,
}

/// What this leader knows of the way to a node, and of its machine: soft, and gone with the leadership.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Link {
    /// `host:port` at which other agents reach it; empty = they can't.
    pub volume_address: String,
    /// Another node could not dial it: what it sends goes through a server.
    pub relayed: bool,
    /// The last transfer to it that was measured.
    pub download: Option<Rate>,
    /// The last transfer from it that was measured.
    pub upload: Option<Rate>,
    /// What its agent last read of its machine, and when that came, in ms since 1970.
    pub readings: Option<(Readings, u64)>,
}

/// How fast something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Bytes in a second.
    pub bytes_per_second: u64,
    /// When, in ms since 1970.
    pub at_ms: u64,
}

/// A chunk of a log, or why it ended early.
pub type LogItem = Result<Bytes, String>;

#[derive(Default)]
struct Inner {
    sessions: BTreeMap<NodeId, Session>,
    /// Last word of each node, on this server's monotonic clock in ms.
    heard: BTreeMap<NodeId, Heartbeat>,
    /// How the connection below a session broke, until the node's next session.
    cuts: BTreeMap<NodeId, Cut>,
    /// What is known of the way to each node, as long as this server leads.
    links: BTreeMap<NodeId, Link>,
    logs: BTreeMap<String, mpsc::Sender<LogItem>>,
    claims: Claims,
}

/// The registry. Clones share it.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<Inner>>);

impl Sessions {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// An agent is about to get a session, and so it lives. Told before the log opens it: whoever looks at the state then sees
    /// a session on which nothing was heard yet.
    pub fn greet(&self, node: &NodeId, now_ms: u64) {
        if !cara_env::planted("open-is-no-sign-of-life") {
            self.inner().heard.insert(node.clone(), Heartbeat { epoch: Epoch(0), at_ms: now_ms });
        }
    }

    /// Enters a session that the log has opened. An older one of the node is told to end.
    pub fn open(&self, node: &NodeId, opened: Opened, now_ms: u64) {
        let Opened { epoch, orders, desired, volume_address } = opened;
        let mut inner = self.inner();
        let old = inner.sessions.get(node).cloned();
        match old {
            Some(old) if old.epoch > epoch => return, // We are the older one; the newer is entered already.
            Some(old) => end(&old, "replaced", "the agent has opened a newer session", None),
            None => {}
        }
        if !cara_env::planted("open-is-no-sign-of-life") {
            inner.heard.insert(node.clone(), Heartbeat { epoch: Epoch(epoch), at_ms: now_ms });
        }
        inner.cuts.remove(node);
        if let Some(link) = inner.links.get_mut(node) {
            link.relayed = false;
        }
        let session = Session { epoch, orders, desired, volume_address };
        inner.sessions.insert(node.clone(), session);
        inner.claims.opened(node);
    }

    /// This server begins to lead.
    pub fn begin(&self, now_ms: u64) {
        self.inner().claims.begin(now_ms);
    }

    /// An agent asks for the session of a node that another process has. What is known of that one, whether its stream is
    /// open here, and when it was heard; 0 = not here.
    pub fn ask(&self, node: &NodeId, instance: &str, now_ms: u64, patience_ms: u64) -> (Known, bool, u64) {
        let mut inner = self.inner();
        let known = inner.claims.ask(node, instance, now_ms, patience_ms);
        let heard_ms = inner.heard.get(node).map_or(0, |heard| heard.at_ms);
        (known, inner.sessions.contains_key(node), heard_ms)
    }

    /// Asks whoever has the node's session whether it lives.
    pub fn challenge(&self, node: &NodeId, number: u64) {
        if let Some(session) = self.inner().sessions.get(node) {
            // A full queue means that the session is stuck: it would not answer either.
            drop(session.orders.try_send(Order::Challenge(number)));
        }
    }

    /// It answered.
    pub fn present(&self, node: &NodeId, epoch: u64, number: u64) {
        let mut inner = self.inner();
        if inner.sessions.get(node).is_some_and(|s| s.epoch == epoch) {
            inner.claims.present(node, number);
        }
    }

    /// Removes the session if it is still the one with this epoch.
    pub fn close(&self, node: &NodeId, epoch: u64, now_ms: u64) {
        let mut inner = self.inner();
        let is_it = inner.sessions.get(node).is_some_and(|s| s.epoch == epoch);
        if is_it {
            inner.sessions.remove(node);
            inner.claims.left(node, now_ms);
        } else if cara_env::planted("session-epoch-ignored") {
            // A dropped session would end, and the agent would simply open another: that guards against this bug. The
            // planted one lives on, and nobody knows of it.
            std::mem::forget(inner.sessions.remove(node));
        }
    }

    /// The connection below a session broke, which says nothing about the node until its silence is judged.
    pub fn cut(&self, node: &NodeId, cut: Cut) {
        let mut inner = self.inner();
        if inner.heard.get(node).is_some_and(|heard| heard.epoch == cut.epoch) {
            inner.cuts.insert(node.clone(), cut);
        }
    }

    /// How connections broke that nobody has replaced yet.
    pub fn all_cuts(&self) -> BTreeMap<NodeId, Cut> {
        self.inner().cuts.clone()
    }

    /// Something was learned about the way to a node.
    pub fn learn(&self, node: &NodeId, change: impl FnOnce(&mut Link)) {
        change(self.inner().links.entry(node.clone()).or_default());
    }

    /// What is known of the way to a node that is connected here.
    pub fn link(&self, node: &NodeId) -> Option<Link> {
        let inner = self.inner();
        let session = inner.sessions.get(node)?;
        let known = inner.links.get(node).cloned().unwrap_or_default();
        Some(Link { volume_address: session.volume_address.clone(), ..known })
    }

    /// Forgets nodes that are gone.
    pub fn retain(&self, is_there: impl Fn(&NodeId) -> bool) {
        let mut inner = self.inner();
        inner.cuts.retain(|node, _| is_there(node));
        inner.links.retain(|node, _| is_there(node));
        inner.heard.retain(|node, _| is_there(node));
        inner.claims.retain(is_there);
    }

    /// The node was heard.
    pub fn heard(&self, node: &NodeId, epoch: u64, now_ms: u64) {
        let mut inner = self.inner();
        if inner.sessions.get(node).is_some_and(|s| s.epoch == epoch) {
            inner.heard.insert(node.clone(), Heartbeat { epoch: Epoch(epoch), at_ms: now_ms });
            inner.claims.spoke(node, epoch);
        }
    }

    /// Last word of each node since this server leads.
    pub fn all_heard(&self) -> BTreeMap<NodeId, Heartbeat> {
        self.inner().heard.clone()
    }

    /// When the node was heard last, on this server's monotonic clock in ms.
    pub fn last_heard(&self, node: &NodeId) -> Option<u64> {
        self.inner().heard.get(node).map(|heard| heard.at_ms)
    }

    /// The desired set of this node may have changed.
    pub fn wake(&self, node: &NodeId) {
        if let Some(session) = self.inner().sessions.get(node) {
            session.desired.notify_one();
        }
    }

    /// The desired set of any node may have changed.
    pub fn wake_all(&self) {
        for session in self.inner().sessions.values() {
            session.desired.notify_one();
        }
    }

    /// Ends the session of one node.
    pub fn end(&self, node: &NodeId, code: &str, message: &str) {
        if let Some(session) = self.inner().sessions.get(node) {
            end(session, code, message, None);
        }
    }

    /// This server leads no more: all sessions go to the new leader, and nothing that was heard counts.
    pub fn end_all(&self, code: &str, message: &str, leader: Option<&str>) {
        let mut inner = self.inner();
        for session in inner.sessions.values() {
            end(session, code, message, leader);
        }
        *inner = Inner::default();
    }

    /// Where a node's agent answers for its volumes; empty when it has no session here, or can't.
    pub fn volume_address(&self, node: &NodeId) -> String {
        self.inner().sessions.get(node).map(|session| session.volume_address.clone()).unwrap_or_default()
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.inner().sessions.len()
    }

    /// Asks a node for a log; the chunks arrive at the receiver.
    ///
    /// # Errors
    /// A sentence when the node isn't connected or too many logs are open.
    pub fn ask_logs(&self, node: &NodeId, request: LogsRequest) -> Result<mpsc::Receiver<LogItem>, String> {
        let mut inner = self.inner();
        inner.logs.retain(|_, sender| !sender.is_closed());
        if inner.logs.len() >= LOG_STREAMS_MAX {
            return Err(format!("{LOG_STREAMS_MAX} logs are being read already"));
        }
        let session = inner.sessions.get(node).ok_or("the node is not connected")?;
        let (sender, receiver) = mpsc::channel(LOG_CHUNKS);
        let id = request.request_id.clone();
        session.orders.try_send(Order::Logs(request)).map_err(|_| "the node's session is busy")?;
        inner.logs.insert(id, sender);
        Ok(receiver)
    }

    /// Where the chunks of a log go; once.
    pub fn take_logs(&self, request_id: &str) -> Option<mpsc::Sender<LogItem>> {
        self.inner().logs.remove(request_id)
    }
}

fn end(session: &Session, code: &str, message: &str, leader: Option<&str>) {
    let goodbye = Goodbye { code: code.into(), message: message.into(), leader: leader.unwrap_or_default().to_owned() };
    // A full queue means that the session is stuck; its own deadlines end it.
    drop(session.orders.try_send(Order::End(goodbye)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(sessions: &Sessions, node: &NodeId, epoch: u64) -> mpsc::Receiver<Order> {
        let (sender, receiver) = mpsc::channel(4);
        let opened =
            Opened { epoch, orders: sender, desired: Arc::default(), volume_address: format!("10.0.0.{epoch}:7444") };
        sessions.open(node, opened, 0);
        receiver
    }

    #[test]
    fn closing_an_old_session_leaves_the_new_one() {
        let (sessions, node) = (Sessions::default(), NodeId::from("nd_1"));
        let mut old = session(&sessions, &node, 1);
        let mut new = session(&sessions, &node, 2);
        assert!(matches!(old.try_recv(), Ok(Order::End(goodbye)) if goodbye.code == "replaced"));
        sessions.close(&node, 1, 0);
        assert_eq!(sessions.count(), 1);
        assert_eq!(sessions.volume_address(&node), "10.0.0.2:7444");
        assert!(new.try_recv().is_err());
    }

    #[test]
    fn a_session_that_comes_late_does_not_replace_a_newer_one() {
        let (sessions, node) = (Sessions::default(), NodeId::from("nd_1"));
        let _new = session(&sessions, &node, 2);
        let _late = session(&sessions, &node, 1);
        sessions.close(&node, 1, 0);
        assert_eq!(sessions.count(), 1);
    }
}
