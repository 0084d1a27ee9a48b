//! What every object and every list has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The only `apiVersion`.
pub const API_VERSION: &str = "caravanserai/v1";

/// An object's name and bookkeeping.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Unique per kind: a DNS label.
    #[cfg_attr(feature = "openapi", schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63)))]
    pub name: String,
    /// Set by the server, never reused; ignored on the way in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Free-form; replaced whole by an update.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Free-form; replaced whole by an update.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Revision of the last change (a raft log index). On the way in: change only if it is still this one; 0 = any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resource_version: u64,
    /// Set by the server; ignored on the way in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_at: String,
    /// Set by the server; ignored on the way in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub updated_at: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A list of objects as of one revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "{T}List"))]
#[serde(rename_all = "camelCase")]
pub struct List<T> {
    /// Always `caravanserai/v1`.
    #[cfg_attr(feature = "openapi", schemars(extend("const" = API_VERSION)))]
    pub api_version: String,
    /// For example `NodeList`.
    pub kind: String,
    /// The revision at which the list was true; a watch resumes from it.
    pub revision: u64,
    /// Ordered by name.
    pub items: Vec<T>,
}
