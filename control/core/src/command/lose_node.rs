//! An operator's word that a node never comes back with what it has. Its placements are given up, and its moves end
//! accordingly. Should it come back after all, nothing there is its own any more: it is stopped, and its volumes are kept
//! in quarantine.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{NodeId, WorkloadUid};
use crate::model::{Connection, DrainStatus, Move, MovePhase, MoveStatus};
use crate::rejected::Rejected;
use crate::state::State;

/// Gives a node up that is not online. Said again of a node that is lost already it changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LoseNode {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Why, for people; may be empty.
    #[prost(string, tag = "2")]
    pub reason: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: LoseNode) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    super::check_message("reason", &cmd.reason)?;
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    if node.connection == Connection::Online {
        return Err(Rejected::NodeOnline { node: name });
    }
    let mut events = Vec::new();
    if !node.lost {
        events.push(Event::NodeLost { node: cmd.node.clone(), name: name.clone() });
        state.edit_node(cx, &cmd.node, |node| node.lost = true);
        // The session that is silent must not speak again: only a new one learns what was decided.
        events.extend(state.end_session(cx, &cmd.node, "declared lost"));
    }
    let reason = if cmd.reason.is_empty() { format!("node {name} was declared lost") } else { cmd.reason };
    let moves: Vec<Move> = state.moves_on(&cmd.node).cloned().collect();
    for mv in &moves {
        events.extend(end(state, cx, mv, &cmd.node, &reason));
    }
    let goes_on = |uid: &WorkloadUid| state.running_move(uid).is_some_and(|mv| mv.source == cmd.node);
    let claims: Vec<WorkloadUid> =
        state.placed_on(&cmd.node).map(|workload| workload.uid.clone()).filter(|uid| !goes_on(uid)).collect();
    for uid in &claims {
        events.extend(state.give_up(cx, uid, &reason));
    }
    if let Some(drain) = state.running_drain(&cmd.node).map(|drain| drain.id.clone()) {
        events.extend(state.end_drain(cx, &drain, DrainStatus::Failed, reason));
    }
    Ok(events)
}

/// What becomes of a running move when this end of it is lost.
fn end(state: &mut State, cx: &Context, mv: &Move, node: &NodeId, reason: &str) -> Vec<Event> {
    let is_target = mv.target == *node;
    match mv.phase {
        // Nobody waits for the target's word any more: the source goes on, or runs again.
        MovePhase::Preflight
        | MovePhase::StopSource
        | MovePhase::CopyVolumes
        | MovePhase::Place
        | MovePhase::Verify
            if is_target =>
        {
            let mut events = state.roll_back(cx, &mv.id, reason.to_owned());
            if state.get_move(&mv.id).is_some_and(Move::is_running) {
                events.extend(state.end_rollback(cx, &mv.id));
            }
            events
        }
        MovePhase::Rollback if is_target => state.end_rollback(cx, &mv.id),
        MovePhase::StopOld | MovePhase::Finalize | MovePhase::Done if is_target => {
            state.end_move(cx, &mv.id, MoveStatus::Failed, reason.to_owned())
        }
        // What was on the source is gone, and the target has not taken over.
        MovePhase::Preflight | MovePhase::StopSource | MovePhase::CopyVolumes => {
            state.end_move(cx, &mv.id, MoveStatus::Failed, reason.to_owned())
        }
        MovePhase::Rollback if !mv.target_may_run() => {
            state.end_move(cx, &mv.id, MoveStatus::Failed, reason.to_owned())
        }
        // The target has everything that it needs, or its copy must go first.
        MovePhase::Place | MovePhase::Verify | MovePhase::Rollback => Vec::new(),
        MovePhase::StopOld | MovePhase::Finalize | MovePhase::Done => Vec::new(),
    }
}
