//! `/api/v1/nodes/{node}/health` and `/api/v1/nodes/{node}/region`.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use cara_core::Command;
use cara_core::command::SetRegion;
use cara_proto::rest::{NodeHealth, NodeRegion};
use http::StatusCode;

use super::nodes::{change, id_of, view};
use super::{Asker, body};
use crate::api::SharedApi;
use crate::api::find::node as find;
use crate::error::ApiError;

/// The node's conditions, and whether it has ever come.
pub async fn show(State(api): State<SharedApi>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let node = api.read_local(|state| find(state, &name).map(|node| view(&api, state, node)))?;
    let status = node.status.unwrap_or_default();
    let health = NodeHealth {
        node: node.metadata.name,
        connection: status.connection,
        never_connected: status.never_connected,
        conditions: status.conditions,
    };
    Ok(body::json(StatusCode::OK, &health))
}

/// Says where the node stands.
pub async fn set_region(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let NodeRegion { region } = body::parse(body, api.config.body_max).await?;
    let node = id_of(&api, &name)?;
    change(&api, &asker, &name, Command::SetRegion(SetRegion { node, region })).await
}
