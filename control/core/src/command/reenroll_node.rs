//! Lets a machine back in as a node that is known: under a new key, with the node's id, labels, placements and history.
//!
//! The token is spent in the entry that records the certificate; a refused attempt spends nothing, and the same key asking
//! again gets what it got before. Whatever was accepted up to now is not any more: the certificate before, a revocation,
//! the session, and what was known of the process that had it.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::NodeId;
use crate::model::{Certificate, Facts, TokenPurpose, TokenUse};
use crate::rejected::Rejected;
use crate::state::State;

/// Lets a machine back in. The leader has checked the CSR and signed the certificate; until this is applied nobody trusts it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ReenrollNode {
    /// SHA-256 of the token, lowercase hex.
    #[prost(string, tag = "1")]
    pub token_hash: String,
    /// The node that the certificate names.
    #[prost(message, required, tag = "2")]
    pub node: NodeId,
    /// Where the machine is reached; empty leaves it.
    #[prost(string, tag = "3")]
    pub address: String,
    /// Its certificate; generation, previous and revocation are set by apply.
    #[prost(message, required, tag = "4")]
    pub certificate: Certificate,
    /// What the agent says about the machine; empty leaves it.
    #[prost(message, required, tag = "5")]
    pub facts: Facts,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: ReenrollNode) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let node = state.node(&cmd.node).ok_or_else(|| Rejected::UnknownNode { node: cmd.node.to_string() })?;
    let name = node.name.clone();
    let known = super::came_in(state, &cmd.token_hash, &cmd.certificate.key_hash);
    if known.is_some_and(|known| known.id == cmd.node) {
        return Ok(Vec::new());
    }
    let Some(last) = node.certificate.as_ref().map(|certificate| certificate.generation) else {
        return Err(Rejected::NodeNotEnrolled { node: name });
    };
    let token = super::check_join_token(state, cx, &cmd.token_hash, TokenPurpose::Reenroll, &name)?;
    super::check_token_node(state, &token, &cmd.node)?;
    super::check_text("address", &cmd.address, 0)?;
    super::check_certificate("certificate", &cmd.certificate)?;
    super::check_issuer(state, &cmd.certificate, cmd.certificate.newest_trusted(), || format!("node {}", cmd.node))?;
    super::check_fingerprint_free(state, &cmd.certificate.fingerprint, Some(&cmd.node), None)?;
    let used =
        TokenUse { at_ms: cx.at_ms, node: cmd.node.clone(), key_hash: cmd.certificate.key_hash.clone(), server: 0 };
    let mut events = vec![Event::JoinTokenSpent { token: token.clone() }];
    state.edit_join_token(cx, &token, |t| t.used = Some(used));
    events.extend(state.end_session(cx, &cmd.node, "enrolled again"));
    events.push(Event::NodeEnrolled { node: cmd.node.clone(), name });
    state.edit_node(cx, &cmd.node, |node| {
        if !cmd.address.is_empty() {
            node.address = cmd.address;
        }
        if cmd.facts != Facts::default() {
            node.facts = cmd.facts;
            super::clip_facts(&mut node.facts);
        }
        node.enrolled_with = Some(token);
        node.certificate =
            Some(Certificate { generation: last.next(), previous: None, revoked_at_ms: None, ..cmd.certificate });
        node.instance.clear();
        node.clone_seen = None;
    });
    Ok(events)
}
