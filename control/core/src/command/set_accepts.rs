//! Sets which kinds of workloads a node takes. Moves nothing.

use crate::entry::Context;
use crate::event::Event;
use crate::id::NodeId;
use crate::rejected::Rejected;
use crate::state::State;

/// Replaces the three flags.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SetAccepts {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Takes apps and projects.
    #[prost(bool, tag = "2")]
    pub app: bool,
    /// Takes databases.
    #[prost(bool, tag = "3")]
    pub database: bool,
    /// Takes builds.
    #[prost(bool, tag = "4")]
    pub build: bool,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: SetAccepts) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    if (node.accepts_app, node.accepts_database, node.accepts_build) == (cmd.app, cmd.database, cmd.build) {
        return Ok(Vec::new());
    }
    let event = Event::NodeUpdated { node: cmd.node.clone(), name: node.name.clone() };
    state.edit_node(cx, &cmd.node, |node| {
        node.accepts_app = cmd.app;
        node.accepts_database = cmd.database;
        node.accepts_build = cmd.build;
    });
    Ok(vec![event])
}
