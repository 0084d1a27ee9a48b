//! A server says that it has the next sealing key, and that it has written it down.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::ServerId;
use crate::rejected::Rejected;
use crate::state::State;

/// Records that a server has the next sealing key. Said again it changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HoldSealingKey {
    /// The server.
    #[prost(message, required, tag = "1")]
    pub server: ServerId,
    /// The key's id.
    #[prost(string, tag = "2")]
    pub key_id: String,
}

pub(crate) fn apply(state: &mut State, _: &Context, cmd: HoldSealingKey) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let mut cluster = state.cluster().cloned().ok_or(Rejected::NotInitialised {})?;
    let server = state.server(cmd.server).ok_or_else(|| Rejected::UnknownServer { server: cmd.server.to_string() })?;
    let name = server.name.clone();
    let next = super::check_next_key(&mut cluster, &cmd.key_id)?;
    if next.is_held_by(cmd.server) {
        return Ok(Vec::new());
    }
    next.holders.push(cmd.server);
    state.set_cluster(cluster);
    Ok(vec![Event::SealingKeyHeld { server: cmd.server, name }])
}
