//! Drains as the API shows them.

use cara_core::model::{Blocked, Drain, Move, MoveStatus};
use cara_core::{State, WorkloadUid};
use cara_proto::rest::{BlockedItem, DrainItem, DrainPlan, DrainView, Rejection};

use super::{kind_word, node_name, rfc3339};

/// A drain, running or over.
pub fn drain_view(state: &State, drain: &Drain) -> DrainView {
    let DrainPlan { plan, blocked } = drain_plan(state, drain);
    // A move that is not kept any more did succeed, or the drain had ended with it.
    let gone = drain.moves.iter().filter(|id| state.get_move(id).is_none_or(|mv| mv.status == MoveStatus::Succeeded));
    DrainView {
        id: drain.id.to_string(),
        node: drain.node.to_string(),
        node_name: drain.node_name.clone(),
        target: drain.target.as_ref().map(ToString::to_string),
        target_name: drain.target.as_ref().map(|id| node_name(state, id)),
        status: drain.status.as_str().into(),
        error: Some(drain.error.clone()).filter(|error| !error.is_empty()),
        done: gone.count() as u64,
        total: (plan.len() + blocked.len()) as u64,
        plan,
        blocked,
        moves: drain.moves.iter().map(ToString::to_string).collect(),
        started_at: rfc3339(drain.started_at_ms),
        finished_at: drain.finished_at_ms.map(rfc3339),
    }
}

/// What a drain moves, and what it can't.
pub fn drain_plan(state: &State, drain: &Drain) -> DrainPlan {
    DrainPlan {
        plan: drain.plan.iter().map(|uid| item(state, drain, uid)).collect(),
        blocked: drain.blocked.iter().map(|blocked| blocked_item(state, blocked)).collect(),
    }
}

fn item(state: &State, drain: &Drain, uid: &WorkloadUid) -> DrainItem {
    let mv: Option<&Move> = drain.moves.iter().filter_map(|id| state.get_move(id)).find(|mv| mv.workload == *uid);
    let target = mv.map(|mv| &mv.target).or(drain.target.as_ref());
    let workload = state.workload(uid);
    let kind = workload.map(|workload| workload.kind).or(mv.map(|mv| mv.kind));
    let name = workload.map(|workload| workload.name.clone()).or(mv.map(|mv| mv.name.clone()));
    DrainItem {
        kind: kind.map(kind_word).unwrap_or_default().into(),
        name: name.unwrap_or_else(|| uid.to_string()),
        to: target.map(ToString::to_string),
        to_node: target.map(|id| node_name(state, id)),
    }
}

fn blocked_item(state: &State, blocked: &Blocked) -> BlockedItem {
    let reason =
        |r: &cara_core::model::Rejection| Rejection { node: node_name(state, &r.node), reason: r.reason.clone() };
    BlockedItem {
        kind: kind_word(blocked.kind).into(),
        name: blocked.name.clone(),
        reason: blocked.reason.clone(),
        reasons: blocked.rejections.iter().map(reason).collect(),
    }
}
