//! An operator's word that a volume in quarantine is not needed any more. Here it is only written down: the node's desired
//! set says so from then on, its agent removes the volume, and it is off the record when it is reported no longer.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::NodeId;
use crate::quarantine;
use crate::rejected::Rejected;
use crate::state::State;

/// Removes a volume from a node, for good. Said again of one that is on its way out it changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RemoveVolume {
    /// The node that keeps it.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Its name in that node's container engine.
    #[prost(string, tag = "2")]
    pub engine_name: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RemoveVolume) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Moves)?;
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    state.check_agent(&cmd.node, Feature::Moves)?;
    let name = node.name.clone();
    // A record without a name is one of an older server: it has one as soon as the agent reports.
    let named = node.quarantine.iter().find(|kept| kept.engine_name == cmd.engine_name && !kept.engine_name.is_empty());
    let Some(kept) = named else {
        return Err(Rejected::UnknownVolume { node: name, volume: cmd.engine_name });
    };
    if let Some(reason) = quarantine::needed_by(state, kept) {
        return Err(Rejected::VolumeNeeded { volume: cmd.engine_name, node: name, reason });
    }
    if kept.removal_asked_at_ms.is_some() {
        return Ok(Vec::new());
    }
    state.edit_node(cx, &cmd.node, |node| {
        for kept in node.quarantine.iter_mut().filter(|kept| kept.engine_name == cmd.engine_name) {
            kept.removal_asked_at_ms = Some(cx.at_ms);
        }
    });
    Ok(vec![Event::VolumeRemovalAsked { node: cmd.node, name, volume: cmd.engine_name }])
}
