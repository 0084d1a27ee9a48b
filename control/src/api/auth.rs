//! Whether a caller may do what a route needs; what that is stands in `rest::table`.

use cara_core::State;
use cara_core::model::{Ability, ApiToken};
use cara_transport::JoinToken;
use http::{HeaderMap, header};

use crate::error::ApiError;

/// Finds the caller's token and holds it against what the route needs. Returns the actor for the audit.
///
/// # Errors
/// 401 without a valid token, 403 when its ability is too small.
pub fn authorise(state: &State, headers: &HeaderMap, needed: Ability, now_ms: u64) -> Result<String, ApiError> {
    let token = find(state, headers, now_ms)?;
    if token.ability < needed {
        return Err(ApiError::Forbidden { needed: needed.as_str(), has: token.ability.as_str() });
    }
    Ok(format!("token:{}", token.id))
}

/// The id of the token that a request brings, as far as this server knows; none without a valid one.
pub fn caller(state: &State, headers: &HeaderMap, now_ms: u64) -> Option<String> {
    find(state, headers, now_ms).ok().map(|token| token.id.to_string())
}

fn find<'a>(state: &'a State, headers: &HeaderMap, now_ms: u64) -> Result<&'a ApiToken, ApiError> {
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")))
        .ok_or(ApiError::Unauthenticated("no API token was sent"))?;
    // The lookup goes by the hash of a 256-bit secret: its timing tells nothing about a secret.
    state
        .api_token_by_hash(&JoinToken::hash(given.trim()))
        .filter(|token| token.is_valid(now_ms))
        .ok_or(ApiError::Unauthenticated("the API token is unknown, revoked or expired"))
}
