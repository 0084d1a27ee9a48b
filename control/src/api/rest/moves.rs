//! `POST /api/v1/{kind}/{name}/move` and `/api/v1/node-moves`.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use cara_core::model::{MoveStatus, WorkloadKind};
use cara_proto::rest::{Items, MoveRequest};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asker, body};
use crate::api::SharedApi;
use crate::api::moves::MoveFilter;
use crate::error::ApiError;
use crate::wire::kind_of_word;

/// A page of moves; more are found by narrowing the list.
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 200;

/// Begins a move, or says what it would do.
pub async fn start(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let request: MoveRequest = body::parse_or_default(body, api.config.body_max).await?;
    if request.dry_run {
        return Ok(body::json(StatusCode::OK, &api.plan_move(kind, &name, &request)?));
    }
    Ok(body::json(StatusCode::ACCEPTED, &api.start_move(&asker, kind, &name, &request).await?))
}

/// What a list of moves can be narrowed by.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct ListQuery {
    /// `app`, `database` or `project`.
    #[serde(default)]
    kind: String,
    /// Name of the workload.
    #[serde(default)]
    resource: String,
    /// Moves of this drain.
    #[serde(default)]
    drain_id: String,
    /// `running`, `succeeded`, `failed` or `rolled_back`.
    #[serde(default)]
    status: String,
    /// At most so many; 50 by default.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// Moves of workloads within reach, newest first.
pub async fn list(
    State(api): State<SharedApi>,
    Query(query): Query<ListQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("limit: is {limit}, must be 1 to {LIMIT_MAX}")));
    }
    let kind = match query.kind.as_str() {
        "" => None,
        word => Some(
            kind_of_word(word)
                .ok_or_else(|| ApiError::invalid(format!("kind: is {word:?}, must be app, database or project")))?,
        ),
    };
    let status = match query.status.as_str() {
        "" => None,
        word => Some(MoveStatus::parse(word).ok_or_else(|| {
            ApiError::invalid(format!("status: is {word:?}, must be running, succeeded, failed or rolled_back"))
        })?),
    };
    let reach = asker.actor.reach;
    let filter = MoveFilter { kind, resource: query.resource, drain_id: query.drain_id, status, limit, reach };
    Ok(body::json(StatusCode::OK, &Items { items: api.list_moves(&filter) }))
}

/// One move.
pub async fn show(State(api): State<SharedApi>, Path(id): Path<String>) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::OK, &api.show_move(&id)?))
}

/// Takes a move back.
pub async fn cancel(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::ACCEPTED, &api.cancel_move(&asker, &id).await?))
}
