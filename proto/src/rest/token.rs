//! Join tokens.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/nodes/join-tokens` and `POST /api/v1/servers/join-tokens`; all optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinTokenRequest {
    /// How long it is valid: `90s`, `15m` (the default), `24h`. Less than a minute becomes a minute, more than a day a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// The same in seconds; not together with `ttl`.
    #[serde(default, alias = "ttlSeconds", skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Only a node of this name may use it.
    #[serde(default, alias = "nodeName", skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// `host:port` under which the new machine reaches a server, when that is not how the servers know themselves; it is
    /// tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_addr: Option<String>,
    /// Host or IP address under which other nodes reach the new one; it goes into the commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_address: Option<String>,
}

/// The only time that a token's secret is shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct MintedToken {
    /// For `DELETE`.
    pub id: String,
    /// What `--token` takes: the secret, all server addresses and the CA's fingerprint in one string.
    pub token: String,
    /// `node` or `server`.
    pub purpose: String,
    /// When it expires.
    pub expires_at: String,
    /// How long it is valid from now on.
    pub ttl_seconds: u64,
    /// SHA-256 of the CA certificate, hex.
    pub ca_fingerprint: String,
    /// Ready to paste on the new machine.
    pub join_commands: JoinCommands,
    /// What was not done as it was asked for, as sentences; most often empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One command for each way to run the new machine's process.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct JoinCommands {
    /// With the binary, without a service manager.
    pub binary: String,
    /// In a container; empty for servers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub docker: String,
}

/// Never prints the commands: the token is in them.
impl std::fmt::Debug for JoinCommands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinCommands").finish_non_exhaustive()
    }
}

/// Never prints the token, nor the commands that have it.
impl std::fmt::Debug for MintedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("MintedToken");
        shown.field("id", &self.id).field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

/// The answer to `POST /api/v1/nodes/{node}/reenroll-token`; the only time that the token's secret is shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
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

/// Never prints the token, nor the command that has it.
impl std::fmt::Debug for ReenrollToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReenrollToken").field("id", &self.id).field("node_id", &self.node_id).finish_non_exhaustive()
    }
}

/// A token without its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
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
