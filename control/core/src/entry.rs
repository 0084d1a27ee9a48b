//! What the log carries, and what applying it gives.

use crate::command::Command;
use crate::event::Event;
use crate::id::Revision;
use crate::rejected::Rejected;
use crate::reply::Reply;

/// One entry of the replicated log. The leader fills in everything before it replicates.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    /// The incarnation that the proposer believed in; 0 for `InitCluster`.
    #[prost(uint64, tag = "1")]
    pub incarnation: u64,
    /// The leader's wall clock in ms since 1970; apply never lets it go back.
    #[prost(uint64, tag = "2")]
    pub at_ms: u64,
    /// Makes a retry harmless; empty = none (reconcilers need none: their commands say what they assume).
    #[prost(string, tag = "3")]
    pub request_id: String,
    /// Who asks: `token:<id>`, `node:<id>`, `server:<id>` or `leader`.
    #[prost(string, tag = "4")]
    pub actor: String,
    /// What is asked.
    #[prost(message, required, tag = "5")]
    pub command: Command,
    /// `host:port` that the request came from, for the audit. Empty before feature level 3, and for what nobody asked for.
    #[prost(string, tag = "6")]
    pub caller: String,
}

/// What a command may know beside the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The log index of the entry.
    pub revision: Revision,
    /// The log's time in ms since 1970; never goes back.
    pub at_ms: u64,
}

/// What applying one entry gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The answer for whoever asked.
    pub reply: Result<Reply, Rejected>,
    /// What happened; empty when nothing changed.
    pub events: Vec<Event>,
    /// Exactly the objects that changed, sorted by key: (key, new bytes), or `None` when the object is gone. To be
    /// written in one batch with the applied index.
    pub writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The cluster, a server or an API token is among them: what servers act on by themselves.
    pub is_administrative: bool,
}
