//! A join token: lets one machine in, once. Only its hash is kept.

use crate::id::{NodeId, Revision, TokenId};
use crate::wire::wire_enum;

/// A join token.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct JoinToken {
    /// Not secret.
    #[prost(message, required, tag = "1")]
    pub id: TokenId,
    /// SHA-256 of the token's text, lowercase hex.
    #[prost(string, tag = "2")]
    pub hash: String,
    /// What it lets in.
    #[prost(message, required, tag = "3")]
    pub purpose: TokenPurpose,
    /// In ms since 1970; compared with the time of the entry that spends it.
    #[prost(uint64, tag = "4")]
    pub expires_at_ms: u64,
    /// Only a machine of this name may use it; always set when the purpose is `reenroll`.
    #[prost(string, optional, tag = "5")]
    pub bound_name: Option<String>,
    /// Set once, by the entry that spends it.
    #[prost(message, optional, tag = "6")]
    pub used: Option<TokenUse>,
    /// When it was minted, in ms since 1970. Set by apply.
    #[prost(uint64, tag = "7")]
    pub created_at_ms: u64,
    /// Set by apply.
    #[prost(message, required, tag = "8")]
    pub revision: Revision,
    /// Only this node may come back with it, whatever it is called by then; none = a token for anything else, or one of a
    /// release that bound by name alone.
    #[prost(message, optional, tag = "13")]
    pub bound_node: Option<NodeId>,
}

/// Who spent a join token, and when.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TokenUse {
    /// In ms since 1970.
    #[prost(uint64, tag = "1")]
    pub at_ms: u64,
    /// The node that came in; empty for a server.
    #[prost(message, required, tag = "2")]
    pub node: NodeId,
    /// Hash of the key that it came with: the same key may ask again and gets the same answer.
    #[prost(string, tag = "3")]
    pub key_hash: String,
    /// The server that came in; 0 for a node.
    #[prost(uint64, tag = "4")]
    pub server: u64,
}

wire_enum! {
    /// What a join token lets in.
    TokenPurpose {
        /// A new node.
        1 => Node "node",
        /// A new server.
        2 => Server "server",
        /// A node that is known already and needs a new certificate; it keeps id, placements and history.
        3 => Reenroll "reenroll",
    }
}
