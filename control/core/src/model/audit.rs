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
    /// The id of the subject: names are used again, ids aren't. From here on empty before feature level 3.
    #[prost(string, tag = "7")]
    pub subject_id: String,
    /// The name of the token or server that asked, as it was then.
    #[prost(string, tag = "8")]
    pub actor_name: String,
    /// `host:port` that the request came from; empty for what the cluster did by itself.
    #[prost(string, tag = "9")]
    pub caller: String,
    /// The subject's revision before; none = it was new, or has no revision.
    #[prost(message, optional, tag = "10")]
    pub before: Option<Revision>,
    /// The subject's revision after; none = it is gone, or has no revision.
    #[prost(message, optional, tag = "11")]
    pub after: Option<Revision>,
}
