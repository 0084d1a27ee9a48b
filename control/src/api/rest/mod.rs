//! The operator's API: routes, and the road that each request takes before its handler.
//!
//! ```text
//!            probes ----------------------------> handler
//! request -> stale read, watch, metrics --------> authorise (this server's state) -> handler
//!            everything else, not the leader ---> forward to the leader -> its road, as below
//!            everything else, on the leader ----> barrier -> authorise -> handler
//! ```
//! One file per noun; each handler is thin: parse, call, show.

mod app_moves;
mod body;
mod drains;
mod health;
mod identity;
mod lifecycle;
mod logs;
mod lost;
mod moves;
mod nodes;
mod placement;
mod servers;
mod tokens;
mod volumes;
mod watch;
mod workloads;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use cara_proto::cluster::HttpRequest;
use cara_transport::Caller;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::forward::{self, carried};
use super::{Leader, SharedApi, auth};
use crate::error::ApiError;

/// Log index up to which the answering server had applied.
const REVISION: HeaderName = HeaderName::from_static("cara-revision");
/// Name of the server whose state was read.
const ANSWERED_BY: HeaderName = HeaderName::from_static("cara-answered-by");
/// Set to `stale` when the answer may be behind.
const CONSISTENCY: HeaderName = HeaderName::from_static("cara-consistency");

/// Longest wait for a leader: an election takes a second or two; a client's own deadline is not much longer than this.
const LEADER_WAIT: Duration = Duration::from_secs(8);

/// Marks a request that another server has handed over: it is not handed on again.
#[derive(Debug, Clone, Copy)]
pub struct Forwarded;

/// Who asks, and under which request id; put there by the road for the handlers.
#[derive(Debug, Clone)]
pub struct Asker {
    /// For the audit, `token:<id>`.
    pub actor: String,
    /// The caller's Idempotency-Key; empty when there is none.
    pub request_id: String,
    /// The revision in If-Match.
    pub if_match: Option<u64>,
}

/// All routes behind their road.
pub fn router(api: SharedApi) -> Router {
    let nodes = Router::new()
        .route("/", get(nodes::list).post(nodes::create))
        .route("/join-tokens", get(tokens::list_for_nodes).post(tokens::mint_for_node))
        .route("/join-tokens/{id}", axum::routing::delete(tokens::revoke))
        .route("/{node}", get(nodes::show).put(nodes::replace).delete(nodes::delete))
        .route("/{node}/cordon", post(nodes::cordon))
        .route("/{node}/uncordon", post(nodes::uncordon))
        .route("/{node}/labels", get(nodes::labels).put(nodes::set_labels))
        .route("/{node}/workloads", put(nodes::set_accepts))
        .route("/{node}/events", get(nodes::events))
        .route("/{node}/drain", post(drains::start))
        .route("/{node}/drains", get(drains::list))
        .route("/{node}/lost", post(lost::declare))
        .route("/{node}/reenroll-token", post(identity::reenroll_token))
        .route("/{node}/revoke-cert", post(identity::revoke_cert))
        .route("/{node}/volumes", get(volumes::list))
        .route("/{node}/volumes/{volume}", axum::routing::delete(volumes::remove))
        .route("/{node}/health", get(nodes::health));
    let servers = Router::new()
        .route("/", get(servers::show))
        .route("/join-tokens", get(tokens::list_for_servers).post(tokens::mint_for_server))
        .route("/join-tokens/{id}", axum::routing::delete(tokens::revoke))
        .route("/{server}", axum::routing::delete(servers::remove));
    let v1 = Router::new()
        .nest("/nodes", nodes)
        .nest("/servers", servers)
        .route("/watch", get(watch::watch))
        .route("/workloads", get(workloads::list_all))
        .route("/{kind}", get(workloads::list).post(workloads::create))
        .route("/{kind}/{name}", get(workloads::show).put(workloads::replace).delete(workloads::delete))
        .route("/node-moves", get(moves::list))
        .route("/node-moves/{id}", get(moves::show))
        .route("/node-moves/{id}/cancel", post(moves::cancel))
        .route("/node-drains/{id}", get(drains::show))
        .route("/node-drains/{id}/cancel", post(drains::cancel))
        .route("/{kind}/{name}/move", post(moves::start))
        .route("/{kind}/{name}/placement", get(placement::show).put(placement::set))
        .route("/{kind}/{name}/suspend", post(lifecycle::suspend))
        .route("/{kind}/{name}/resume", post(lifecycle::resume))
        .route("/{kind}/{name}/restart", post(lifecycle::restart))
        .route("/{kind}/{name}/connection", get(lifecycle::connection))
        .route("/{kind}/{name}/node", put(app_moves::set_node))
        .route("/{kind}/{name}/move-with-volumes", post(app_moves::move_with_volumes))
        .route("/{kind}/{name}/moves", get(app_moves::list))
        .route("/{kind}/{name}/moves/{id}", get(app_moves::show))
        .route("/{kind}/{name}/logs", get(logs::logs))
        .route("/{kind}/{name}/logs/{service}", get(logs::logs_of));
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .nest("/api/v1", v1)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(api.clone(), road))
        .with_state(api)
}

async fn no_route(request: Request) -> ApiError {
    let (code, hint) = ("no-such-path", "see the API's paths in the documentation");
    ApiError::Missing { code, detail: format!("there is no path {}", request.uri().path()), hint }
}

