//! A machine that comes back as a node which is known, with a token that is bound to it.

use cara_core::command::ReenrollNode;
use cara_core::{Answer, Command, NodeId, Rejected};
use cara_proto::agent::EnrollRequest;
use cara_transport::{JoinToken, Role};

use crate::api::Api;
use crate::error::{ApiError, chain};
use crate::pki::Issued;
use crate::setup::record;

/// The node that the token is bound to, if it is bound to one.
///
/// # Errors
/// When the machine says that it was another node: nothing is spent.
pub fn bound_node(api: &Api, request: &EnrollRequest) -> Result<Option<NodeId>, ApiError> {
    let hash = JoinToken::hash(&request.token);
    let bound = api.read_local(|state| {
        let token = state.join_token_by_hash(&hash)?;
        token.bound_node.clone().map(|node| (token.id.to_string(), node))
    });
    match bound {
        Some((token, bound)) if !request.node_id.is_empty() && request.node_id != bound.as_str() => {
            Err(Rejected::TokenNode { token, bound: bound.to_string(), given: request.node_id.clone() }.into())
        }
        bound => Ok(bound.map(|(_, node)| node)),
    }
}

/// Signs for the node.
pub fn sign(api: &Api, node: &NodeId, csr: &[u8]) -> Result<Issued, ApiError> {
    let life = api.config.node_certificate_life;
    crate::server::open_ca(api)?
        .issue_for(&api.env, &Role::Node(node.to_string()), csr, &[], life)
        .map_err(|error| ApiError::invalid(chain(&error)))
}

/// Records the new certificate and spends the token.
pub async fn record_return(
    api: &Api,
    node: NodeId,
    request: &EnrollRequest,
    issued: &Issued,
) -> Result<Answer, ApiError> {
    let command = ReenrollNode {
        token_hash: JoinToken::hash(&request.token),
        node,
        address: request.address.clone(),
        certificate: record(issued),
        facts: api.known_facts(request.facts.as_ref()),
    };
    Ok(api.propose("join-token", "", Command::ReenrollNode(command)).await?.answer)
}
