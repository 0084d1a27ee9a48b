//! Writes down when API tokens were used last, a batch every few minutes, so that an operator sees which are in use.
//!
//! No event and no new revision of the token: nothing about it changed.

use crate::event::Event;
use crate::feature::Feature;
use crate::id::TokenId;
use crate::limits;
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// A batch of last uses. Tokens that are gone are passed over; no time goes back.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CheckpointTokenUse {
    /// At most 1000.
    #[prost(message, repeated, tag = "1")]
    pub used: Vec<ApiTokenUse>,
}

/// When one token was used last.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ApiTokenUse {
    /// The token.
    #[prost(message, required, tag = "1")]
    pub token: TokenId,
    /// In ms since 1970, by the clock of the server that let it in.
    #[prost(uint64, tag = "2")]
    pub at_ms: u64,
}

pub(crate) fn apply(state: &mut State, cmd: CheckpointTokenUse) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    if cmd.used.len() > limits::API_TOKENS_MAX {
        let problem = format!("has {} tokens, at most {}", cmd.used.len(), limits::API_TOKENS_MAX);
        return Err(Problem::new("used", problem).into());
    }
    for used in cmd.used {
        state.raise_last_used(&used.token, used.at_ms);
    }
    Ok(Vec::new())
}
