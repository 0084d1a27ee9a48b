//! The watch stream: `GET /api/v1/watch`, server-sent events whose id is the revision.

use serde::{Deserialize, Serialize};

/// One committed change. Events of one revision share its id; a stream resumed with `Last-Event-ID: R` begins with the
/// first event of a later revision. When that is gone, the server answers 410 with code `compacted`: list again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchEvent {
    /// Raft log index of the change.
    pub revision: u64,
    /// When the leader accepted it.
    pub at: String,
    /// Past tense, for example `WorkloadPlaced`.
    pub event: String,
    /// `Node`, `App`, `Project`, `Database`, `Move`, `Drain`, `JoinToken`, `Server` or `Cluster`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// One sentence for people.
    pub message: String,
}
