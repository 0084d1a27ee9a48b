//! `POST /api/v1/{kind}/{name}/suspend`, `/resume`, `/restart`; `GET /api/v1/databases/{name}/connection`.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use cara_core::model::WorkloadKind;
use cara_proto::rest::DatabaseConnection;
use http::StatusCode;

use super::workloads::answer;
use super::{Asker, body};
use crate::api::lifecycle::Change;
use crate::api::{SharedApi, find};
use crate::engines;
use crate::error::ApiError;

async fn change(
    api: &SharedApi,
    asker: &Asker,
    kind: WorkloadKind,
    name: &str,
    change: Change,
) -> Result<Response, ApiError> {
    api.change_run(asker, kind, name, change).await?;
    answer(api, StatusCode::OK, kind, name)
}

/// Stops a workload and keeps it.
pub async fn suspend(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    change(&api, &asker, kind, &name, Change::Suspend).await
}

/// Lets it run again.
pub async fn resume(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    change(&api, &asker, kind, &name, Change::Resume).await
}

/// Stops it and starts it where it is.
pub async fn restart(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    change(&api, &asker, kind, &name, Change::Restart).await
}

/// Where a database is reached, password included; for root tokens only, as the table of routes says.
pub async fn connection(State(api): State<SharedApi>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let url = api.read_local(|state| {
        find::workload(state, WorkloadKind::Database, &name).map(|database| engines::url(state, database))
    })?;
    let url = url.ok_or_else(|| ApiError::Bad {
        status: StatusCode::CONFLICT,
        code: "no-address",
        detail: format!("database {name} is on no node whose address is known"),
        hint: "see where it is with: caractrl get databases",
    })?;
    Ok(body::json(StatusCode::OK, &DatabaseConnection { url }))
}
