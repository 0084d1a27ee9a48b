//! `PUT /api/v1/apps/{name}/node`, `POST /api/v1/apps/{name}/move-with-volumes`, `GET /api/v1/apps/{name}/moves`: the
//! older verbs.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use cara_proto::rest::{Items, NodeChoice};
use http::StatusCode;

use super::{Asker, body};
use crate::api::SharedApi;
use crate::api::app_moves::AppMoved;
use crate::error::ApiError;

/// Another node for an app without managed volumes.
pub async fn set_node(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    change_node(&api, &asker, &name, body, false).await
}

/// Another node for an app, with all that it has.
pub async fn move_with_volumes(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    change_node(&api, &asker, &name, body, true).await
}

async fn change_node(
    api: &SharedApi,
    asker: &Asker,
    name: &str,
    body: Body,
    with_volumes: bool,
) -> Result<Response, ApiError> {
    let choice: NodeChoice = body::parse(body, api.config.body_max).await?;
    match api.move_app(asker, name, &choice.node_id, with_volumes).await? {
        AppMoved::AtOnce(view) => Ok(body::json(StatusCode::OK, &view)),
        AppMoved::Begun(view) => Ok(body::json(StatusCode::ACCEPTED, &view)),
    }
}

/// The moves of an app, newest first.
pub async fn list(State(api): State<SharedApi>, Path(name): Path<String>) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::OK, &Items { items: api.list_app_moves(&name)? }))
}

/// One move of an app.
pub async fn show(
    State(api): State<SharedApi>,
    Path((name, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    Ok(body::json(StatusCode::OK, &api.show_app_move(&name, &id)?))
}
