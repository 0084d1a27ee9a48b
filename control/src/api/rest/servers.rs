//! `/api/v1/servers`: the raft members, and what the cluster can still lose.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use cara_core::command::RemoveServer;
use cara_core::{Command, Rejected, ServerId};
use cara_proto::rest::{ClusterView, ServerView};
use http::StatusCode;

use super::{Asker, body};
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::wire::{Warnings, certificate_view};

/// All servers as this one sees them; the leader sees the most.
pub async fn show(State(api): State<SharedApi>) -> Response {
    body::json(StatusCode::OK, &view(&api))
}

fn view(api: &Api) -> ClusterView {
    let status = api.raft.status();
    let leader = status.leader.as_ref().map(|(id, _)| *id);
    let leads = api.leads();
    let last_log = status.last_log.unwrap_or_default();
    let heard = |id: u64| status.heard.get(&id).is_some_and(|ago| *ago <= api.config.election_timeout * 2);
    let alive = |id: u64| id == api.identity.server_id || heard(id);
    let now = api.env.clock.wall_ms();
    let servers: Vec<_> = api.read_local(|state| {
        state
            .servers()
            .map(|server| {
                let id = server.id.0;
                let voter = status.voters.contains_key(&id);
                let own = id == api.identity.server_id;
                let matched =
                    if own { last_log } else { status.matched.get(&id).copied().flatten().unwrap_or_default() };
                let role = match (Some(id) == leader, voter, status.learners.contains_key(&id)) {
                    (true, _, _) => "leader",
                    _ if leads && !alive(id) && (voter || matched > 0) => "unreachable",
                    (_, true, _) => "follower",
                    (_, _, true) => "learner",
                    _ => "joining",
                };
                ServerView {
                    id,
                    name: server.name.clone(),
                    address: server.address.clone(),
                    role: role.into(),
                    voter,
                    matched,
                    lag: if leads || own { last_log.saturating_sub(matched) } else { 0 },
                    feature_level: server.level(),
                    certificate: certificate_view(&server.certificate, Warnings::of(&api.config), now),
                    version: if own { env!("CARGO_PKG_VERSION").into() } else { String::new() },
                }
            })
            .collect()
    });
    let voters = status.voters.len() as u64;
    let voters_alive = status.voters.keys().filter(|id| alive(**id)).count() as u64;
    let quorum = voters / 2 + 1;
    ClusterView {
        cluster_id: api.identity.cluster_id.clone(),
        answered_by: api.identity.name.clone(),
        leader: servers.iter().find(|s| Some(s.id) == leader).map(|s| s.name.clone()).unwrap_or_default(),
        term: status.term,
        voters_alive,
        voters,
        can_lose: voters_alive.saturating_sub(quorum),
        feature_level: api.read_local(|state| state.cluster().map_or(0, |cluster| cluster.feature_level)),
        servers,
    }
}

/// Removes a server; its membership ends right after. Refused when the servers that are left and alive would be no
/// majority.
pub async fn remove(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let id = api.read_local(|state| {
        let found = state.servers().find(|s| s.name == name || s.id.to_string() == name);
        found.map(|s| s.id.0).ok_or_else(|| Rejected::UnknownServer { server: name.clone() })
    });
    let id = match id {
        Ok(id) => id,
        // The first attempt was carried out and its answer was lost.
        Err(_) if api.was_done(&asker, "RemoveServer") => return Ok(StatusCode::NO_CONTENT.into_response()),
        Err(missing) => return Err(missing.into()),
    };
    let cluster = view(&api);
    let left: Vec<_> = cluster.servers.iter().filter(|s| s.voter && s.id != id).collect();
    let alive = left.iter().filter(|s| s.role != "unreachable").count();
    if alive < left.len() / 2 + 1 {
        return Err(ApiError::Bad {
            status: StatusCode::CONFLICT,
            code: "quorum-at-risk",
            detail: format!("without {name} only {alive} of {} voters would be alive, no majority", left.len()),
            hint: "start or replace the servers that are down first",
        });
    }
    let command = Command::RemoveServer(RemoveServer { server: ServerId(id) });
    api.propose(&asker.actor, &asker.request_id, command).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
