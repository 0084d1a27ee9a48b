//! Takes a join token back. Who came in with it stays in.

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
    if state.join_token(&cmd.id).is_none() {
        return Err(Rejected::UnknownToken { token: cmd.id.to_string() });
    }
    state.remove_join_token(&cmd.id);
    Ok(vec![Event::JoinTokenRevoked { token: cmd.id }])
}
