//! `/api/v1/cluster/sealing-key`: the key under which secrets are sealed, and its replacement.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use cara_proto::rest::{SealingKeyRotateRequest, SealingKeyView};
use http::StatusCode;

use super::{Asker, body};
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::wire::rfc3339;

/// The key's id, and how far its replacement is.
pub async fn show(State(api): State<SharedApi>) -> Response {
    body::json(StatusCode::OK, &view(&api))
}

fn view(api: &Api) -> SealingKeyView {
    let key_id = api.sealing_key_id();
    api.read_local(|state| {
        let next = state.cluster().and_then(|cluster| cluster.next_sealing_key.as_ref());
        SealingKeyView {
            key_id,
            phase: if next.is_some() { "distribute" } else { "stable" }.into(),
            next_key_id: next.map(|next| next.key_id.clone()).unwrap_or_default(),
            started_at: next.map(|next| rfc3339(next.started_at_ms)).unwrap_or_default(),
            held_back: state.lacking_next_key().map(|server| server.name.clone()).collect(),
        }
    })
}

/// Begins to replace the key.
pub async fn rotate(
    State(api): State<SharedApi>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let request: SealingKeyRotateRequest = body::parse_or_default(body, api.config.body_max).await?;
    api.rotate_sealing_key(&asker, request.anew).await?;
    Ok(body::json(StatusCode::ACCEPTED, &view(&api)))
}
