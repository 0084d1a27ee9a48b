//! `/api/v1/{kind}/{name}/placement`.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use cara_core::model::WorkloadKind;
use cara_proto::rest::PlacementRequest;
use http::StatusCode;

use super::{Asker, body};
use crate::api::SharedApi;
use crate::error::ApiError;

/// Where a workload is, and where it may be.
pub async fn show(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::OK, &api.placement(kind, &name)?))
}

/// Replaces the labels that a node must have.
pub async fn set(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let request: PlacementRequest = body::parse(body, api.config.body_max).await?;
    let report = api.set_selector(&asker, kind, &name, request.node_selector).await?;
    Ok(body::json(StatusCode::OK, &report))
}
