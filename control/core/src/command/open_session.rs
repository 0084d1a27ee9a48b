//! A node's agent connected; a node that was declared lost is back, and finds that nothing is its own any more.
//!
//! The new epoch is decided here, on one revision; the session before is over.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{Epoch, NodeId, ServerId};
use crate::model::{Connection, Facts, Session};
use crate::planted::planted;
use crate::rejected::Rejected;
use crate::state::State;

/// Opens a session; the reply has its epoch. Sent twice it opens two, and the first is over: harmless.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OpenSession {
    /// The node, from the certificate.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// The certificate that was presented.
    #[prost(string, tag = "2")]
    pub fingerprint: String,
    /// The server that holds the stream.
    #[prost(message, required, tag = "3")]
    pub server: ServerId,
    /// What the agent says about the machine.
    #[prost(message, required, tag = "4")]
    pub facts: Facts,
    /// Where the machine is reached; empty leaves it.
    #[prost(string, tag = "5")]
    pub address: String,
    /// The highest feature level that the agent supports, at least 1; 0 only from a release that did not ask.
    #[prost(uint32, tag = "6")]
    pub feature_level: u32,
    /// The agent's process; empty when it did not say.
    #[prost(string, tag = "10")]
    pub instance: String,
    /// The process that had the last session, when the leader judged that this one may take over.
    #[prost(string, tag = "11")]
    pub expect_instance: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: OpenSession) -> Result<Vec<Event>, Rejected> {
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    let Some(certificate) = &node.certificate else { return Err(Rejected::NodeNotEnrolled { node: name }) };
    if certificate.revoked_at_ms.is_some() {
        return Err(Rejected::CertificateRevoked { node: name });
    }
    if !certificate.accepts(&cmd.fingerprint, cx.at_ms) {
        return Err(Rejected::CertificateUnknown { node: name });
    }
    if state.server(cmd.server).is_none() {
        return Err(Rejected::UnknownServer { server: cmd.server.to_string() });
    }
    super::check_text("address", &cmd.address, 0)?;
    super::check_text("instance", &cmd.instance, 0)?;
    let tells_instances = state.supports(Feature::Lifecycle);
    if tells_instances && node.instance != cmd.expect_instance {
        return Err(Rejected::InstanceChanged { node: name });
    }
    let mut epoch = node.last_epoch.next();
    if planted("epoch-restarts") {
        epoch = node.session.as_ref().map_or(Epoch(1), |session| session.epoch.next());
    }
    let from = node.connection;
    state.edit_node(cx, &cmd.node, |node| {
        node.session =
            Some(Session { epoch, server: cmd.server, opened_at_ms: cx.at_ms, fingerprint: cmd.fingerprint.clone() });
        node.last_epoch = epoch;
        node.last_seen_ms = node.last_seen_ms.max(cx.at_ms);
        node.facts = cmd.facts;
        super::clip_facts(&mut node.facts);
        node.lost = false;
        node.feature_level = cmd.feature_level;
        if tells_instances {
            node.instance = cmd.instance;
        }
        if !cmd.address.is_empty() {
            node.address = cmd.address;
        }
        if let Some(certificate) = &mut node.certificate
            && certificate.fingerprint == cmd.fingerprint
        {
            certificate.previous = None; // The current one was seen in use.
        }
    });
    let mut events = vec![Event::NodeSessionOpened { node: cmd.node.clone(), name, epoch, server: cmd.server }];
    if from != Connection::Online {
        events.extend(state.set_connection(cx, &cmd.node, Connection::Online, "session opened"));
    }
    Ok(events)
}
