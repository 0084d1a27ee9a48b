//! `GET /api/v1/nodes/{node}/volumes` and `DELETE /api/v1/nodes/{node}/volumes/{volume}`.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use cara_proto::rest::Items;
use http::StatusCode;

use super::{Asker, body};
use crate::api::SharedApi;
use crate::error::ApiError;

/// Volumes that are kept on a node until somebody decides.
pub async fn list(State(api): State<SharedApi>, Path(node): Path<String>) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::OK, &Items { items: api.node_volumes(&node)? }))
}

/// Has one of them removed. 202: its agent is told, and it is off the list when it is gone.
pub async fn remove(
    State(api): State<SharedApi>,
    Path((node, volume)): Path<(String, String)>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    Ok(match api.remove_volume(&asker, &node, &volume).await? {
        Some(removing) => body::json(StatusCode::ACCEPTED, &removing),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}
