//! Moves: begin one, say what one would do, show, list, take back.

use cara_core::command::{CancelMove, StartMove, plan_move};
use cara_core::model::{Connection, Move, MoveSettings, MoveStatus, VolumeKind, Workload, WorkloadKind};
use cara_core::{Command, MoveId, Purpose, Rejected, State, limits, unfit};
use cara_proto::rest::{MovePlan, MoveRequest, MoveView, Rejection};
use http::StatusCode;

use super::reach::Reach;
use super::rest::Asker;
use super::{Api, find};
use crate::error::ApiError;
use crate::wire::{kind_word, move_view, node_name, phases_of};

/// Which moves a list shows; empty fields don't narrow it.
#[derive(Debug, Default)]
pub struct MoveFilter {
    /// Of this kind.
    pub kind: Option<WorkloadKind>,
    /// Of the workload with this name.
    pub resource: String,
    /// Of this drain.
    pub drain_id: String,
    /// With this status.
    pub status: Option<MoveStatus>,
    /// At most so many.
    pub limit: usize,
    /// Of workloads that are within it.
    pub reach: Reach,
}

impl MoveFilter {
    fn takes(&self, mv: &Move) -> bool {
        self.kind.is_none_or(|kind| mv.kind == kind)
            && (self.resource.is_empty() || mv.name == self.resource)
            && (self.drain_id.is_empty() || mv.drain.as_ref().is_some_and(|drain| drain.as_str() == self.drain_id))
            && self.status.is_none_or(|status| mv.status == status)
            && self.reach.workload(&mv.name)
    }
}

impl Api {
    /// Begins a move.
    ///
    /// # Errors
    /// 400 when the target can't take it, 404 when something that is named isn't there, 409 when it can't move now.
    pub async fn start_move(
        &self,
        asker: &Asker,
        kind: WorkloadKind,
        name: &str,
        request: &MoveRequest,
    ) -> Result<MoveView, ApiError> {
        let id = MoveId::new(find::new_id("mv", asker, &*self.env.rng));
        if self.was_done(asker, "StartMove")
            && let Ok(view) = self.show_move(id.as_str())
        {
            return Ok(view); // The answer to the first attempt was lost; what it named may be elsewhere by now.
        }
        let command = self.read_local(|state| start(state, id.clone(), kind, name, request))?;
        let proposed = self.propose(&asker.actor, &asker.request_id, Command::StartMove(command)).await;
        proposed.map_err(|error| refused(error, &request.node_id))?;
        self.show_move(id.as_str())
    }

    /// What a move would do, on the state as it is now. Changes nothing.
    ///
    /// # Errors
    /// As [`Api::start_move`].
    pub fn plan_move(&self, kind: WorkloadKind, name: &str, request: &MoveRequest) -> Result<MovePlan, ApiError> {
        self.read_local(|state| {
            let command = start(state, MoveId::from("plan"), kind, name, request)?;
            let target = plan_move(state, &command).map_err(|error| refused(error.into(), &request.node_id))?;
            let workload = find::workload(state, kind, name)?;
            let source = workload.placement.as_ref().map(|placement| placement.node.clone()).unwrap_or_default();
            let last = last_copy(state, workload);
            let stateful = workload.is_stateful();
            let others = state.nodes().filter(|node| node.id != target && node.id != source);
            let rejected = others.filter_map(|node| {
                let reason = unfit(state, node, workload, Purpose::Move { source: &source })?.to_string();
                Some(Rejection { node: node.name.clone(), reason })
            });
            Ok(MovePlan {
                kind: kind_word(kind).into(),
                name: name.to_owned(),
                from_node: node_name(state, &source),
                to_node: node_name(state, &target),
                auto_target: command.target.is_none(),
                stateful,
                phases: phases_of(stateful).map(str::to_owned).collect(),
                bytes: last.map(copied_bytes).filter(|_| workload.spec.has_state()),
                predicted_downtime_ms: if stateful { last.and_then(|mv| mv.downtime_ms) } else { Some(0) },
                rejected: rejected.take(limits::REJECTIONS_KEPT).collect(),
                warnings: warnings(state, workload),
            })
        })
    }

    /// One move.
    ///
    /// # Errors
    /// 404 when it isn't kept.
    pub fn show_move(&self, id: &str) -> Result<MoveView, ApiError> {
        let id = MoveId::from(id);
        self.read_local(|state| {
            let mv = state.get_move(&id).ok_or_else(|| Rejected::UnknownMove { id: id.to_string() })?;
            Ok(move_view(state, mv, self.transfers.of(&id).as_ref()))
        })
    }

    /// Moves, newest first.
    pub fn list_moves(&self, filter: &MoveFilter) -> Vec<MoveView> {
        self.read_local(|state| {
            let found = newest(state, |mv| filter.takes(mv));
            let view = |mv: &Move| move_view(state, mv, self.transfers.of(&mv.id).as_ref());
            found.into_iter().take(filter.limit).map(view).collect()
        })
    }

    /// Takes a move back.
    ///
    /// # Errors
    /// 404 when it isn't kept, 409 when it is over or the target has the workload already.
    pub async fn cancel_move(&self, asker: &Asker, id: &str) -> Result<MoveView, ApiError> {
        let command = CancelMove { id: MoveId::from(id), reason: format!("by {}", asker.actor) };
        self.propose(&asker.actor, &asker.request_id, Command::CancelMove(command)).await?;
        self.show_move(id)
    }
}

