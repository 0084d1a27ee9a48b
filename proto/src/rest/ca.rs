//! The cluster's CA, and its replacement.

use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/cluster/ca/rotate`; may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CaRotateRequest {
    /// Goes on without the nodes that hold the replacement back; they must enrol again.
    pub force: bool,
}

/// Answer of `GET /api/v1/cluster/ca`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaView {
    /// Rises with each replacement; the first is 1.
    pub number: u64,
    /// SHA-256 of the CA's certificate, hex: what contexts and join tokens pin.
    pub fingerprint: String,
    /// `stable`, `distribute` (everyone is told of the next one) or `renew` (certificates of this one are replaced).
    pub phase: String,
    /// SHA-256 of the next CA's certificate; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_fingerprint: String,
    /// When the replacement began; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// CAs before this one that clients may still pin, the newest first.
    #[serde(default)]
    pub former_fingerprints: Vec<String>,
    /// Who must do something before the replacement goes on.
    #[serde(default)]
    pub held_back: Vec<CaHeldBack>,
}

/// A machine that holds the replacement of the CA back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaHeldBack {
    /// `server` or `node`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// `trust` (it has not said that it trusts the next CA), `certificate` (its certificate is of this one) or `use` (it has a
    /// new certificate and was not seen using it).
    pub lack: String,
}
