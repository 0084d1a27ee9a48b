//! `/api/v1/nodes`.

use std::collections::BTreeMap;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use cara_core::command::{ApplyNode, Cordon, DeleteNode, SetAccepts, SetLabels, Uncordon};
use cara_core::model::Node;
use cara_core::{Command, NodeId, Rejected, Revision, State as Domain};
use cara_proto::rest::{Accepts, ConnectionEvent, NodeManifest};
use http::{HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asker, body};
use crate::api::find::node as find;
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::wire::{Around, Warnings, millis, node_manifest, node_view, rfc3339};

/// The most events that a node keeps, and so the most that can be asked for.
const EVENTS_MAX: usize = 200;
const EVENTS_DEFAULT: usize = 50;

/// A node as this server sees it.
pub(super) fn view(api: &Api, state: &Domain, node: &Node) -> NodeManifest {
    let now_ms = api.env.clock.wall_ms();
    let heard = api.sessions.last_heard(&node.id).map(|mono| now_ms.saturating_sub(api.mono_ms().saturating_sub(mono)));
    let around = Around {
        now_ms,
        last_heard_ms: heard,
        link: api.sessions.link(&node.id),
        timeout_ms: millis(api.config.agent_timeout()),
        pending_stale_ms: millis(api.config.pending_stale_after),
        agent_min_version: api.config.agent_min_version.as_ref(),
        warnings: Warnings::of(&api.config),
    };
    node_view(state, node, &around)
}

/// A node as it is now.
pub(super) fn answer(api: &Api, status: StatusCode, name: &str) -> Result<Response, ApiError> {
    let (revision, view) = api.read_local(|state| {
        let node = find(state, name)?;
        Ok::<_, ApiError>((node.revision.0, view(api, state, node)))
    })?;
    Ok(body::object(status, revision, &view))
}

/// Total of what a list was cut from.
const TOTAL: HeaderName = HeaderName::from_static("cara-total");

/// What `GET /nodes` can be narrowed by.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct ListQuery {
    /// Part of the name.
    #[serde(default)]
    q: String,
    /// At most so many; all when it is left out.
    limit: Option<usize>,
    /// After so many.
    #[serde(default)]
    offset: usize,
}

/// Nodes within reach by name: all, or a page of those whose names have `q` in them. The header `cara-total` counts all pages.
pub async fn list(
    State(api): State<SharedApi>,
    Query(query): Query<ListQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    if query.limit == Some(0) {
        return Err(ApiError::invalid("limit: is 0, must be at least 1"));
    }
    let (revision, total, items) = api.read_local(|state| {
        let wanted = |node: &&Node| node.name.contains(&query.q) && asker.actor.reach.node(&node.id);
        let mut nodes: Vec<&Node> = state.nodes().filter(wanted).collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let page = nodes.iter().skip(query.offset).take(query.limit.unwrap_or(usize::MAX));
        (state.revision().0, nodes.len(), page.map(|node| view(&api, state, node)).collect::<Vec<_>>())
    });
    let mut response = body::list("Node", revision, items);
    response.headers_mut().insert(TOTAL, HeaderValue::from(total));
    Ok(response)
}

/// One node, by name or id.
pub async fn show(State(api): State<SharedApi>, Path(name): Path<String>) -> Result<Response, ApiError> {
    answer(&api, StatusCode::OK, &name)
}

/// Describes a node before its machine arrives.
pub async fn create(
    State(api): State<SharedApi>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let command = ApplyNode { expect_revision: Some(Revision(0)), ..read_manifest(&api, body).await? };
    let name = command.name.clone();
    match api.propose(&asker.actor, &asker.request_id, Command::ApplyNode(command)).await {
        Ok(_) => answer(&api, StatusCode::CREATED, &name),
        Err(ApiError::Rejected(Rejected::RevisionMismatch { .. })) => Err(Rejected::NodeNameTaken { name }.into()),
        Err(error) => Err(error),
    }
}

