//! Errors (RFC 9457).

use serde::{Deserialize, Serialize};

/// The content type of a [`Problem`].
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// Why a request was refused or failed, and what to do next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Problem {
    /// `urn:caravanserai:problem:<code>`.
    pub r#type: String,
    /// Short, the same for every problem with this code.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Stable, kebab-case; programs match on it.
    pub code: String,
    /// What happened, with the field or the line.
    pub detail: String,
    /// The next step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// May the same request succeed later?
    #[serde(default)]
    pub retryable: bool,
    /// To find the request in the servers' logs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
}
