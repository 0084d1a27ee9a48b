//! An API token: a person's or a program's right to call the API. Only its hash is kept.

use crate::id::{Revision, TokenId};
use crate::wire::wire_enum;

/// An API token.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ApiToken {
    /// Not secret.
    #[prost(message, required, tag = "1")]
    pub id: TokenId,
    /// SHA-256 of the token's text, lowercase hex.
    #[prost(string, tag = "2")]
    pub hash: String,
    /// What people call it.
    #[prost(string, tag = "3")]
    pub name: String,
    /// What it may do.
    #[prost(message, required, tag = "4")]
    pub ability: Ability,
    /// Limits it to workloads whose name starts with this; none = all.
    #[prost(string, optional, tag = "5")]
    pub scope: Option<String>,
    /// In ms since 1970; none = never. The leader compares before it proposes.
    #[prost(uint64, optional, tag = "6")]
    pub expires_at_ms: Option<u64>,
    /// In ms since 1970. Set by apply.
    #[prost(uint64, tag = "7")]
    pub created_at_ms: u64,
    /// In ms since 1970. Set by apply.
    #[prost(uint64, optional, tag = "8")]
    pub revoked_at_ms: Option<u64>,
    /// Set by apply.
    #[prost(message, required, tag = "9")]
    pub revision: Revision,
}

impl ApiToken {
    /// True when it may be used at `at_ms`.
    pub fn is_valid(&self, at_ms: u64) -> bool {
        self.revoked_at_ms.is_none() && self.expires_at_ms.is_none_or(|end| at_ms < end)
    }

    /// True for a root token that never ends: one of these must always be left.
    pub(crate) fn is_lasting_root(&self) -> bool {
        self.ability == Ability::Root && self.revoked_at_ms.is_none() && self.expires_at_ms.is_none()
    }
}

wire_enum! {
    /// What an API token may do; each includes the ones before.
    Ability {
        /// See everything but secrets.
        1 => Read "read",
        /// Change workloads, cordon and label nodes.
        2 => Write "write",
        /// Mint tokens, admit and remove machines, change the cluster.
        3 => Root "root",
    }
}
