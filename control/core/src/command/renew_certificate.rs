//! Gives a node its next certificate. The one before stays good until the new one is seen in use, so a lost answer
//! locks nobody out.

use crate::entry::Context;
use crate::event::Event;
use crate::id::NodeId;
use crate::model::{Certificate, Previous};
use crate::planted::planted;
use crate::rejected::Rejected;
use crate::state::State;

/// Gives a node its next certificate, if nothing changed since the leader looked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RenewCertificate {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// The fingerprint that the asking connection presented.
    #[prost(string, tag = "2")]
    pub presented: String,
    /// The current fingerprint when the leader signed: compare and swap.
    #[prost(string, tag = "3")]
    pub expect_fingerprint: String,
    /// The new one; generation, previous and revocation are set by apply.
    #[prost(message, required, tag = "4")]
    pub certificate: Certificate,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RenewCertificate) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    let Some(current) = &node.certificate else { return Err(Rejected::NodeNotEnrolled { node: name }) };
    if current.revoked_at_ms.is_some() && !planted("revoked-node-renews") {
        return Err(Rejected::CertificateRevoked { node: name });
    }
    if !current.accepts(&cmd.presented, cx.at_ms) && !planted("revoked-node-renews") {
        return Err(Rejected::CertificateUnknown { node: name });
    }
    if current.key_hash == cmd.certificate.key_hash && current.fingerprint != cmd.presented {
        return Ok(Vec::new()); // The answer to this key's renewal was lost: what was recorded is the answer.
    }
    if current.fingerprint != cmd.expect_fingerprint {
        return Err(Rejected::RenewalLost { node: name });
    }
    super::check_certificate("certificate", &cmd.certificate)?;
    super::check_issuer(state, &cmd.certificate, current.newest_trusted(), || format!("node {name}"))?;
    super::check_fingerprint_free(state, &cmd.certificate.fingerprint, Some(&cmd.node), None)?;
    // Whoever presents the one before never used the current one: that one is replaced, the one before keeps its end.
    let previous = if planted("renewal-revokes-old-at-once") {
        None
    } else if current.fingerprint == cmd.presented {
        let (fingerprint, valid_until_ms) = (current.fingerprint.clone(), current.not_after_ms);
        Some(Previous { fingerprint, valid_until_ms, ca: current.ca })
    } else {
        current.previous.clone()
    };
    let (generation, trusts) = (current.generation.next(), current.trusts);
    state.edit_node(cx, &cmd.node, |node| {
        node.certificate = Some(Certificate { generation, previous, trusts, revoked_at_ms: None, ..cmd.certificate });
    });
    Ok(vec![Event::NodeCertificateRenewed { node: cmd.node, name }])
}
