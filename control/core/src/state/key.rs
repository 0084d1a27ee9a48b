//! Where an object is stored: readable keys, one for each object.

use crate::id::{DrainId, MoveId, NodeId, Revision, ServerId, TokenId, WorkloadUid};

/// The key of one object. Its text is `kind/id`; numbers have 20 digits, so that they sort.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// What the log itself leaves behind.
    Meta,
    /// The cluster.
    Cluster,
    /// A server.
    Server(ServerId),
    /// A node.
    Node(NodeId),
    /// A node's events.
    NodeEvents(NodeId),
    /// A join token.
    JoinToken(TokenId),
    /// An API token.
    ApiToken(TokenId),
    /// A workload.
    Workload(WorkloadUid),
    /// An audit record.
    Audit(Revision),
    /// A reply kept for a retry.
    Reply(String),
    /// A move.
    Move(MoveId),
    /// A drain.
    Drain(DrainId),
}

impl Key {
    /// True for what servers act on by themselves, and what seldom changes: the cluster, a server, an API token.
    pub(crate) fn is_administrative(&self) -> bool {
        matches!(self, Key::Cluster | Key::Server(_) | Key::ApiToken(_))
    }

    /// The key as it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Key::Meta => "meta".to_owned(),
            Key::Cluster => "cluster".to_owned(),
            Key::Server(id) => format!("server/{:020}", id.0),
            Key::Node(id) => format!("node/{id}"),
            Key::NodeEvents(id) => format!("node-events/{id}"),
            Key::JoinToken(id) => format!("join-token/{id}"),
            Key::ApiToken(id) => format!("api-token/{id}"),
            Key::Workload(uid) => format!("workload/{uid}"),
            Key::Audit(revision) => format!("audit/{:020}", revision.0),
            Key::Reply(request_id) => format!("reply/{request_id}"),
            Key::Move(id) => format!("move/{id}"),
            Key::Drain(id) => format!("drain/{id}"),
        }
        .into_bytes()
    }

    /// The key that was stored as these bytes; `None` when it is none of ours.
    pub fn parse(bytes: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(bytes).ok()?;
        let Some((kind, id)) = text.split_once('/') else {
            return match text {
                "meta" => Some(Key::Meta),
                "cluster" => Some(Key::Cluster),
                _ => None,
            };
        };
        match kind {
            "server" => id.parse().ok().map(|id| Key::Server(ServerId(id))),
            "node" => Some(Key::Node(id.into())),
            "node-events" => Some(Key::NodeEvents(id.into())),
            "join-token" => Some(Key::JoinToken(id.into())),
            "api-token" => Some(Key::ApiToken(id.into())),
            "workload" => Some(Key::Workload(id.into())),
            "audit" => id.parse().ok().map(|revision| Key::Audit(Revision(revision))),
            "reply" => Some(Key::Reply(id.to_owned())),
            "move" => Some(Key::Move(id.into())),
            "drain" => Some(Key::Drain(id.into())),
            _ => None,
        }
    }
}
