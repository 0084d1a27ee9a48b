//! A server: a member of the raft group, voter or learner. Which of the two is raft's own membership, not ours.

use super::Certificate;
use crate::id::{Revision, ServerId};

/// A server as the cluster knows it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Server {
    /// Its raft id; never given twice.
    #[prost(message, required, tag = "1")]
    pub id: ServerId,
    /// A DNS label, unique among servers.
    #[prost(string, tag = "2")]
    pub name: String,
    /// `host:port` of its one mTLS port, as agents and other servers dial it. Unique among servers.
    #[prost(string, tag = "3")]
    pub address: String,
    /// Its leaf certificate.
    #[prost(message, required, tag = "4")]
    pub certificate: Certificate,
    /// When it joined, in ms since 1970. Set by apply.
    #[prost(uint64, tag = "5")]
    pub joined_at_ms: u64,
    /// Set by apply.
    #[prost(message, required, tag = "6")]
    pub revision: Revision,
    /// The highest feature level that it has announced; 0 = it was recorded by a release that did not ask.
    #[prost(uint32, tag = "7")]
    pub feature_level: u32,
}
