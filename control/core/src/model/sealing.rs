//! The key under which the cluster's secrets are sealed: which one it is, and which one comes next. Never the keys themselves:
//! those are in a file of each server, and here are their ids, from which nobody finds a key.
//!
//! ```text
//!                    RotateSealingKey                    Reseal
//!        one key ────────────────────► the next is told ─────────► one key, the next
//! sealed under K1                      K1                          K2
//! goes on when                         every server has said
//!                                      that it has K2
//! ```
//! A server has written a key down before it says so (`HoldSealingKey`), so whoever comes to lead can open what is sealed, at
//! each step. All secrets are sealed anew in one entry. A key that was replaced is named among the former ones, and servers
//! forget exactly those: what the state on a disk says may be older than the file beside it, and still names no key that is needed.

use crate::id::ServerId;

/// The key that is to follow.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NextSealingKey {
    /// Its id.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// The servers that have it on disk, in the order in which they said so. The first one has made it.
    #[prost(message, repeated, tag = "2")]
    pub holders: Vec<ServerId>,
    /// In ms since 1970, the entry's time.
    #[prost(uint64, tag = "3")]
    pub started_at_ms: u64,
}

impl NextSealingKey {
    /// Has this server said that it has the key?
    pub fn is_held_by(&self, server: ServerId) -> bool {
        self.holders.contains(&server)
    }
}
