//! Takes an API token back: the first time it is marked, a revoked one is forgotten. The last root token stays.

use crate::entry::Context;
use crate::event::Event;
use crate::id::TokenId;
use crate::rejected::Rejected;
use crate::state::State;

/// Takes an API token back.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RevokeApiToken {
    /// The token.
    #[prost(message, required, tag = "1")]
    pub id: TokenId,
    /// Forget a token that is revoked or has expired, to make room.
    #[prost(bool, tag = "2")]
    pub forget: bool,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RevokeApiToken) -> Result<Vec<Event>, Rejected> {
    let token = state.api_token(&cmd.id).ok_or_else(|| Rejected::UnknownToken { token: cmd.id.to_string() })?;
    let name = token.name.clone();
    let ended = !token.is_valid(cx.at_ms);
    if token.is_lasting_root() && state.api_tokens().filter(|t| t.is_lasting_root()).count() == 1 {
        return Err(Rejected::LastRootToken { token: name });
    }
    if cmd.forget && ended {
        state.remove_api_token(&cmd.id);
        return Ok(vec![Event::ApiTokenForgotten { token: cmd.id, name }]);
    }
    if token.revoked_at_ms.is_none() {
        state.edit_api_token(cx, &cmd.id, |token| token.revoked_at_ms = Some(cx.at_ms));
        return Ok(vec![Event::ApiTokenRevoked { token: cmd.id, name }]);
    }
    Ok(Vec::new())
}
