//! API tokens: who may call the API.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/tokens`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiTokenRequest {
    /// What people call it; need not be unique.
    pub name: String,
    /// `read`, `write` or `root`.
    pub ability: String,
    /// What it may touch: `node:NAME-OR-ID`, `workload:NAME-PREFIX`; empty = everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Seconds until it expires, at least 60; absent, and no `expiresAt` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A token without its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenView {
    /// For `DELETE`, and in the audit as `token:ID`.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// `read`, `write` or `root`.
    pub ability: String,
    /// `node:ID` or `workload:NAME-PREFIX`; empty = everything.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// `active`, `expired` or `revoked`.
    pub state: String,
    /// When it was made.
    pub created_at: String,
    /// `token:ID`, or `server:ID` when it was recovered; empty when that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// When it expires; absent = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was used last, to some minutes; absent = not yet, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// The only time that a token's text is shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct MintedApiToken {
    /// For `Authorization: Bearer`, `CARA_TOKEN` and `--token`.
    pub token: String,
    /// The rest.
    #[serde(flatten)]
    pub info: ApiTokenView,
}

/// Never prints the token.
impl std::fmt::Debug for MintedApiToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MintedApiToken").field("info", &self.info).finish_non_exhaustive()
    }
}
