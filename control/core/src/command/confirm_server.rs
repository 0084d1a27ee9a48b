//! A server says that it uses its certificate: the one before is not needed any more.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::ServerId;
use crate::rejected::Rejected;
use crate::state::State;

/// Drops the certificate before, if the server uses the current one. Else it changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConfirmServer {
    /// The server.
    #[prost(message, required, tag = "1")]
    pub server: ServerId,
    /// The certificate that it has on disk and uses.
    #[prost(string, tag = "2")]
    pub fingerprint: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: ConfirmServer) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let server = state.server(cmd.server).cloned();
    let mut server = server.ok_or_else(|| Rejected::UnknownServer { server: cmd.server.to_string() })?;
    if server.certificate.fingerprint != cmd.fingerprint || server.certificate.previous.is_none() {
        return Ok(Vec::new());
    }
    server.certificate.previous = None;
    let event = Event::ServerUpdated { server: server.id, name: server.name.clone() };
    state.put_server(cx, server);
    Ok(vec![event])
}
