//! The audit: one record for each committed change that somebody asked for.

use crate::id::Revision;

/// Who changed what, when. The newest 10 000 are kept.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AuditRecord {
    /// The entry that made the change.
    #[prost(message, required, tag = "1")]
    pub revision: Revision,
    /// In ms since 1970.
    #[prost(uint64, tag = "2")]
    pub at_ms: u64,
    /// Who asked: `token:<id>`, `node:<id>`, `server:<id>` or `leader`.
    #[prost(string, tag = "3")]
    pub actor: String,
    /// The request that it came with; may be empty.
    #[prost(string, tag = "4")]
    pub request_id: String,
    /// The command's name, as `Command::name` gives it.
    #[prost(string, tag = "5")]
    pub command: String,
    /// What it was about: kind and name of the first object that changed, as `node/rack7-n2`.
    #[prost(string, tag = "6")]
    pub subject: String,
}
