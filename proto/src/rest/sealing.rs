//! The key under which the cluster's secrets are sealed, and its replacement.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/cluster/sealing-key/rotate`; may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SealingKeyRotateRequest {
    /// Begins again with another key while it is being replaced: for a next key that no server can get any more.
    pub anew: bool,
}

/// Answer of `GET /api/v1/cluster/sealing-key`. Keys are told by their ids, from which nobody finds a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SealingKeyView {
    /// Id of the key under which the secrets are sealed.
    pub key_id: String,
    /// `stable`, or `distribute` (every server gets the next key).
    pub phase: String,
    /// Id of the next key; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_key_id: String,
    /// When the replacement began; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// Servers that must get the next key before the replacement goes on.
    #[serde(default)]
    pub held_back: Vec<String>,
}
