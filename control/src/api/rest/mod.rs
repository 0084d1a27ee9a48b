//! The operator's API: routes, and the road that each request takes before its handler.
//!
//! ```text
//!            probes -------------------------------> handler
//! request -> stale read, watch, metrics -----------> authorise (this server's state) -> handler
//!            replicated state, not the leader -----> catch up with the leader -> authorise -> handler
//!            everything else, not the leader ------> forward to the leader -> its road, as below
//!            everything else, on the leader -------> barrier -> authorise -> handler
//! ```
//! Which routes there are, and who may use them, stands in `table`. One file per noun; each handler is thin: parse, call, show.

mod api_tokens;
mod app_moves;
mod audit;
mod body;
mod ca;
mod drains;
mod health;
mod identity;
mod join_commands;
mod lifecycle;
mod logs;
mod lost;
mod moves;
mod node_health;
mod nodes;
mod openapi;
mod placement;
mod problem;
mod route;
mod sealing;
mod servers;
mod table;
mod tokens;
mod volumes;
mod watch;
mod workloads;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use cara_core::limits::REQUEST_ID_BYTES_MAX;
use cara_core::model::Ability;
use cara_proto::cluster::HttpRequest;
use cara_transport::Caller;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use self::route::{Rule, Rules};
use super::actor::Actor;
use super::auth::{self, Presented};
use super::forward::{self, carried};
use super::reach::Target;
use super::{Leader, SharedApi};
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
    /// Whose token it is, and what it reaches.
    pub actor: Actor,
    /// The caller's Idempotency-Key; empty when there is none.
    pub request_id: String,
    /// The revision in If-Match.
    pub if_match: Option<u64>,
}

/// All routes behind their road.
pub fn router(api: SharedApi) -> Router {
    let routes = table::routes();
    let road = Arc::new(Road { api: api.clone(), rules: Rules::of(&routes) });
    routes
        .into_iter()
        .fold(Router::new(), |router, route| router.route(&route.path, route.handler))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(road, travel))
        .with_state(api)
}

