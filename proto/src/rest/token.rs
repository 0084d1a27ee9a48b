//! Join tokens.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/nodes/join-tokens` and `POST /api/v1/servers/join-tokens`; all optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinTokenRequest {
    /// Seconds until it expires; default 900, clamped to 60..=86400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Only a node of this name may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
}

/// The only time that a token's secret is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MintedToken {
    /// For `DELETE`.
    pub id: String,
    /// What `--token` takes: the secret, all server addresses and the CA's fingerprint in one string.
    pub token: String,
    /// `node` or `server`.
    pub purpose: String,
    /// When it expires.
    pub expires_at: String,
    /// SHA-256 of the CA certificate, hex.
    pub ca_fingerprint: String,
    /// Ready to paste on the new machine.
    pub join_command: String,
}

/// The answer to `POST /api/v1/nodes/{node}/reenroll-token`; the only time that the token's secret is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReenrollToken {
    /// For `DELETE /api/v1/nodes/join-tokens/{id}`.
    pub id: String,
    /// What `--token` takes: the secret, all server addresses and the CA's fingerprint in one string.
    pub token: String,
    /// The only node that can come back with it.
    pub node_id: String,
    /// When it expires: after 15 minutes.
    pub expires_at: String,
    /// SHA-256 of the CA certificate, hex.
    pub ca_fingerprint: String,
    /// Ready to paste on the node's machine.
    pub agent_command: String,
}

/// A token without its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinTokenView {
    /// For `DELETE`.
    pub id: String,
    /// `node` or `server`.
    pub purpose: String,
    /// `unused`, `used` or `expired`.
    pub state: String,
    /// When it expires.
    pub expires_at: String,
    /// The node or server that used it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub used_by: String,
}
