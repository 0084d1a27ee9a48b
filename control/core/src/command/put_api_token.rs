//! Makes an API token. Its text was made by the leader and is shown once; here comes only its hash.
//!
//! Whoever makes one gives no more than they have: judged here and not before, so that a token that is revoked meanwhile
//! leaves no other behind.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::TokenId;
use crate::limits;
use crate::model::{ApiToken, Scope};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Makes an API token.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PutApiToken {
    /// The token; times of creation, revocation and last use and the revision are set by apply.
    #[prost(message, required, tag = "1")]
    pub token: ApiToken,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: PutApiToken) -> Result<Vec<Event>, Rejected> {
    let mut token = cmd.token;
    check(state, &token)?;
    if !token.scopes.is_empty() || !token.created_by.is_empty() {
        state.check_supports(Feature::Lifecycle)?;
    }
    if token.expires_at_ms.is_some_and(|end| end <= cx.at_ms) {
        return Err(Problem::new("token.expires_at_ms", "must be in the future").into());
    }
    check_creator(state, cx, &token)?;
    let forgotten = make_room(state, cx, &token)?;
    token.created_at_ms = cx.at_ms;
    token.revoked_at_ms = None;
    token.last_used_ms = 0;
    let mut events = vec![Event::ApiTokenCreated { token: token.id.clone(), name: token.name.clone() }];
    events.extend(forgotten);
    state.put_api_token(cx, token);
    Ok(events)
}

/// Well formed and new.
pub(super) fn check(state: &State, token: &ApiToken) -> Result<(), Rejected> {
    super::check_id("token.id", token.id.as_str())?;
    super::check_hash("token.hash", &token.hash)?;
    super::check_text("token.name", &token.name, 1)?;
    super::check_text("token.scope", token.scope.as_deref().unwrap_or_default(), 0)?;
    super::check_text("token.created_by", &token.created_by, 0)?;
    if token.scopes.len() > limits::SCOPES_MAX {
        let problem = format!("has {} scopes, at most {}", token.scopes.len(), limits::SCOPES_MAX);
        return Err(Problem::new("token.scopes", problem).into());
    }
    for (at, text) in token.scopes.iter().enumerate() {
        let field = format!("token.scopes[{at}]");
        if let Scope::Node(id) = Scope::parse(&field, text)?
            && state.node(&id).is_none()
        {
            return Err(Rejected::UnknownNode { node: id.to_string() });
        }
    }
    if state.api_token(&token.id).is_some() || state.api_token_by_hash(&token.hash).is_some() {
        return Err(Rejected::TokenExists { token: token.id.to_string() });
    }
    Ok(())
}

/// Refuses what the token that asks does not have itself: ability, reach, and time.
fn check_creator(state: &State, cx: &Context, token: &ApiToken) -> Result<(), Rejected> {
    let Some(id) = token.created_by.strip_prefix("token:").map(TokenId::from) else { return Ok(()) };
    let valid = state.api_token(&id).filter(|creator| creator.is_valid(cx.at_ms));
    let creator = valid.ok_or_else(|| Rejected::CreatorEnded { token: id.to_string() })?;
    let exceeds =
        |what: String| Rejected::TokenExceeds { token: token.name.clone(), creator: creator.name.clone(), what };
    if token.ability > creator.ability {
        return Err(exceeds(format!("the ability {}", token.ability)));
    }
    let own = creator.scopes();
    let beyond = token.scopes().into_iter().find(|scope| !own.iter().any(|own| own.covers(scope)));
    match (creator.is_scoped(), token.is_scoped(), beyond) {
        (false, ..) | (true, true, None) => {}
        (true, false, _) => return Err(exceeds("reach over everything".to_owned())),
        (true, true, Some(scope)) => return Err(exceeds(format!("the scope {scope}"))),
    }
    match (creator.expires_at_ms, token.expires_at_ms) {
        (Some(own), end) if end.is_none_or(|end| end > own) => Err(exceeds("a later end than its own".to_owned())),
        (Some(_) | None, _) => Ok(()),
    }
}

/// Room for one more: of those that have ended the first is forgotten. The last few places are kept for recovery.
fn make_room(state: &mut State, cx: &Context, token: &ApiToken) -> Result<Option<Event>, Rejected> {
    let keeps_room = state.supports(Feature::Lifecycle);
    let reserved = if token.created_by.starts_with("token:") { limits::API_TOKENS_RESERVED } else { 0 };
    let limit = limits::API_TOKENS_MAX - reserved;
    if state.api_tokens().len() < limit {
        return Ok(None);
    }
    let ended = state.api_tokens().filter(|token| keeps_room && !token.is_valid(cx.at_ms));
    let first = ended.min_by_key(|token| (token.ends_at_ms(), token.id.clone()));
    let Some((id, name)) = first.map(|token| (token.id.clone(), token.name.clone())) else {
        return Err(Rejected::TooMany { what: "API tokens".into(), limit: limit.to_string() });
    };
    state.remove_api_token(&id);
    Ok(Some(Event::ApiTokenForgotten { token: id, name }))
}
