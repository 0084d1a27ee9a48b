//! Begins a move of a workload to another node. Target, room and lock are decided here, on one revision.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{MoveId, NodeId, WorkloadUid};
use crate::limits;
use crate::model::{Connection, MoveSettings, Workload};
use crate::rejected::Rejected;
use crate::schedule::{self, NoNode, Purpose};
use crate::state::{MoveStart, State};

/// Begins a move.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StartMove {
    /// The id of the move.
    #[prost(message, required, tag = "1")]
    pub id: MoveId,
    /// The workload.
    #[prost(message, required, tag = "2")]
    pub uid: WorkloadUid,
    /// Where to; it must be able to take it now. None = one is chosen.
    #[prost(message, optional, tag = "3")]
    pub target: Option<NodeId>,
    /// How patient it is; a 0 = as usual.
    #[prost(message, required, tag = "4")]
    pub settings: MoveSettings,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: StartMove) -> Result<Vec<Event>, Rejected> {
    let (target, settings) = check(state, &cmd)?;
    let auto_target = cmd.target.is_none();
    let start = MoveStart { id: cmd.id, uid: cmd.uid, target, auto_target, drain: None, settings };
    Ok(state.begin_move(cx, start))
}

/// Where the move would go, if it began now.
///
/// # Errors
/// What the command would be refused with.
pub fn plan_move(state: &State, cmd: &StartMove) -> Result<NodeId, Rejected> {
    check(state, cmd).map(|(target, _)| target)
}

fn check(state: &State, cmd: &StartMove) -> Result<(NodeId, MoveSettings), Rejected> {
    state.check_supports(Feature::Moves)?;
    super::check_id("id", cmd.id.as_str())?;
    let settings = super::move_settings(&cmd.settings)?;
    if state.get_move(&cmd.id).is_some() {
        return Err(Rejected::MoveExists { id: cmd.id.to_string() });
    }
    let workload =
        state.workload(&cmd.uid).ok_or_else(|| Rejected::UnknownWorkload { workload: cmd.uid.to_string() })?;
    if workload.deleting {
        return Err(Rejected::WorkloadDeleting { name: workload.name.clone() });
    }
    super::check_not_moving(state, workload)?;
    let Some(placement) = &workload.placement else {
        return Err(Rejected::NotPlaced { workload: workload.name.clone() });
    };
    if state.running_moves().count() >= limits::MOVES_RUNNING_MAX {
        return Err(Rejected::TooMany { what: "running moves".into(), limit: limits::MOVES_RUNNING_MAX.to_string() });
    }
    let source = state.node(&placement.node);
    if workload.is_stateful() && source.is_none_or(|node| node.connection != Connection::Online) {
        let node = source.map_or(placement.node.to_string(), |node| node.name.clone());
        return Err(Rejected::SourceOffline { workload: workload.name.clone(), node });
    }
    state.check_agent(&placement.node, Feature::Moves)?;
    let target = target(state, workload, &placement.node, cmd.target.as_ref())?;
    Ok((target, settings))
}

fn target(state: &State, workload: &Workload, source: &NodeId, wanted: Option<&NodeId>) -> Result<NodeId, Rejected> {
    let purpose = Purpose::Move { source };
    let Some(wanted) = wanted else {
        return schedule::choose(state, workload, purpose).map_err(|none| Rejected::NoEligibleNode {
            workload: workload.name.clone(),
            reasons: reasons(state, &none),
        });
    };
    let node = state.node(wanted).ok_or_else(|| Rejected::UnknownNode { node: wanted.to_string() })?;
    if wanted == source {
        return Err(Rejected::MoveSameNode { workload: workload.name.clone(), node: node.name.clone() });
    }
    match schedule::unfit(state, node, workload, purpose) {
        Some(unfit) => Err(Rejected::NodeNotEligible { node: node.name.clone(), reason: unfit.to_string() }),
        None => Ok(wanted.clone()),
    }
}

/// Why no node was taken, in one line.
fn reasons(state: &State, none: &NoNode) -> String {
    let named = none.rejections.iter().map(|rejection| {
        let name = state.node(&rejection.node).map_or(rejection.node.as_str(), |node| node.name.as_str());
        format!("{name} {}", rejection.reason)
    });
    named.collect::<Vec<_>>().join(", ")
}
