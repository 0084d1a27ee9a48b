//! Join tokens for nodes and servers.
//!
//! A token's secret is derived from the caller's Idempotency-Key under the cluster's sealing key (at random without
//! one), so that a retry after a lost answer shows the same token instead of minting a second.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use cara_core::command::{MintJoinToken, RevokeJoinToken};
use cara_core::model::{JoinToken as Record, TokenPurpose};
use cara_core::{Command, State as Domain, TokenId};
use cara_proto::rest::{JoinTokenRequest, JoinTokenView, MintedToken};
use cara_transport::JoinToken;
use http::StatusCode;

use super::join_commands::{Machine, join_commands};
use super::{Asker, body};
use crate::api::secret::check_shown;
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::setup::ca_fingerprint;
use crate::wire::{duration, rfc3339};

/// Long enough to walk to the machine.
const TTL_DEFAULT_S: u64 = 15 * 60;
const TTL_MIN_S: u64 = 60;
const TTL_MAX_S: u64 = 24 * 60 * 60;

/// Mints a token for a node.
pub async fn mint_for_node(
    State(api): State<SharedApi>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    mint(&api, &asker, body, TokenPurpose::Node).await
}

/// Mints a token for a server.
pub async fn mint_for_server(
    State(api): State<SharedApi>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    mint(&api, &asker, body, TokenPurpose::Server).await
}

async fn mint(api: &Api, asker: &Asker, body: Body, purpose: TokenPurpose) -> Result<Response, ApiError> {
    let request: JoinTokenRequest = body::parse_or_default(body, api.config.body_max).await?;
    let (ttl_s, notes) = ttl(&request)?;
    check_addresses(&request)?;
    let secret = api.secret_for(&asker.actor.name, &asker.request_id, purpose.as_str())?;
    let id = TokenId::new(format!("jt-{}", &JoinToken::hash(&format!("id of {secret}"))[..12]));
    let now_ms = api.env.clock.wall_ms();
    let command = MintJoinToken {
        id: id.clone(),
        hash: JoinToken::hash(&secret),
        purpose,
        expires_at_ms: now_ms + ttl_s * 1000,
        bound_name: request.node_name.clone(),
    };
    let reply = api.propose(&asker.actor, &asker.request_id, Command::MintJoinToken(command)).await?;
    check_shown(&reply.answer, &id)?;
    // A retry shows what the first attempt recorded.
    let (expires_at_ms, ttl_s, ca_pem) = api.read_local(|state| {
        let recorded = state.join_token(&id).map(|token| (token.expires_at_ms, token.created_at_ms));
        let (expires, created) = recorded.unwrap_or((now_ms + ttl_s * 1000, now_ms));
        let ca_pem = state.cluster().map(|c| c.ca_cert_pem.clone()).unwrap_or_default();
        (expires, expires.saturating_sub(created) / 1000, ca_pem)
    });
    let ca_fingerprint = ca_fingerprint(&ca_pem);
    let servers = servers(api, &request);
    let token = JoinToken { secret, servers, ca_fingerprint: ca_fingerprint.clone() }.to_string();
    let (name, address) = (request.node_name.as_deref(), request.node_address.as_deref());
    let minted = MintedToken {
        id: id.to_string(),
        join_commands: join_commands(&Machine { purpose, token: &token, name, address }),
        token,
        purpose: purpose.as_str().into(),
        expires_at: rfc3339(expires_at_ms),
        ttl_seconds: ttl_s,
        ca_fingerprint,
        notes,
    };
    Ok(body::json(StatusCode::CREATED, &minted))
}

/// Seconds, and what was not as asked for.
fn ttl(request: &JoinTokenRequest) -> Result<(u64, Vec<String>), ApiError> {
    let asked_ms = match (&request.ttl, request.ttl_seconds) {
        (Some(_), Some(_)) => return Err(ApiError::invalid("ttl: give it or ttl_seconds, not both")),
        (Some(text), None) => Some(u64::from(
            duration::parse(text)
                .ok_or_else(|| ApiError::invalid(format!("ttl: {text:?} is no duration such as 90s, 15m or 24h")))?,
        )),
        (None, Some(seconds)) => Some(seconds.saturating_mul(1000)),
        (None, None) => None,
    };
    let Some(asked_ms) = asked_ms else { return Ok((TTL_DEFAULT_S, Vec::new())) };
    let given_s = asked_ms.div_ceil(1000).clamp(TTL_MIN_S, TTL_MAX_S);
    let is_clamped = !(TTL_MIN_S * 1000..=TTL_MAX_S * 1000).contains(&asked_ms);
    let note =
        is_clamped.then(|| format!("the token is valid for {given_s} s: it must be between 1 minute and 24 hours"));
    Ok((given_s, note.into_iter().collect()))
}

/// What goes into a command line and a token must be what it says.
fn check_addresses(request: &JoinTokenRequest) -> Result<(), ApiError> {
    let is_host = |host: &str| {
        !host.is_empty()
            && host.len() <= 255
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:[]_".contains(&b))
    };
    if let Some(address) = &request.control_plane_addr {
        let parts = address.rsplit_once(':').filter(|(host, _)| is_host(host));
        if parts.and_then(|(_, port)| port.parse::<u16>().ok()).is_none_or(|port| port == 0) {
            return Err(ApiError::invalid(format!("control_plane_addr: {address:?} is not HOST:PORT")));
        }
    }
    match &request.node_address {
        Some(address) if !is_host(address) => {
            Err(ApiError::invalid(format!("node_address: {address:?} is no host name or IP address")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Where the new machine looks for a server.
fn servers(api: &Api, request: &JoinTokenRequest) -> Vec<String> {
    let known = api.server_addresses();
    let first = request.control_plane_addr.iter().filter(|address| !known.contains(address));
    first.cloned().chain(known.iter().cloned()).collect()
}

/// Tokens for nodes.
pub async fn list_for_nodes(State(api): State<SharedApi>) -> Response {
    list(&api, |purpose| purpose != TokenPurpose::Server)
}

/// Tokens for servers.
pub async fn list_for_servers(State(api): State<SharedApi>) -> Response {
    list(&api, |purpose| purpose == TokenPurpose::Server)
}

fn list(api: &Api, wanted: impl Fn(TokenPurpose) -> bool) -> Response {
    let now = api.env.clock.wall_ms();
    let (revision, items) = api.read_local(|state| {
        let wanted = state.join_tokens().filter(|token| wanted(token.purpose));
        (state.revision().0, wanted.map(|token| view(state, token, now)).collect::<Vec<_>>())
    });
    body::list("JoinToken", revision, items)
}

fn view(state: &Domain, token: &Record, now_ms: u64) -> JoinTokenView {
    let used_by = token.used.as_ref().map(|used| {
        let server = state.servers().find(|s| s.id.0 == used.server).map(|s| s.name.clone());
        let node = state.node(&used.node).map(|n| n.name.clone());
        server.or(node).unwrap_or_else(|| "something that is gone".into())
    });
    JoinTokenView {
        id: token.id.to_string(),
        purpose: token.purpose.as_str().into(),
        state: match &token.used {
            Some(_) => "used",
            None if token.expires_at_ms <= now_ms => "expired",
            None => "unused",
        }
        .into(),
        expires_at: rfc3339(token.expires_at_ms),
        used_by: used_by.unwrap_or_default(),
    }
}

/// Takes a token back.
pub async fn revoke(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let command = Command::RevokeJoinToken(RevokeJoinToken { id: TokenId::new(id) });
    api.propose(&asker.actor, &asker.request_id, command).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
