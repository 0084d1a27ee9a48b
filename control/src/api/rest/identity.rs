//! `POST /api/v1/nodes/{node}/reenroll-token` and `POST /api/v1/nodes/{node}/revoke-cert`.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;

use super::{Asker, body, nodes};
use crate::api::SharedApi;
use crate::error::ApiError;

/// Makes the token with which this node, and no other, comes back.
pub async fn reenroll_token(
    State(api): State<SharedApi>,
    Path(node): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let secret = api.secret_for(&asker.actor.name, &asker.request_id, &format!("reenroll {node}"))?;
    Ok(body::json(StatusCode::CREATED, &api.mint_reenroll_token(&asker, &node, secret).await?))
}

/// Shuts this node out until it is enrolled again.
pub async fn revoke_cert(
    State(api): State<SharedApi>,
    Path(node): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    api.revoke_certificate(&asker, &node).await?;
    nodes::answer(&api, StatusCode::OK, &node)
}
