//! `POST /api/v1/nodes/{node}/lost`.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use cara_proto::rest::LostRequest;
use http::StatusCode;

use super::{Asker, body};
use crate::api::SharedApi;
use crate::error::ApiError;

/// Gives a node up, or says what that would cost.
pub async fn declare(
    State(api): State<SharedApi>,
    Path(node): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let request: LostRequest = body::parse_or_default(body, api.config.body_max).await?;
    Ok(body::json(StatusCode::OK, &api.lose_node(&asker, &node, &request).await?))
}
