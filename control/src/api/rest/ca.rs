//! `/api/v1/cluster/ca`: the CA, and its replacement.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use cara_proto::rest::{CaHeldBack, CaRotateRequest, CaView};
use http::StatusCode;

use super::{Asker, body};
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::setup::ca_fingerprint;
use crate::wire::rfc3339;

/// The CA and how far its replacement is.
pub async fn show(State(api): State<SharedApi>) -> Response {
    body::json(StatusCode::OK, &view(&api))
}

fn view(api: &Api) -> CaView {
    api.read_local(|state| {
        let Some(cluster) = state.cluster() else { return CaView::default() };
        let next = cluster.rotation.as_ref();
        let held_back = state.held_back().into_iter().map(|of| CaHeldBack {
            kind: of.kind.as_str().into(),
            name: of.name,
            lack: of.lack.as_str().into(),
        });
        CaView {
            number: cluster.ca_number(),
            fingerprint: ca_fingerprint(&cluster.ca_cert_pem),
            phase: next.map_or("stable", |next| next.phase.as_str()).into(),
            next_fingerprint: next.map(|next| ca_fingerprint(&next.certificate_pem)).unwrap_or_default(),
            started_at: next.map(|next| rfc3339(next.started_at_ms)).unwrap_or_default(),
            former_fingerprints: cluster.former_cas.iter().map(|ca| ca_fingerprint(&ca.certificate_pem)).collect(),
            held_back: held_back.collect(),
        }
    })
}

/// Begins to replace the CA, or goes on without the nodes that hold it back.
pub async fn rotate(
    State(api): State<SharedApi>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let request: CaRotateRequest = body::parse_or_default(body, api.config.body_max).await?;
    if request.force {
        api.force_ca(&asker).await?;
    } else {
        api.rotate_ca(&asker).await?;
    }
    Ok(body::json(StatusCode::ACCEPTED, &view(&api)))
}