/// Replaces labels, annotations and spec.
pub async fn replace(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let mut command = read_manifest(&api, body).await?;
    let known = api.read_local(|state| find(state, &name).map(|node| node.name.clone()))?;
    if command.name != known {
        return Err(ApiError::invalid(format!("metadata.name: is {:?}, the path says {known:?}", command.name)));
    }
    command.expect_revision = asker.if_match.map(Revision).or(command.expect_revision);
    api.propose(&asker.actor, &asker.request_id, Command::ApplyNode(command)).await?;
    answer(&api, StatusCode::OK, &known)
}

async fn read_manifest(api: &Api, body: Body) -> Result<ApplyNode, ApiError> {
    let manifest: NodeManifest = body::parse(body, api.config.body_max).await?;
    node_manifest(manifest, NodeId::new(format!("nd_{}", cara_env::hex(&*api.env.rng, 12))))
}

/// Removes a node on which nothing is placed.
pub async fn delete(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let node = match id_of(&api, &name) {
        Ok(node) => node,
        // The first attempt was carried out and its answer was lost.
        Err(_) if api.was_done(&asker, "DeleteNode") => return Ok(StatusCode::NO_CONTENT.into_response()),
        Err(missing) => return Err(missing),
    };
    api.propose(&asker.actor, &asker.request_id, Command::DeleteNode(DeleteNode { node: node.clone() })).await?;
    api.sessions.end(&node, "deleted", "the node was deleted");
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) fn id_of(api: &Api, name: &str) -> Result<NodeId, ApiError> {
    api.read_local(|state| find(state, name).map(|node| node.id.clone()))
}

pub(super) async fn change(api: &Api, asker: &Asker, name: &str, command: Command) -> Result<Response, ApiError> {
    api.propose(&asker.actor, &asker.request_id, command).await?;
    answer(api, StatusCode::OK, name)
}

/// No new placements.
pub async fn cordon(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let node = id_of(&api, &name)?;
    let reason = format!("cordoned by {}", asker.actor);
    change(&api, &asker, &name, Command::Cordon(Cordon { node, reason })).await
}

/// Placements again.
pub async fn uncordon(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let node = id_of(&api, &name)?;
    let reason = format!("uncordoned by {}", asker.actor);
    change(&api, &asker, &name, Command::Uncordon(Uncordon { node, reason })).await
}

/// The node's labels.
pub async fn labels(State(api): State<SharedApi>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let labels = api.read_local(|state| find(state, &name).map(|node| node.labels.clone()))?;
    Ok(body::json(StatusCode::OK, &labels))
}

/// Replaces all labels.
pub async fn set_labels(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let labels: BTreeMap<String, String> = body::parse(body, api.config.body_max).await?;
    let node = id_of(&api, &name)?;
    let expect_revision = asker.if_match.map(Revision);
    change(&api, &asker, &name, Command::SetLabels(SetLabels { node, labels, expect_revision })).await
}

/// Sets which kinds the node takes.
pub async fn set_accepts(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
    body: Body,
) -> Result<Response, ApiError> {
    let accepts: Accepts = body::parse(body, api.config.body_max).await?;
    let node = id_of(&api, &name)?;
    let command = SetAccepts { node, app: accepts.app, database: accepts.database, build: accepts.build };
    change(&api, &asker, &name, Command::SetAccepts(command)).await
}

/// How many events to show.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct EventsQuery {
    /// At most so many; 50 by default.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

/// The node's connection events, newest first.
pub async fn events(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Query(query): Query<EventsQuery>,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(EVENTS_DEFAULT);
    if !(1..=EVENTS_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("limit: is {limit}, must be 1 to {EVENTS_MAX}")));
    }
    let (revision, items) = api.read_local(|state| {
        let node = find(state, &name)?;
        let events = state.node_events(&node.id).iter().rev().take(limit).map(|event| ConnectionEvent {
            at: rfc3339(event.at_ms),
            from: event.from.clone(),
            to: event.to.clone(),
            reason: event.reason.clone(),
        });
        Ok::<_, ApiError>((state.revision().0, events.collect::<Vec<_>>()))
    })?;
    Ok(body::list("ConnectionEvent", revision, items))
}
