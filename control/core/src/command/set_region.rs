//! Says where a node stands, in the operator's own words. Moves nothing: whoever wants to place by it uses a label.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::NodeId;
use crate::rejected::Rejected;
use crate::state::State;

/// Replaces a node's region.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SetRegion {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// At most 512 bytes; empty = none.
    #[prost(string, tag = "2")]
    pub region: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: SetRegion) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    super::check_text("region", &cmd.region, 0)?;
    if node.region == cmd.region {
        return Ok(Vec::new());
    }
    let event = Event::NodeUpdated { node: cmd.node.clone(), name: node.name.clone() };
    state.edit_node(cx, &cmd.node, |node| node.region = cmd.region);
    Ok(vec![event])
}
