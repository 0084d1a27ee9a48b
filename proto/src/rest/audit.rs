//! The audit: who changed what.

use serde::{Deserialize, Serialize};

/// One change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditRecordView {
    /// Raft log index of the change.
    pub revision: u64,
    /// When the leader accepted it.
    pub at: String,
    /// `token:ID`, `server:ID`, `node:ID`, `join-token`, or `leader` for what the cluster did by itself.
    pub actor: String,
    /// What the token, server or node was called then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub actor_name: String,
    /// `host:port` that the request came from, whichever server it reached first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// Its Idempotency-Key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// What was asked, for example `Cordon`.
    pub command: String,
    /// The first object that changed, as `node/rack7-n2`.
    pub subject: String,
    /// Its id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject_id: String,
    /// Its revision before; absent = it was new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Its revision after; absent = it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// Answer of `GET /api/v1/audit-log`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// `caravanserai/v1`.
    pub api_version: String,
    /// `AuditRecordList`.
    pub kind: String,
    /// The state's revision that this was read at.
    pub revision: u64,
    /// Newest first; oldest first when `after` was given.
    pub items: Vec<AuditRecordView>,
    /// Give this as `before` (or as `after`, when that was given) for the next page; absent = this was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// When the oldest record that is kept was made.
    pub kept_since: String,
    /// Set when older records than that were asked for and may have been dropped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notice: String,
}
