//! Makes the token with which one node, and no other, comes back: its identity is lost, expired or revoked. Its text was
//! made by the leader and is shown once; here comes only its hash.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{NodeId, TokenId};
use crate::model::{JoinToken, TokenPurpose};
use crate::rejected::Rejected;
use crate::state::State;

/// Makes a token for one node that has joined before.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MintReenrollToken {
    /// New.
    #[prost(message, required, tag = "1")]
    pub id: TokenId,
    /// SHA-256 of its text, lowercase hex.
    #[prost(string, tag = "2")]
    pub hash: String,
    /// The node that it is for.
    #[prost(message, required, tag = "3")]
    pub node: NodeId,
    /// In ms since 1970.
    #[prost(uint64, tag = "4")]
    pub expires_at_ms: u64,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: MintReenrollToken) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    if node.certificate.is_none() {
        return Err(Rejected::NodeNotEnrolled { node: node.name.clone() });
    }
    let token = JoinToken {
        id: cmd.id,
        hash: cmd.hash,
        purpose: TokenPurpose::Reenroll,
        expires_at_ms: cmd.expires_at_ms,
        bound_name: Some(node.name.clone()),
        bound_node: Some(cmd.node),
        ..JoinToken::default()
    };
    super::mint_join_token::record(state, cx, token)
}
