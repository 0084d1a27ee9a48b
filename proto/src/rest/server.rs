//! Servers: the raft members, and what the cluster can still lose.

use serde::{Deserialize, Serialize};

use super::CertificateView;

/// `GET /api/v1/servers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// Identity of the cluster.
    pub cluster_id: String,
    /// Name of the server that answered.
    pub answered_by: String,
    /// Name of the leader, empty when there is none.
    pub leader: String,
    /// Current raft term.
    pub term: u64,
    /// Voters that the leader can hear, itself included.
    pub voters_alive: u64,
    /// All voters.
    pub voters: u64,
    /// How many more voters may fail before writes stop.
    pub can_lose: u64,
    /// What all servers have agreed to support; it rises by itself once each server supports more. 0 = not known.
    #[serde(default)]
    pub feature_level: u32,
    /// Ordered by id.
    pub servers: Vec<ServerView>,
}

/// One server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerView {
    /// Raft id.
    pub id: u64,
    /// Name given at `init` or `join`.
    pub name: String,
    /// `host:port`.
    pub address: String,
    /// `leader`, `follower`, `learner`, `joining` or `unreachable`.
    pub role: String,
    /// Counts for the quorum.
    pub voter: bool,
    /// Log index that the leader knows to be stored there.
    pub matched: u64,
    /// How many entries behind the leader.
    pub lag: u64,
    /// Version of `cara-server`; empty when unknown.
    #[serde(default)]
    pub version: String,
    /// The highest feature level that it supports; 0 = not known.
    #[serde(default)]
    pub feature_level: u32,
    /// Its certificate: valid until, and how urgent its renewal is, which comes by itself at two thirds of its life.
    #[serde(default)]
    pub certificate: CertificateView,
}
