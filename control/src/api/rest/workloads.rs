//! `/api/v1/apps`, `/api/v1/projects`, `/api/v1/databases`: one shape, one set of handlers.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use cara_core::command::{ApplyWorkload, DeleteWorkload};
use cara_core::model::{Workload, WorkloadKind};
use cara_core::{Answer, Command, Rejected, Revision, WorkloadUid};
use cara_proto::rest::WorkloadManifest;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asker, body};
use crate::api::find::workload as find;
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::wire::{apply_workload, kind_of, workload_view};

/// The workload as it is now.
pub(super) fn answer(api: &Api, status: StatusCode, kind: WorkloadKind, name: &str) -> Result<Response, ApiError> {
    let (revision, view) = api.read_local(|state| {
        let workload = find(state, kind, name)?;
        Ok::<_, ApiError>((workload.revision.0, workload_view(state, workload)))
    })?;
    Ok(body::object(status, revision, &view))
}

/// What a list can be narrowed by.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(from = "Vec<(String, String)>")]
#[schemars(!from)]
pub struct ListQuery {
    /// Only those in this phase; given several times, those in any of these.
    #[serde(default)]
    phase: Vec<String>,
    /// Only those on this node, by name or id.
    #[serde(default, rename = "nodeRef")]
    node_ref: String,
}

/// A parameter may be given several times.
impl From<Vec<(String, String)>> for ListQuery {
    fn from(pairs: Vec<(String, String)>) -> Self {
        let mut query = Self::default();
        for (name, value) in pairs {
            match name.as_str() {
                "phase" => query.phase.push(value),
                "nodeRef" => query.node_ref = value,
                _ => {}
            }
        }
        query
    }
}

fn listed(api: &Api, query: &ListQuery, wanted: impl Fn(&Workload) -> bool) -> (u64, Vec<WorkloadManifest>) {
    let (revision, mut items) = api.read_local(|state| {
        let items = state
            .workloads()
            .filter(|w| wanted(w) && (query.phase.is_empty() || query.phase.iter().any(|phase| w.phase() == phase)))
            .map(|w| workload_view(state, w))
            .filter(|view| query.node_ref.is_empty() || placed_on(view, &query.node_ref));
        (state.revision().0, items.collect::<Vec<_>>())
    });
    items.sort_by(|a, b| (&a.kind, &a.metadata.name).cmp(&(&b.kind, &b.metadata.name)));
    (revision, items)
}

fn placed_on(view: &WorkloadManifest, node: &str) -> bool {
    let placement = view.status.as_ref().and_then(|status| status.placement.as_ref());
    placement.is_some_and(|p| p.node_name == node || p.node_id == node)
}

/// All workloads of all kinds within reach.
pub async fn list_all(
    State(api): State<SharedApi>,
    Query(query): Query<ListQuery>,
    Extension(asker): Extension<Asker>,
) -> Response {
    let (revision, items) = listed(&api, &query, |workload| asker.actor.reach.workload(&workload.name));
    body::list("Workload", revision, items)
}

/// All workloads of one kind within reach, by name.
pub async fn list(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Query(query): Query<ListQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let reach = &asker.actor.reach;
    let (revision, items) = listed(&api, &query, |w| w.kind == kind && reach.workload(&w.name));
    Ok(body::list(kind.as_str(), revision, items))
}

/// One workload.
pub async fn show(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    answer(&api, StatusCode::OK, kind, &name)
}

async fn read_manifest(api: &Api, asker: &Asker, kind: WorkloadKind, body: Body) -> Result<ApplyWorkload, ApiError> {
    let manifest: WorkloadManifest = body::parse(body, api.config.body_max).await?;
    // Before it is looked up: whether a database out of reach exists is not theirs to know.
    if !manifest.spec.databases.iter().all(|name| asker.actor.reach.workload(name)) {
        return Err(ApiError::OutOfScope);
    }
    let uid = WorkloadUid::new(format!("wl_{}", cara_env::hex(&*api.env.rng, 12)));
    api.read_local(|state| apply_workload(state, kind, manifest, uid, &*api.env.rng))
}

/// Names a field by the path under which the user wrote it: an App's container stands directly in its spec.
fn as_written(kind: WorkloadKind, error: ApiError) -> ApiError {
    match error {
        ApiError::Rejected(Rejected::InvalidField { field, problem }) => {
            let field = field.replace("spec.selector", "spec.nodeSelector");
            let field = if kind == WorkloadKind::Project { field } else { field.replace("spec.services[0]", "spec") };
            ApiError::Rejected(Rejected::InvalidField { field, problem })
        }
        other => other,
    }
}

/// Creates a workload; it is placed by the same entry.
pub async fn create(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let command =
        ApplyWorkload { expect_revision: Some(Revision(0)), ..read_manifest(&api, &asker, kind, body).await? };
    let name = command.name.clone();
    match api.propose(&asker.actor, &asker.request_id, Command::ApplyWorkload(command)).await {
        Ok(_) => answer(&api, StatusCode::CREATED, kind, &name),
        Err(ApiError::Rejected(Rejected::RevisionMismatch { .. })) => Err(ApiError::Bad {
            status: StatusCode::CONFLICT,
            code: "already-exists",
            detail: format!("{} {name} exists already", kind.as_str()),
            hint: "use PUT to change it; caractrl apply does that by itself",
        }),
        Err(error) => Err(as_written(kind, error)),
    }
}

/// Replaces labels, annotations and spec.
pub async fn replace(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let mut command = read_manifest(&api, &asker, kind, body).await?;
    if command.name != name {
        return Err(ApiError::invalid(format!("metadata.name: is {:?}, the path says {name:?}", command.name)));
    }
    api.read_local(|state| find(state, kind, &name).map(drop))?;
    command.expect_revision = asker.if_match.map(Revision).or(command.expect_revision);
    let proposed = api.propose(&asker.actor, &asker.request_id, Command::ApplyWorkload(command)).await;
    proposed.map_err(|error| as_written(kind, error))?;
    answer(&api, StatusCode::OK, kind, &name)
}

/// The planted answer of a follower that doesn't bother the leader with what isn't here.
pub(super) fn known_missing(api: &Api, path: &str) -> Option<ApiError> {
    let (path, name) = path.strip_prefix("/api/v1/")?.split_once('/')?;
    let kind = kind_of(path).filter(|_| !api.leads() && !name.contains('/'))?;
    api.read_local(|state| find(state, kind, name).map(drop)).err()
}

/// How to delete.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct DeleteQuery {
    /// At once, whether or not its node has removed it.
    #[serde(default)]
    force: bool,
}

/// 204 when it is gone, 202 while its node removes it.
pub async fn delete(
    State(api): State<SharedApi>,
    Extension(kind): Extension<WorkloadKind>,
    Path(name): Path<String>,
    Query(query): Query<DeleteQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let uid = match api.read_local(|state| find(state, kind, &name).map(|workload| workload.uid.clone())) {
        Ok(uid) => uid,
        // The first attempt was carried out and its answer was lost.
        Err(_) if api.was_done(&asker, "DeleteWorkload") => return Ok(StatusCode::NO_CONTENT.into_response()),
        Err(missing) => return Err(missing),
    };
    let command = DeleteWorkload { uid, force: query.force, expect_revision: asker.if_match.map(Revision) };
    let reply = api.propose(&asker.actor, &asker.request_id, Command::DeleteWorkload(command)).await?;
    match reply.answer {
        Answer::Workload(workload) if !workload.gone => answer(&api, StatusCode::ACCEPTED, kind, &name),
        _ => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}
