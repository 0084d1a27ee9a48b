//! Makes an API token. Its text was made by the leader and is shown once; here comes only its hash.

use crate::entry::Context;
use crate::event::Event;
use crate::limits;
use crate::model::ApiToken;
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Makes an API token.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PutApiToken {
    /// The token; times of creation and revocation and the revision are set by apply.
    #[prost(message, required, tag = "1")]
    pub token: ApiToken,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: PutApiToken) -> Result<Vec<Event>, Rejected> {
    check(state, &cmd.token)?;
    if cmd.token.expires_at_ms.is_some_and(|end| end <= cx.at_ms) {
        return Err(Problem::new("token.expires_at_ms", "must be in the future").into());
    }
    if state.api_tokens().count() >= limits::API_TOKENS_MAX {
        return Err(Rejected::TooMany { what: "API tokens".into(), limit: limits::API_TOKENS_MAX.to_string() });
    }
    let mut token = cmd.token;
    token.created_at_ms = cx.at_ms;
    token.revoked_at_ms = None;
    let event = Event::ApiTokenCreated { token: token.id.clone(), name: token.name.clone() };
    state.put_api_token(cx, token);
    Ok(vec![event])
}

/// Well formed and new.
pub(super) fn check(state: &State, token: &ApiToken) -> Result<(), Rejected> {
    super::check_id("token.id", token.id.as_str())?;
    super::check_hash("token.hash", &token.hash)?;
    super::check_text("token.name", &token.name, 1)?;
    super::check_text("token.scope", token.scope.as_deref().unwrap_or_default(), 0)?;
    if state.api_token(&token.id).is_some() || state.api_token_by_hash(&token.hash).is_some() {
        return Err(Rejected::TokenExists { token: token.id.to_string() });
    }
    Ok(())
}
