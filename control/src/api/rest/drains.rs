//! `/api/v1/nodes/{node}/drain`, `/api/v1/nodes/{node}/drains` and `/api/v1/node-drains`.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use cara_proto::rest::Items;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asker, body};
use crate::api::SharedApi;
use crate::error::ApiError;

/// How to drain.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct DrainQuery {
    /// Everything goes to this node, by id or name; empty = one is chosen for each.
    #[serde(default)]
    target_node_id: String,
    /// Only says what it would do.
    #[serde(default)]
    dry_run: bool,
}

/// Begins to empty a node, or says what that would move.
pub async fn start(
    State(api): State<SharedApi>,
    Path(node): Path<String>,
    Query(query): Query<DrainQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    if query.dry_run {
        return Ok(body::json(StatusCode::OK, &api.plan_drain(&node, &query.target_node_id)?));
    }
    Ok(body::json(StatusCode::ACCEPTED, &api.start_drain(&asker, &node, &query.target_node_id).await?))
}

/// The drains of a node, newest first.
pub async fn list(State(api): State<SharedApi>, Path(node): Path<String>) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::OK, &Items { items: api.list_drains(&node)? }))
}

/// One drain.
pub async fn show(State(api): State<SharedApi>, Path(id): Path<String>) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::OK, &api.show_drain(&id)?))
}

/// Ends a drain; the node stays cordoned.
pub async fn cancel(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::ACCEPTED, &api.cancel_drain(&asker, &id).await?))
}
