//! A node: a machine that runs containers, by an agent.
//!
//! ```text
//! pending --OpenSession--> online <--TransitionNode/OpenSession--> offline
//! ```
//! `connection` and `schedulable` are independent axes; an agent writes neither. A cordon outlives sessions, enrolments
//! and restarts.

use super::{Certificate, WorkloadKind};
use crate::id::{Epoch, Generation, NodeId, Revision, ServerId, TokenId, WorkloadUid};
use crate::wire::wire_enum;
use std::collections::BTreeMap;

/// A node. Its events are kept apart (`NodeEvents`), so that a change of the node does not write them all again.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Node {
    /// Never given twice.
    #[prost(message, required, tag = "1")]
    pub id: NodeId,
    /// A DNS label, unique among nodes.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where its machine is reached, as it says itself; informational, may be empty.
    #[prost(string, tag = "3")]
    pub address: String,
    /// Written by the leader.
    #[prost(message, required, tag = "4")]
    pub connection: Connection,
    /// False = cordoned: takes no new placements.
    #[prost(bool, tag = "5")]
    pub schedulable: bool,
    /// Takes apps and projects.
    #[prost(bool, tag = "6")]
    pub accepts_app: bool,
    /// Takes databases.
    #[prost(bool, tag = "7")]
    pub accepts_database: bool,
    /// Takes builds.
    #[prost(bool, tag = "8")]
    pub accepts_build: bool,
    /// Compared by selectors.
    #[prost(btree_map = "string, string", tag = "9")]
    pub labels: BTreeMap<String, String>,
    /// For people.
    #[prost(btree_map = "string, string", tag = "10")]
    pub annotations: BTreeMap<String, String>,
    /// None = declared by a manifest, not enrolled yet.
    #[prost(message, optional, tag = "11")]
    pub certificate: Option<Certificate>,
    /// The session that may write for this node; at most one.
    #[prost(message, optional, tag = "12")]
    pub session: Option<Session>,
    /// The highest epoch ever given to a session of this node.
    #[prost(message, required, tag = "13")]
    pub last_epoch: Epoch,
    /// In ms since 1970, by the leader's clock; a checkpoint, tens of seconds coarse. 0 = never.
    #[prost(uint64, tag = "14")]
    pub last_seen_ms: u64,
    /// What its agent says about the machine.
    #[prost(message, required, tag = "15")]
    pub facts: Facts,
    /// True when a manifest described it: such a node may exist before its machine does.
    #[prost(bool, tag = "16")]
    pub declared: bool,
    /// When it enrolled last, in ms since 1970. 0 = not yet.
    #[prost(uint64, tag = "17")]
    pub joined_at_ms: u64,
    /// In ms since 1970.
    #[prost(uint64, tag = "18")]
    pub created_at_ms: u64,
    /// The join token that it came in with last.
    #[prost(message, optional, tag = "19")]
    pub enrolled_with: Option<TokenId>,
    /// Set by apply.
    #[prost(message, required, tag = "20")]
    pub revision: Revision,
    /// An operator gave it up with all that it had; until its next session, which finds that nothing is its own any more.
    #[prost(bool, tag = "21")]
    pub lost: bool,
    /// Volumes that it keeps though no workload there has them, as its agent says.
    #[prost(message, repeated, tag = "22")]
    pub quarantine: Vec<QuarantinedVolume>,
    /// The highest feature level that its agent supports, as of its last session; 0 = that session was recorded by a
    /// release that did not ask.
    #[prost(uint32, tag = "23")]
    pub feature_level: u32,
    /// The agent's process that had the last session: drawn at random at each start. Empty = one that did not say, or none
    /// since the node enrolled.
    #[prost(string, tag = "24")]
    pub instance: String,
    /// A second machine with a copy of this node's identity, as it was seen last.
    #[prost(message, optional, tag = "25")]
    pub clone_seen: Option<CloneSeen>,
    /// Where it stands, in the operator's own words; empty = nobody said.
    #[prost(string, tag = "27")]
    pub region: String,
    /// Since when `connection` is what it is, in ms since 1970; 0 = since before this was written down.
    #[prost(uint64, tag = "28")]
    pub connection_since_ms: u64,
}

/// A process that came with a node's identity while another one, which had the session, was proven to be alive.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CloneSeen {
    /// The process.
    #[prost(string, tag = "1")]
    pub instance: String,
    /// When it was refused last, in ms since 1970; minutes coarse. Set by apply.
    #[prost(uint64, tag = "2")]
    pub seen_at_ms: u64,
    /// What its machine calls itself; for people.
    #[prost(string, tag = "3")]
    pub hostname: String,
}

