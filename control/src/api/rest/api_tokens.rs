//! `/api/v1/tokens`: who may call the API.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use cara_proto::rest::{ApiTokenRequest, MintedApiToken};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asker, body};
use crate::api::SharedApi;
use crate::error::ApiError;

/// Makes a token; its text is in this answer and nowhere else.
pub async fn create(
    State(api): State<SharedApi>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let request: ApiTokenRequest = body::parse(body, api.config.body_max).await?;
    let made = api.create_token(&asker, request).await?;
    Ok(body::json(StatusCode::CREATED, &MintedApiToken { token: made.text, info: made.view }))
}

/// All tokens, without their texts.
pub async fn list(State(api): State<SharedApi>) -> Response {
    let (revision, items) = api.list_tokens();
    body::list("ApiToken", revision, items)
}

/// One token, without its text.
pub async fn show(State(api): State<SharedApi>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let (revision, view) = api.show_token(&id)?;
    Ok(body::object(StatusCode::OK, revision, &view))
}

/// How to revoke.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct RevokeQuery {
    /// Drops its record as well.
    #[serde(default)]
    forget: bool,
}

/// Takes a token back.
pub async fn revoke(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    Query(query): Query<RevokeQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    api.revoke_token(&asker, &id, query.forget).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
