//! The door before REST and gRPC: how often a caller may ask.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cara_transport::Caller;
use http::header;

use super::auth::{self, Presented};
use super::{Api, SharedApi};
use crate::error::ApiError;

/// Whoever watches this server from outside must not be taken for a flood.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/api/healthz"];

/// Lets a request in, or answers 429 with the time to wait.
pub async fn enter(State(api): State<SharedApi>, mut request: Request, next: Next) -> Response {
    if let Some(presented) = Presented::of(request.headers()) {
        request.extensions_mut().insert(presented);
    }
    match admit(&api, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            let content_type = request.headers().get(header::CONTENT_TYPE).map_or(&[][..], |kind| kind.as_bytes());
            if content_type.starts_with(b"application/grpc") {
                refusal.to_status().into_http()
            } else {
                refusal.into_response()
            }
        }
    }
}

fn admit(api: &Api, request: &Request) -> Result<(), ApiError> {
    let caller = request.extensions().get::<Caller>();
    if caller.is_some_and(|caller| caller.peer.is_some()) || PROBES.contains(&request.uri().path()) {
        return Ok(());
    }
    let now = api.env.clock.monotonic();
    let token = api.read_local(|state| auth::caller(state, request.extensions().get(), api.env.clock.wall_ms()));
    let (who, taken) = match token {
        Some(id) => ("token", api.limiter.of_token(&id, now)),
        None => ("address", api.limiter.of_address(&caller.map(Caller::source).unwrap_or_default(), now)),
    };
    taken.map_err(|wait| {
        api.metrics.refused(who);
        ApiError::RateLimited { who, wait }
    })
}
