//! An API token: a person's or a program's right to call the API. Only its hash is kept.

use super::Scope;
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
    /// Limits it to workloads whose name starts with this; none = all. Newer tokens have `scopes` instead.
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
    /// What it may touch, each as [`Scope`] reads it; with `scope` too, empty = everything.
    #[prost(string, repeated, tag = "10")]
    pub scopes: Vec<String>,
    /// The actor that made it: `token:<id>`, or `server:<id>` when it was recovered. Empty for those of older releases
    /// and the first one.
    #[prost(string, tag = "11")]
    pub created_by: String,
    /// When it was used last, in ms since 1970, to some minutes; 0 = never. Written by checkpoints only.
    #[prost(uint64, tag = "12")]
    pub last_used_ms: u64,
}

impl ApiToken {
    /// May it touch only a part of the cluster?
    pub fn is_scoped(&self) -> bool {
        self.scope.is_some() || !self.scopes.is_empty()
    }

    /// The parts that it may touch. One that can't be read covers nothing.
    pub fn scopes(&self) -> Vec<Scope> {
        let older = self.scope.iter().map(|prefix| Scope::Workload(prefix.clone()));
        older.chain(self.scopes.iter().filter_map(|text| Scope::parse("scopes", text).ok())).collect()
    }

    /// When it ended, or will end: revoked or expired, whichever was first; none = never.
    pub fn ends_at_ms(&self) -> Option<u64> {
        [self.revoked_at_ms, self.expires_at_ms].into_iter().flatten().min()
    }

    /// True when it may be used at `at_ms`.
    pub fn is_valid(&self, at_ms: u64) -> bool {
        self.revoked_at_ms.is_none() && self.expires_at_ms.is_none_or(|end| at_ms < end)
    }

    /// True for a root token for everything that never ends: one of these must always be left.
    pub(crate) fn is_lasting_root(&self) -> bool {
        self.ability == Ability::Root && self.ends_at_ms().is_none() && !self.is_scoped()
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
