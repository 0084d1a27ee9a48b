//! Who may do what: one table, one place.

use cara_core::State;
use cara_core::model::{Ability, ApiToken};
use cara_transport::JoinToken;
use http::{HeaderMap, Method, header};

use crate::error::ApiError;

/// What a route needs. `None` = nothing: probes of a load balancer.
pub fn required(method: &Method, path: &str) -> Option<Ability> {
    let rest = path.strip_prefix("/api/v1").unwrap_or(path).trim_start_matches('/');
    let first = rest.split('/').next().unwrap_or_default();
    let third = rest.split('/').nth(2);
    match (method, first) {
        (&Method::GET, "livez" | "readyz" | "healthz") => None,
        // Tokens are secrets' shadows: only those who may make them see them.
        (_, "tokens") => Some(Ability::Root),
        (_, "nodes" | "servers") if rest.contains("/join-tokens") => Some(Ability::Root),
        // Passwords.
        (_, "databases") if third == Some("connection") => Some(Ability::Root),
        // Gives data up.
        (_, "nodes") if third == Some("lost") => Some(Ability::Root),
        // Gives a node's place to a machine, or takes it away.
        (_, "nodes") if matches!(third, Some("reenroll-token" | "revoke-cert")) => Some(Ability::Root),
        (&Method::GET, _) => Some(Ability::Read),
        (&Method::DELETE, "nodes" | "servers") => Some(Ability::Root),
        (&Method::POST | &Method::PUT | &Method::DELETE | &Method::PATCH, _) => Some(Ability::Write),
        _ => Some(Ability::Root),
    }
}

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
        assert_eq!(needs(Method::POST, "/api/v1/nodes/n1/reenroll-token"), Some(Ability::Root));
        assert_eq!(needs(Method::POST, "/api/v1/nodes/n1/revoke-cert"), Some(Ability::Root));
        assert_eq!(needs(Method::DELETE, "/api/v1/nodes/n1/volumes/v"), Some(Ability::Root));
        assert_eq!(needs(Method::GET, "/api/v1/databases/shop/connection"), Some(Ability::Root));
        assert_eq!(needs(Method::GET, "/api/v1/databases/connection"), Some(Ability::Read), "one of that name");
        assert_eq!(needs(Method::TRACE, "/api/v1/nodes"), Some(Ability::Root));
    }
}
