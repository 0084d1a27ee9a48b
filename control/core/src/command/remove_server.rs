//! Removes a server's record. Its membership in the raft group is ended before, by the control plane.

use crate::event::Event;
use crate::id::ServerId;
use crate::rejected::Rejected;
use crate::state::State;

/// Removes a server; never the last one. One that is gone already changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RemoveServer {
    /// The server.
    #[prost(message, required, tag = "1")]
    pub server: ServerId,
}

pub(crate) fn apply(state: &mut State, cmd: RemoveServer) -> Result<Vec<Event>, Rejected> {
    let Some(server) = state.server(cmd.server) else { return Ok(Vec::new()) };
    let name = server.name.clone();
    if state.servers().count() == 1 {
        return Err(Rejected::LastServer { server: name });
    }
    state.remove_server(cmd.server);
    Ok(vec![Event::ServerRemoved { server: cmd.server, name }])
}