/// What a request passes before its handler.
struct Road {
    api: SharedApi,
    rules: Rules,
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

async fn travel(State(road): State<Arc<Road>>, request: Request, next: Next) -> Response {
    problem::of_any_refusal(along(&road.api, road.rules.for_request(&request), request, next).await).await
}

async fn along(api: &SharedApi, rule: Rule, mut request: Request, next: Next) -> Response {
    let Some(needed) = rule.needs else {
        return next.run(request).await;
    };
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    let stale = match wants_stale(&request) {
        Ok(wanted) => !is_change && (rule.local || wanted),
        Err(error) if rule.known => return error.into_response(),
        Err(_) => false,
    };
    let follower_reads = cara_env::planted("follower-serves-reads") && !is_change;
    if cara_env::planted("follower-answers-404-from-stale-state")
        && let Some(missing) = workloads::known_missing(api, request.uri().path())
    {
        return missing.into_response();
    }
    if !stale && !follower_reads {
        let forwarded = request.extensions().get::<Forwarded>().is_some();
        match settle(api, rule, is_change, forwarded).await {
            Ok(None) => {}
            Ok(Some(leader)) => return hand_over(api, &leader, request).await.into_response(),
            Err(error) => return error.into_response(),
        }
    }
    let actor = match actor(api, &request, needed) {
        Ok(actor) => actor,
        Err(error) if is_change => return confirmed(api, error.into_response()).await,
        Err(error) => return error.into_response(),
    };
    if rule.known {
        match asker(actor, request.headers()) {
            Ok(asker) => drop(request.extensions_mut().insert(asker)),
            Err(error) => return error.into_response(),
        }
    }
    if is_change {
        request = match body::arrived(api, request).await {
            Ok(request) => request,
            Err(error) => return error.into_response(),
        };
    }
    let mut response = next.run(request).await;
    if is_change && response.status().is_client_error() {
        response = confirmed(api, response).await;
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

/// Brings this server to where it can answer: what an acknowledged write has changed, tokens included, is seen here then.
/// Gives the leader's address where only the leader can answer.
async fn settle(api: &SharedApi, rule: Rule, is_change: bool, forwarded: bool) -> Result<Option<String>, ApiError> {
    match leader_for(api, forwarded).await? {
        Leader::At(address) if is_change || !rule.replicated => Ok(Some(address)),
        Leader::At(address) => match api.follower_barrier().await {
            Ok(_) => Ok(None),
            Err(ApiError::NotLeader { .. }) => Ok(Some(address)),
            Err(error) => Err(error),
        },
        Leader::Here | Leader::None if is_change => Ok(None),
        Leader::Here | Leader::None => api.barrier().await.map(|_| None),
    }
}

/// Who asks, when their token may.
fn actor(api: &SharedApi, request: &Request, needed: Ability) -> Result<Actor, ApiError> {
    let now = api.env.clock.wall_ms();
    let target = Target::of(request.uri().path());
    let presented = request.extensions().get();
    let mut actor = api.read_local(|state| auth::authorise(state, presented, needed, target, now))?;
    api.token_uses.note(&actor.token, now);
    actor.caller = request.extensions().get::<Caller>().map(|c| c.address.clone()).unwrap_or_default();
    if cara_env::planted("audit-skips-forwarded") && request.extensions().get::<Forwarded>().is_some() {
        "forwarded".clone_into(&mut actor.name); // The other server has noted who asked.
    }
    Ok(actor)
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

fn wants_stale(request: &Request) -> Result<bool, ApiError> {
    let query = request.uri().query().unwrap_or_default();
    match query.split('&').find_map(|pair| pair.strip_prefix("consistency=")) {
        None | Some("linearizable") => Ok(false),
        Some("stale") => Ok(true),
        Some(other) => Err(ApiError::invalid(format!("consistency: is {other}, must be linearizable or stale"))),
    }
}

async fn leader_for(api: &SharedApi, forwarded: bool) -> Result<Leader, ApiError> {
    if forwarded && !api.leads() {
        return Err(ApiError::NotLeader { leader: api.leader_elsewhere() });
    }
    api.find_leader(LEADER_WAIT.min(api.config.request_deadline)).await
}

/// Reads the headers that a change may carry. One that can't be read is refused: whoever sends a precondition or a key
/// relies on it.
fn asker(actor: Actor, headers: &HeaderMap) -> Result<Asker, ApiError> {
    let text = |name: &'static str| match headers.get(name).map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) if !text.trim().is_empty() => Ok(Some(text.trim())),
        Some(_) => Err(ApiError::invalid(format!("the header {name} must be visible ASCII, and not empty"))),
    };
    let if_match = match text("if-match")? {
        None | Some("*") => None,
        Some(tag) => Some(tag.trim_matches('"').trim_start_matches('r').parse().map_err(|_| {
            ApiError::invalid(format!("If-Match: is {tag}, must be an ETag of this API, such as \"r42\""))
        })?),
    };
    let request_id = text("idempotency-key")?.unwrap_or_default().to_owned();
    if request_id.len() > REQUEST_ID_BYTES_MAX {
        return Err(ApiError::invalid(format!("Idempotency-Key: is longer than {REQUEST_ID_BYTES_MAX} bytes")));
    }
    Ok(Asker { actor, request_id, if_match })
}

/// Sends the request to the leader and returns its answer as it is.
async fn hand_over(api: &SharedApi, address: &str, request: Request) -> Result<Response, ApiError> {
    let (head, body) = body::arrived(api, request).await?.into_parts();
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
    if let Some(presented) = Presented::of(request.headers()) {
        request.extensions_mut().insert(presented); // It has not come through this server's door.
    }
    request.extensions_mut().insert(Forwarded);
    let planted = cara_env::planted("audit-names-the-server-that-forwards");
    let address = if planted { "server:0".to_owned() } else { from.caller };
    request.extensions_mut().insert(Caller { peer: None, address });
    match tower::ServiceExt::oneshot(router, request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
