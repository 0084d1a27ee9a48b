//! Shuts a node out: no certificate of it is accepted, its session ends. Its workloads keep running, unmanaged.

use crate::entry::Context;
use crate::event::Event;
use crate::id::NodeId;
use crate::rejected::Rejected;
use crate::state::State;

/// Shuts a node out until it is enrolled again.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RevokeCertificate {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RevokeCertificate) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    match &node.certificate {
        None => return Err(Rejected::NodeNotEnrolled { node: name }),
        Some(certificate) if certificate.revoked_at_ms.is_some() => return Ok(Vec::new()),
        Some(_) => {}
    }
    let mut events = vec![Event::NodeCertificateRevoked { node: cmd.node.clone(), name }];
    events.extend(state.end_session(cx, &cmd.node, "certificate revoked"));
    state.edit_node(cx, &cmd.node, |node| {
        if let Some(certificate) = &mut node.certificate {
            certificate.revoked_at_ms = Some(cx.at_ms);
            certificate.previous = None;
        }
    });
    Ok(events)
}
