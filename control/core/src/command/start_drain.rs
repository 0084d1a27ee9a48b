//! Begins to empty a node: cordons it and makes the plan, in one entry. The moves follow, one after the other.

use crate::drains;
use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{DrainId, NodeId};
use crate::limits;
use crate::model::{Drain, MoveSettings};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Begins a drain.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StartDrain {
    /// The id of the drain; at most 48 bytes.
    #[prost(message, required, tag = "1")]
    pub id: DrainId,
    /// The node to be emptied.
    #[prost(message, required, tag = "2")]
    pub node: NodeId,
    /// Where everything goes; none = each workload to the node that suits it.
    #[prost(message, optional, tag = "3")]
    pub target: Option<NodeId>,
    /// How patient its moves are; a 0 = as usual.
    #[prost(message, required, tag = "4")]
    pub settings: MoveSettings,
    /// Why, for people; may be empty.
    #[prost(string, tag = "5")]
    pub reason: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: StartDrain) -> Result<Vec<Event>, Rejected> {
    let drain = Drain { started_at_ms: cx.at_ms, ..plan_drain(state, &cmd)? };
    let schedulable = state.node(&cmd.node).is_some_and(|node| node.schedulable);
    let name = drain.node_name.clone();
    let mut events = vec![Event::DrainStarted { id: cmd.id, node: cmd.node.clone(), name }];
    state.put_drain(cx, drain);
    state.forget_old_drains();
    if schedulable {
        let reason = if cmd.reason.is_empty() { "drained".to_owned() } else { cmd.reason };
        events.extend(super::cordon::set(state, cx, &cmd.node, reason, false));
    }
    Ok(events)
}

/// The drain as it would begin now, with what would go and what can't.
///
/// # Errors
/// What the command would be refused with.
pub fn plan_drain(state: &State, cmd: &StartDrain) -> Result<Drain, Rejected> {
    state.check_supports(Feature::Moves)?;
    super::check_id("id", cmd.id.as_str())?;
    super::check_message("reason", &cmd.reason)?;
    if cmd.id.as_str().len() > limits::DRAIN_ID_BYTES_MAX {
        return Err(Problem::new("id", format!("has more than {} bytes", limits::DRAIN_ID_BYTES_MAX)).into());
    }
    let settings = super::move_settings(&cmd.settings)?;
    if state.drain(&cmd.id).is_some() {
        return Err(Rejected::DrainExists { id: cmd.id.to_string() });
    }
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    if let Some(running) = state.running_drain(&cmd.node) {
        return Err(Rejected::DrainRunning { node: name, id: running.id.to_string() });
    }
    if let Some(target) = &cmd.target {
        if state.node(target).is_none() {
            return Err(Rejected::UnknownNode { node: target.to_string() });
        }
        if *target == cmd.node {
            return Err(Problem::new("target", "must be another node than the one that is drained").into());
        }
    }
    let mut drain = Drain {
        id: cmd.id.clone(),
        node: cmd.node.clone(),
        node_name: name,
        target: cmd.target.clone(),
        settings,
        ..Drain::default()
    };
    (drain.plan, drain.blocked) = drains::plan(state, &drain);
    Ok(drain)
}
