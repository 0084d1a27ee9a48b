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

use super::{Asker, body};
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::setup::ca_fingerprint;
use crate::wire::rfc3339;

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
    let secret = secret(api, asker, purpose.as_str());
    let id = TokenId::new(format!("jt-{}", &JoinToken::hash(&format!("id of {secret}"))[..12]));
    let ttl = request.ttl_seconds.unwrap_or(TTL_DEFAULT_S).clamp(TTL_MIN_S, TTL_MAX_S);
    let expires_at_ms = api.env.clock.wall_ms() + ttl * 1000;
    let command = MintJoinToken {
        id: id.clone(),
        hash: JoinToken::hash(&secret),
        purpose,
        expires_at_ms,
        bound_name: request.node_name.clone(),
    };
    api.propose(&asker.actor, &asker.request_id, Command::MintJoinToken(command)).await?;
    // A retry shows what the first attempt recorded.
    let (expires_at_ms, ca_pem) = api.read_local(|state| {
        let expires = state.join_token(&id).map_or(expires_at_ms, |token| token.expires_at_ms);
        (expires, state.cluster().map(|c| c.ca_cert_pem.clone()).unwrap_or_default())
    });
    let ca_fingerprint = ca_fingerprint(&ca_pem);
    let token =
        JoinToken { secret, servers: api.server_addresses(), ca_fingerprint: ca_fingerprint.clone() }.to_string();
    let minted = MintedToken {
        id: id.to_string(),
        join_command: join_command(purpose, &token, request.node_name.as_deref()),
        token,
        purpose: purpose.as_str().into(),
        expires_at: rfc3339(expires_at_ms),
        ca_fingerprint,
    };
    Ok(body::json(StatusCode::CREATED, &minted))
}

/// The text of a new token; a retry gets the same one.
pub(super) fn secret(api: &Api, asker: &Asker, what: &str) -> String {
    if asker.request_id.is_empty() {
        return cara_env::hex(&*api.env.rng, 32);
    }
    let key = api.identity.sealing_key.as_bytes();
    // SHA-256 of key, then of its digest with the request: without the key nobody can derive the secret.
    let inner = JoinToken::hash(&format!("{}|{}|{}", asker.actor, asker.request_id, what));
    JoinToken::hash(&format!("{}|{inner}|{}", JoinToken::hash(&String::from_utf8_lossy(key)), api.identity.sealing_key))
}

fn join_command(purpose: TokenPurpose, token: &str, name: Option<&str>) -> String {
    match purpose {
        TokenPurpose::Server => format!(
            "cara-server join --data-dir /var/lib/cara-server --name NAME --advertise HOST:7443 --token {token}"
        ),
        TokenPurpose::Node | TokenPurpose::Reenroll => {
            let name = name.map(|name| format!(" --name {name}")).unwrap_or_default();
            format!("cara-agent --data-dir /var/lib/cara-agent{name} --token {token}")
        }
    }
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
