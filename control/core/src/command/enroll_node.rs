//! Lets a machine in as a node: spends the token and records node and certificate in one entry. A refused enrolment
//! spends nothing. The same key asking again gets the node and the certificate that it got before.

use crate::entry::Context;
use crate::event::Event;
use crate::id::{Generation, NodeId};
use crate::limits;
use crate::model::{Certificate, Connection, Facts, Node, TokenPurpose, TokenUse};
use crate::planted::planted;
use crate::rejected::Rejected;
use crate::state::State;

/// Lets a machine in. The leader has checked the CSR and signed the certificate; until this is applied nobody trusts it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct EnrollNode {
    /// SHA-256 of the join token, lowercase hex.
    #[prost(string, tag = "1")]
    pub token_hash: String,
    /// The id if the node turns out to be new; the certificate's URI SAN has the id of the node that is known by this
    /// name otherwise.
    #[prost(message, required, tag = "2")]
    pub node: NodeId,
    /// The name that the machine asks for.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Where the machine is reached; may be empty.
    #[prost(string, tag = "4")]
    pub address: String,
    /// Its certificate; generation, previous and revocation are set by apply.
    #[prost(message, required, tag = "5")]
    pub certificate: Certificate,
    /// What the agent says about the machine.
    #[prost(message, required, tag = "6")]
    pub facts: Facts,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: EnrollNode) -> Result<Vec<Event>, Rejected> {
    let known = super::came_in(state, &cmd.token_hash, &cmd.certificate.key_hash);
    if known.is_some_and(|node| node.name == cmd.name) {
        return Ok(Vec::new());
    }
    let purpose = match state.join_token_by_hash(&cmd.token_hash) {
        Some(token) if token.purpose == TokenPurpose::Reenroll => TokenPurpose::Reenroll,
        Some(_) | None => TokenPurpose::Node,
    };
    let used =
        TokenUse { at_ms: cx.at_ms, node: cmd.node.clone(), key_hash: cmd.certificate.key_hash.clone(), server: 0 };
    let checked = super::check_join_token(state, cx, &cmd.token_hash, purpose, &cmd.name);
    if planted("token-spent-before-validation")
        && let Some(token) = state.join_token_by_hash(&cmd.token_hash).map(|token| token.id.clone())
    {
        state.edit_join_token(cx, &token, |t| t.used = Some(used.clone()));
    }
    let token = checked?;
    super::check_token_node(state, &token, &cmd.node)?;
    super::check_node_name(state, "name", &cmd.name)?;
    super::check_text("address", &cmd.address, 0)?;
    super::check_certificate("certificate", &cmd.certificate)?;
    super::check_issuer(state, &cmd.certificate, cmd.certificate.newest_trusted(), || format!("node {}", cmd.name))?;
    super::check_fingerprint_free(state, &cmd.certificate.fingerprint, None, None)?;
    let known = state.node_by_name(&cmd.name);
    match known {
        Some(node) if node.certificate.is_some() && purpose != TokenPurpose::Reenroll => {
            return Err(Rejected::NodeNameTaken { name: cmd.name });
        }
        // The id is in the certificate: a node declared meanwhile has another one, and the agent asks again.
        Some(node) if node.id != cmd.node => return Err(Rejected::NodeIdTaken { node: node.id.to_string() }),
        Some(_) => {}
        None if purpose == TokenPurpose::Reenroll => return Err(Rejected::UnknownNode { node: cmd.name }),
        None => check_new(state, &cmd.node)?,
    }
    let mut events = vec![Event::JoinTokenSpent { token: token.clone() }];
    if known.is_none() {
        events.push(Event::NodeAdded { node: cmd.node.clone(), name: cmd.name.clone() });
        state.put_node(cx, new_node(cx, cmd.node.clone(), cmd.name.clone()));
    }
    state.edit_join_token(cx, &token, |t| t.used = Some(used));
    // Enrolled again: whoever still holds the old key is out at once.
    events.extend(state.end_session(cx, &cmd.node, "enrolled again"));
    let last = state.node(&cmd.node).and_then(|n| n.certificate.as_ref()).map_or(Generation(0), |c| c.generation);
    let event = Event::NodeEnrolled { node: cmd.node.clone(), name: cmd.name };
    state.edit_node(cx, &cmd.node, |node| {
        node.address = cmd.address;
        node.facts = cmd.facts;
        super::clip_facts(&mut node.facts);
        node.joined_at_ms = cx.at_ms;
        node.enrolled_with = Some(token);
        node.certificate =
            Some(Certificate { generation: last.next(), previous: None, revoked_at_ms: None, ..cmd.certificate });
        node.instance.clear();
        node.clone_seen = None;
    });
    events.push(event);
    Ok(events)
}

fn check_new(state: &State, id: &NodeId) -> Result<(), Rejected> {
    super::check_id("node", id.as_str())?;
    if state.node(id).is_some() {
        return Err(Rejected::NodeIdTaken { node: id.to_string() });
    }
    if state.nodes().len() >= limits::NODES_MAX {
        return Err(Rejected::TooMany { what: "nodes".into(), limit: limits::NODES_MAX.to_string() });
    }
    Ok(())
}

/// A node as it is before anybody described it: takes apps and databases, builds only when somebody says so.
pub(super) fn new_node(cx: &Context, id: NodeId, name: String) -> Node {
    Node {
        id,
        name,
        connection: Connection::Pending,
        schedulable: true,
        accepts_app: true,
        accepts_database: true,
        created_at_ms: cx.at_ms,
        ..Node::default()
    }
}
