//! A machine says that it trusts the newest CA, and that it has written that down.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{NodeId, ServerId};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Records what a machine trusts. Never less than before: it was written down there.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TrustCa {
    /// The server; 0 when it is a node.
    #[prost(message, required, tag = "1")]
    pub server: ServerId,
    /// The node; empty when it is a server.
    #[prost(message, required, tag = "2")]
    pub node: NodeId,
    /// The number of the newest CA that it trusts.
    #[prost(uint64, tag = "3")]
    pub ca: u64,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: TrustCa) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let newest = state.cluster().map_or(1, |cluster| cluster.newest_ca());
    if cmd.ca == 0 || cmd.ca > newest {
        return Err(Problem::new("ca", format!("must be 1 to {newest}")).into());
    }
    if cmd.server.0 > 0 {
        let server = state.server(cmd.server).cloned();
        let mut server = server.ok_or_else(|| Rejected::UnknownServer { server: cmd.server.to_string() })?;
        if server.certificate.newest_trusted() >= cmd.ca {
            return Ok(Vec::new());
        }
        server.certificate.trusts = cmd.ca;
        let event = Event::ServerUpdated { server: server.id, name: server.name.clone() };
        state.put_server(cx, server);
        return Ok(vec![event]);
    }
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    let Some(certificate) = &node.certificate else { return Err(Rejected::NodeNotEnrolled { node: name }) };
    if certificate.revoked_at_ms.is_some() {
        return Err(Rejected::CertificateRevoked { node: name });
    }
    if certificate.newest_trusted() >= cmd.ca {
        return Ok(Vec::new());
    }
    state.edit_node(cx, &cmd.node, |node| {
        if let Some(certificate) = &mut node.certificate {
            certificate.trusts = cmd.ca;
        }
    });
    Ok(vec![Event::NodeUpdated { node: cmd.node, name }])
}
