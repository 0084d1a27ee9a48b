//! Takes a join token back that nobody has used. One that was used stays on record, so that it is never used again.

use crate::event::Event;
use crate::id::TokenId;
use crate::rejected::Rejected;
use crate::state::State;

/// Takes a join token back.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RevokeJoinToken {
    /// The token.
    #[prost(message, required, tag = "1")]
    pub id: TokenId,
}

pub(crate) fn apply(state: &mut State, cmd: RevokeJoinToken) -> Result<Vec<Event>, Rejected> {
    let token = state.join_token(&cmd.id).ok_or_else(|| Rejected::UnknownToken { token: cmd.id.to_string() })?;
    if let Some(used) = &token.used {
        let who = if used.server > 0 { format!("server {}", used.server) } else { format!("node {}", used.node) };
        return Err(Rejected::TokenUsed { token: cmd.id.to_string(), who });
    }
    state.remove_join_token(&cmd.id);
    Ok(vec![Event::JoinTokenRevoked { token: cmd.id }])
}
