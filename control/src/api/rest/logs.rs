//! `GET /api/v1/{kind}/{name}/logs/{service}`: what a container printed, streamed from its node.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use cara_core::model::WorkloadKind;
use cara_proto::agent::LogsRequest;
use futures_util::StreamExt;
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_stream::wrappers::ReceiverStream;

use super::Asker;
use crate::api::SharedApi;
use crate::api::find::workload as find;
use crate::api::token_ended;
use crate::error::ApiError;

/// Which part of the log.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct LogsQuery {
    /// Last lines; absent or 0 = all.
    #[serde(default)]
    tail: u64,
    /// Goes on with what is printed from now on.
    #[serde(default)]
    follow: bool,
    /// Each line begins with its time.
    #[serde(default)]
    timestamps: bool,
}

/// The log of the only service.
pub async fn logs(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Query(query): Query<LogsQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let services = api.read_local(|state| {
        let workload = find(state, kind, &name)?;
        Ok::<_, ApiError>(workload.spec.services.iter().map(|s| s.name.clone()).collect::<Vec<_>>())
    })?;
    match services.as_slice() {
        [single] => stream(&api, &asker, kind, (&name, single), query),
        several => Err(ApiError::invalid(format!("{name} has several services, say which: {}", several.join(", ")))),
    }
}

/// The log of one service.
pub async fn logs_of(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path((name, service)): Path<(String, String)>,
    Query(query): Query<LogsQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    stream(&api, &asker, kind, (&name, &service), query)
}

fn stream(
    api: &SharedApi,
    asker: &Asker,
    kind: WorkloadKind,
    (name, service): (&str, &str),
    query: LogsQuery,
) -> Result<Response, ApiError> {
    let (uid, node, node_name) = api.read_local(|state| {
        let workload = find(state, kind, name)?;
        if !workload.spec.services.iter().any(|s| s.name == service) {
            let known: Vec<_> = workload.spec.services.iter().map(|s| s.name.as_str()).collect();
            return Err(ApiError::Missing {
                code: "unknown-service",
                detail: format!("{name} has no service {service}; it has: {}", known.join(", ")),
                hint: "name one of its services",
            });
        }
        let Some(placement) = &workload.placement else {
            return Err(conflict("not-placed", format!("{name} runs nowhere yet")));
        };
        let node_name = state.node(&placement.node).map(|n| n.name.clone()).unwrap_or_default();
        Ok((workload.uid.to_string(), placement.node.clone(), node_name))
    })?;
    let request = LogsRequest {
        request_id: cara_env::hex(&*api.env.rng, 12),
        workload_uid: uid,
        service: service.to_owned(),
        tail: query.tail,
        follow: query.follow,
        timestamps: query.timestamps,
    };
    let chunks = api
        .sessions
        .ask_logs(&node, request)
        .map_err(|reason| conflict("logs-unavailable", format!("can't read logs from node {node_name}: {reason}")))?;
    let chunks = ReceiverStream::new(chunks).map(|chunk| chunk.map_err(std::io::Error::other));
    let body = Body::from_stream(chunks.take_until(token_ended(api.clone(), asker.actor.token.clone())));
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(response)
}

fn conflict(code: &'static str, detail: String) -> ApiError {
    ApiError::Bad { status: StatusCode::CONFLICT, code, detail, hint: "see the node's state with: caractrl nodes list" }
}
