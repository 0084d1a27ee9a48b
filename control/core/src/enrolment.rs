//! What the log would say to a machine that asks to be let in, before it asks: nothing is spent, and what is wrong is told
//! while the join token can still be used.
//!
//! It is a look at one revision: the entry itself checks all of it again, and only that counts.

use crate::command::{check_join_token, check_node_name};
use crate::entry::Context;
use crate::model::TokenPurpose;
use crate::rejected::Rejected;
use crate::state::State;

/// Would a machine of this name and key be let in with the token of this hash at this time?
///
/// # Errors
/// The refusal that the entry would get.
pub fn preflight(state: &State, token_hash: &str, key_hash: &str, name: &str, at_ms: u64) -> Result<(), Rejected> {
    let token = state.join_token_by_hash(token_hash).ok_or(Rejected::TokenUnknown {})?;
    if token.used.as_ref().is_some_and(|used| used.key_hash == key_hash) {
        return Ok(()); // The same machine asks again, after an answer that was lost.
    }
    let cx = Context { at_ms, revision: state.revision() };
    if let Some(bound) = &token.bound_node {
        // It goes by the node that the token is for, whatever the machine calls itself.
        let node = state.node(bound).ok_or_else(|| Rejected::UnknownNode { node: bound.to_string() })?;
        check_join_token(state, &cx, token_hash, TokenPurpose::Reenroll, &node.name)?;
        return match node.certificate {
            Some(_) => Ok(()),
            None => Err(Rejected::NodeNotEnrolled { node: node.name.clone() }),
        };
    }
    let purpose = match token.purpose {
        TokenPurpose::Reenroll => TokenPurpose::Reenroll,
        TokenPurpose::Node | TokenPurpose::Server => TokenPurpose::Node,
    };
    check_join_token(state, &cx, token_hash, purpose, name)?;
    check_node_name(state, "name", name)?;
    match state.node_by_name(name) {
        Some(node) if node.certificate.is_some() && purpose != TokenPurpose::Reenroll => {
            Err(Rejected::NodeNameTaken { name: name.to_owned() })
        }
        None if purpose == TokenPurpose::Reenroll => Err(Rejected::UnknownNode { node: name.to_owned() }),
        Some(_) | None => Ok(()),
    }
}