/// The moves that `wanted` takes, newest first.
pub(super) fn newest(state: &State, wanted: impl Fn(&Move) -> bool) -> Vec<&Move> {
    let mut found: Vec<&Move> = state.moves().filter(|mv| wanted(mv)).collect();
    found.sort_by(|a, b| (b.started_at_ms, &b.id).cmp(&(a.started_at_ms, &a.id)));
    found
}

fn start(
    state: &State,
    id: MoveId,
    kind: WorkloadKind,
    name: &str,
    request: &MoveRequest,
) -> Result<StartMove, ApiError> {
    let uid = find::workload(state, kind, name)?.uid.clone();
    let target = find::chosen_node(state, &request.node_id)?;
    Ok(StartMove { id, uid, target, settings: settings(request)? })
}

/// How long the old copy of what has no state goes on after the switch, unless the caller says otherwise: enough for a
/// client that asks again every second or two.
const SHUTDOWN_DELAY_MS: u64 = 5_000;

/// What a caller gets who says nothing.
pub(super) fn usual_settings() -> MoveSettings {
    MoveSettings { shutdown_delay_ms: SHUTDOWN_DELAY_MS, ..MoveSettings::default() }
}

fn settings(request: &MoveRequest) -> Result<MoveSettings, ApiError> {
    let seconds_max = limits::MOVE_PATIENCE_MS_MAX / 1_000;
    let ms = |name: &str, seconds: Option<u64>| match seconds {
        None => Ok(0),
        Some(seconds) if (1..=seconds_max).contains(&seconds) => Ok(seconds * 1_000),
        Some(seconds) => Err(ApiError::invalid(format!("{name}: is {seconds}, must be 1 to {seconds_max}"))),
    };
    let attempts_max = match request.attempts {
        None => 0,
        Some(attempts) if (1..=limits::MOVE_ATTEMPTS_MAX).contains(&attempts) => attempts,
        Some(attempts) => {
            let rule = format!("attempts: is {attempts}, must be 1 to {}", limits::MOVE_ATTEMPTS_MAX);
            return Err(ApiError::invalid(rule));
        }
    };
    let delay_ms = |seconds| if seconds == 0 { Ok(0) } else { ms("shutdown_delay_s", Some(seconds)) };
    Ok(MoveSettings {
        verify_timeout_ms: ms("verify_timeout_s", request.verify_timeout_s)?,
        attempts_max,
        interval_ms: ms("interval_s", request.interval_s)?,
        shutdown_delay_ms: request.shutdown_delay_s.map_or(Ok(SHUTDOWN_DELAY_MS), delay_ms)?,
    })
}

/// A target that can't take it is a wrong request, whoever chose it; the code is that of the refusal.
pub(super) fn refused(error: ApiError, wanted: &str) -> ApiError {
    let bad = |code, detail, hint| ApiError::Bad { status: StatusCode::BAD_REQUEST, code, detail, hint };
    match error {
        ApiError::Rejected(rejected @ (Rejected::MoveSameNode { .. } | Rejected::NoEligibleNode { .. })) => {
            bad(rejected.code(), rejected.to_string(), rejected.hint())
        }
        ApiError::Rejected(rejected @ Rejected::NodeNotEligible { .. }) if !wanted.is_empty() => {
            bad(rejected.code(), rejected.to_string(), rejected.hint())
        }
        other => other,
    }
}

/// The last move of this workload that came to an end with its volumes: what the next one has to do is much like it.
fn last_copy<'a>(state: &'a State, workload: &Workload) -> Option<&'a Move> {
    newest(state, |mv| mv.workload == workload.uid && mv.status == MoveStatus::Succeeded && mv.stateful)
        .first()
        .copied()
}

fn copied_bytes(mv: &Move) -> u64 {
    let transfers = mv.target_status.as_ref().map(|status| status.transfers.as_slice()).unwrap_or_default();
    transfers.iter().fold(0, |sum, volume| sum.saturating_add(volume.bytes_total))
}

fn warnings(state: &State, workload: &Workload) -> Vec<String> {
    let mut warnings = Vec::new();
    if workload.is_stateful() && !workload.spec.suspended {
        warnings.push("it does not run from the stop of the old copy until the new one works".to_owned());
    }
    if workload.spec.suspended {
        warnings.push("it is suspended: it is moved and not started".to_owned());
    }
    for volume in workload.spec.volumes.iter().filter(|volume| volume.kind == VolumeKind::Ephemeral) {
        warnings.push(format!("volume {} is Ephemeral: its content stays behind and is lost", volume.name));
    }
    if workload.kind == WorkloadKind::Database {
        let uses = state.workloads().filter(|other| other.spec.dependencies.contains(&workload.name));
        warnings.extend(uses.map(|other| format!("{} uses it, and is restarted once it has moved", other.name)));
    }
    let source = workload.placement.as_ref().and_then(|placement| state.node(&placement.node));
    if let Some(source) = source.filter(|node| node.connection != Connection::Online) {
        warnings.push(format!("node {} is offline: its old copy goes when it is back", source.name));
    }
    warnings
}