async fn no_method(request: Request) -> ApiError {
    ApiError::Bad {
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: "method-not-allowed",
        detail: format!("{} can't be used on {}", request.method(), request.uri().path()),
        hint: "see the API's paths in the documentation",
    }
}

async fn road(State(api): State<SharedApi>, mut request: Request, next: Next) -> Response {
    let Some(needed) = auth::required(request.method(), request.uri().path()) else {
        return next.run(request).await;
    };
    let stale = is_local(&request);
    let follower_reads = cara_env::planted("follower-serves-reads") && request.method() == Method::GET;
    if cara_env::planted("follower-answers-404-from-stale-state")
        && let Some(missing) = workloads::known_missing(&api, request.uri().path())
    {
        return missing.into_response();
    }
    if !stale && !follower_reads {
        let forwarded = request.extensions().get::<Forwarded>().is_some();
        match leader_for(&api, forwarded).await {
            Ok(Leader::At(address)) => return hand_over(&api, &address, request).await.into_response(),
            Ok(Leader::Here | Leader::None) => {}
            Err(error) => return error.into_response(),
        }
        // What an acknowledged write has changed, tokens included, must be seen here.
        if request.method() == Method::GET
            && let Err(error) = api.barrier().await
        {
            return error.into_response();
        }
    }
    let is_change = request.method() != Method::GET;
    let now = api.env.clock.wall_ms();
    match api.read_local(|state| auth::authorise(state, request.headers(), needed, now)) {
        Ok(actor) => {
            let mut asker = asker(actor, request.headers());
            if cara_env::planted("audit-skips-forwarded") && request.extensions().get::<Forwarded>().is_some() {
                "forwarded".clone_into(&mut asker.actor); // The other server has noted who asked.
            }
            request.extensions_mut().insert(asker);
        }
        Err(error) if is_change => return confirmed(&api, error.into_response()).await,
        Err(error) => return error.into_response(),
    }
    let mut response = next.run(request).await;
    if is_change && response.status().is_client_error() {
        response = confirmed(&api, response).await;
    }
    let applied = api.raft.with_state(|machine| machine.applied());
    let headers = response.headers_mut();
    headers.insert(REVISION, HeaderValue::from(applied));
    if let Ok(name) = HeaderValue::from_str(&api.identity.name) {
        headers.insert(ANSWERED_BY, name);
    }
    if stale {
        headers.insert(CONSISTENCY, HeaderValue::from_static("stale"));
    }
    response
}

/// A refused change was refused on this server's state. A leader that was replaced and doesn't know it would refuse with
/// what was true before (an app that it has not seen being created is "not found"), so leadership is confirmed first.
/// What is carried out needs no such care: it went through the log.
async fn confirmed(api: &SharedApi, refusal: Response) -> Response {
    match api.barrier().await {
        Ok(_) => refusal,
        Err(error) => error.into_response(),
    }
}

/// Answered from this server's own state, whoever leads.
fn is_local(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let path = request.uri().path();
    request.method() == Method::GET
        && (query.split('&').any(|pair| pair == "consistency=stale") || path == "/api/v1/watch" || path == "/metrics")
}

async fn leader_for(api: &SharedApi, forwarded: bool) -> Result<Leader, ApiError> {
    if forwarded && !api.leads() {
        return Err(ApiError::NotLeader { leader: api.leader_elsewhere() });
    }
    api.find_leader(LEADER_WAIT.min(api.config.request_deadline)).await
}

fn asker(actor: String, headers: &HeaderMap) -> Asker {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let if_match = text("if-match").trim_matches(['"', 'r']).parse().ok();
    Asker { actor, request_id: text("idempotency-key"), if_match }
}

/// Sends the request to the leader and returns its answer as it is.
async fn hand_over(api: &SharedApi, address: &str, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let caller = head.extensions.get::<Caller>().map(|c| c.address.clone()).unwrap_or_default();
    let carried = HttpRequest {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: carried(&head.headers),
        body: body::read(body, api.config.body_max).await?.to_vec(),
        caller,
    };
    api.metrics.forwarded();
    if cara_env::planted("reply-lost-means-retry-with-new-key") {
        let answer = api.forwarder.send(address, carried.clone(), api.config.request_deadline).await;
        let Err(ApiError::Unconfirmed) = answer else { return answer };
        let mut again = carried;
        again.headers.retain(|header| header.name != "idempotency-key");
        let value = cara_env::hex(&*api.env.rng, 8).into_bytes();
        again.headers.push(cara_proto::cluster::Header { name: "idempotency-key".to_owned(), value });
        return api.forwarder.send(address, again, api.config.request_deadline).await;
    }
    api.forwarder.send(address, carried, api.config.request_deadline).await
}

/// Runs a request that another server has handed over.
pub async fn run_forwarded(router: Router, from: HttpRequest) -> Response {
    let method = Method::from_bytes(from.method.as_bytes()).unwrap_or(Method::GET);
    let built = http::Request::builder().method(method).uri(&from.path).body(Body::from(from.body));
    let Ok(mut request) = built else {
        return ApiError::invalid(format!("{:?} is not a path", from.path)).into_response();
    };
    forward::put_headers(request.headers_mut(), from.headers);
    request.extensions_mut().insert(Forwarded);
    request.extensions_mut().insert(Caller { peer: None, address: from.caller });
    match tower::ServiceExt::oneshot(router, request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
