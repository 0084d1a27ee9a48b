//! Makes a join token. Its text was made by the leader and is shown once; here comes only its hash.

use crate::entry::Context;
use crate::event::Event;
use crate::id::TokenId;
use crate::limits;
use crate::model::{JoinToken, TokenPurpose};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Makes a join token.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MintJoinToken {
    /// New.
    #[prost(message, required, tag = "1")]
    pub id: TokenId,
    /// SHA-256 of its text, lowercase hex.
    #[prost(string, tag = "2")]
    pub hash: String,
    /// What it lets in.
    #[prost(message, required, tag = "3")]
    pub purpose: TokenPurpose,
    /// In ms since 1970.
    #[prost(uint64, tag = "4")]
    pub expires_at_ms: u64,
    /// Only a machine of this name may use it; required for `reenroll`.
    #[prost(string, optional, tag = "5")]
    pub bound_name: Option<String>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: MintJoinToken) -> Result<Vec<Event>, Rejected> {
    if let Some(bound) = &cmd.bound_name {
        super::check_node_name(state, "node_name", bound)?;
    }
    if cmd.purpose == TokenPurpose::Reenroll {
        let bound = cmd.bound_name.as_deref().unwrap_or_default();
        if state.node_by_name(bound).is_none() {
            return Err(Rejected::UnknownNode { node: bound.to_owned() });
        }
    }
    let token = JoinToken {
        id: cmd.id,
        hash: cmd.hash,
        purpose: cmd.purpose,
        expires_at_ms: cmd.expires_at_ms,
        bound_name: cmd.bound_name,
        ..JoinToken::default()
    };
    record(state, cx, token)
}

/// Keeps a new token, and drops a few that ended long ago.
pub(super) fn record(state: &mut State, cx: &Context, token: JoinToken) -> Result<Vec<Event>, Rejected> {
    super::check_id("id", token.id.as_str())?;
    super::check_hash("hash", &token.hash)?;
    if token.expires_at_ms <= cx.at_ms {
        return Err(Problem::new("expires_at_ms", "must be in the future").into());
    }
    if state.join_token(&token.id).is_some() || state.join_token_by_hash(&token.hash).is_some() {
        return Err(Rejected::TokenExists { token: token.id.to_string() });
    }
    let outdated = state.outdated_join_tokens(cx.at_ms);
    if state.join_tokens().count() - outdated.len() >= limits::JOIN_TOKENS_MAX {
        return Err(Rejected::TooMany { what: "join tokens".into(), limit: limits::JOIN_TOKENS_MAX.to_string() });
    }
    for token in outdated {
        state.remove_join_token(&token);
    }
    let event = Event::JoinTokenMinted { token: token.id.clone() };
    state.put_join_token(cx, JoinToken { used: None, created_at_ms: cx.at_ms, ..token });
    Ok(vec![event])
}