/// A volume that is kept until somebody removes it: what was on it may be the only copy of something.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct QuarantinedVolume {
    /// The workload that it belonged to.
    #[prost(message, required, tag = "1")]
    pub workload: WorkloadUid,
    /// The volume's name in that workload.
    #[prost(string, tag = "2")]
    pub volume: String,
    /// Under which it was made.
    #[prost(message, required, tag = "3")]
    pub data_generation: Generation,
    /// Its size; 0 = not known.
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
    /// When it was set aside, in ms since 1970 by the node's clock.
    #[prost(uint64, tag = "5")]
    pub since_ms: u64,
    /// Its name in the node's container engine: nothing else there has it.
    #[prost(string, tag = "6")]
    pub engine_name: String,
    /// The workload's name when the volume was made, for who reads this when the workload is gone.
    #[prost(string, tag = "7")]
    pub workload_name: String,
    /// When an operator asked for it to be removed, in ms since 1970; none = it is kept. An agent's report doesn't change it.
    #[prost(uint64, optional, tag = "8")]
    pub removal_asked_at_ms: Option<u64>,
}

/// All that a node keeps in quarantine; a report without it leaves what is known.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Quarantine {
    /// At most 256.
    #[prost(message, repeated, tag = "1")]
    pub volumes: Vec<QuarantinedVolume>,
}

/// A node's open stream to a server.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Session {
    /// What every word of the agent carries; an older epoch is refused.
    #[prost(message, required, tag = "1")]
    pub epoch: Epoch,
    /// The server that holds the stream.
    #[prost(message, required, tag = "2")]
    pub server: ServerId,
    /// In ms since 1970.
    #[prost(uint64, tag = "3")]
    pub opened_at_ms: u64,
    /// The certificate that was presented.
    #[prost(string, tag = "4")]
    pub fingerprint: String,
}

/// What an agent says about its machine when it opens a session.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Facts {
    /// As `0.1.0`.
    #[prost(string, tag = "1")]
    pub agent_version: String,
    /// As `Debian GNU/Linux 12`.
    #[prost(string, tag = "2")]
    pub os: String,
    /// As `x86_64`.
    #[prost(string, tag = "3")]
    pub arch: String,
    /// As `6.1.0-18`.
    #[prost(string, tag = "4")]
    pub kernel: String,
    /// As `docker 27.3` or `memory`.
    #[prost(string, tag = "5")]
    pub runtime: String,
    /// `cpu` in thousandths, `memory` and `disk` in bytes.
    #[prost(btree_map = "string, uint64", tag = "6")]
    pub capacity: BTreeMap<String, u64>,
    /// What of the capacity is for workloads.
    #[prost(btree_map = "string, uint64", tag = "7")]
    pub allocatable: BTreeMap<String, u64>,
    /// From which source the agent was built; empty = it has not said.
    #[prost(string, tag = "8")]
    pub agent_commit: String,
    /// As `Debian GNU/Linux 12 (bookworm)`.
    #[prost(string, tag = "9")]
    pub os_image: String,
    /// What the machine calls itself.
    #[prost(string, tag = "10")]
    pub hostname: String,
}

/// The events of a node, oldest first; the newest 200.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeEvents {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Oldest first.
    #[prost(message, repeated, tag = "2")]
    pub events: Vec<NodeEvent>,
}

/// One change of a node's connection or of its cordon.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeEvent {
    /// In ms since 1970, the entry's time.
    #[prost(uint64, tag = "1")]
    pub at_ms: u64,
    /// The word for the state before: a connection, `schedulable` or `cordoned`.
    #[prost(string, tag = "2")]
    pub from: String,
    /// The word for the state after.
    #[prost(string, tag = "3")]
    pub to: String,
    /// Why, for people.
    #[prost(string, tag = "4")]
    pub reason: String,
}

wire_enum! {
    /// Whether the node's agent is heard.
    Connection {
        /// Never connected.
        1 => Pending "pending",
        /// Heard within the timeout.
        2 => Online "online",
        /// Not heard for a timeout, or its session ended.
        3 => Offline "offline",
    }
}

wire_enum! {
    /// A node's state in one word, derived from the two axes.
    NodeView {
        /// Takes placements.
        1 => Ready "Ready",
        /// Not online.
        2 => NotReady "NotReady",
        /// Cordoned, whether online or not.
        3 => Draining "Draining",
    }
}

impl Node {
    /// The state in one word.
    pub fn view(&self) -> NodeView {
        match (self.schedulable, self.connection) {
            (false, _) => NodeView::Draining,
            (true, Connection::Online) => NodeView::Ready,
            (true, Connection::Pending | Connection::Offline) => NodeView::NotReady,
        }
    }

    /// Since when it waits for its first session, in ms since 1970: since its machine was let in, or, without one, since it
    /// was declared. None once it has connected.
    pub fn waits_since_ms(&self) -> Option<u64> {
        (self.connection == Connection::Pending).then(|| self.joined_at_ms.max(self.created_at_ms))
    }

    /// True when the operator lets workloads of this kind onto the node.
    pub fn accepts(&self, kind: WorkloadKind) -> bool {
        match kind {
            WorkloadKind::App | WorkloadKind::Project => self.accepts_app,
            WorkloadKind::Database => self.accepts_database,
        }
    }

    /// True when the node has each label of the selector.
    pub fn matches(&self, selector: &BTreeMap<String, String>) -> bool {
        selector.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }
}
