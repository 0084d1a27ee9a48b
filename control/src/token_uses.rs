//! When API tokens were used last: noted in memory by whichever server lets one in, and written down together every few
//! minutes, so that no request costs an entry in the log.
//!
//! A follower tells the leader what it noted. What is lost with a server is some minutes of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_core::command::{ApiTokenUse, CheckpointTokenUse};
use cara_core::{Command, Feature, TokenId};

use crate::api::actor::Who;
use crate::api::{Api, Leader, SharedApi};
use crate::error::ApiError;

/// A last use is known to this precision after its server is gone; people ask about days.
const CHECKPOINT: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Clone, Copy, Default)]
struct Noted {
    at_ms: u64,
    written_ms: u64,
}

/// What one server noted. At most as many as there are tokens.
#[derive(Debug, Default)]
pub struct TokenUses(Mutex<BTreeMap<TokenId, Noted>>);

impl TokenUses {
    fn noted(&self) -> MutexGuard<'_, BTreeMap<TokenId, Noted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This server let the token in.
    pub fn note(&self, token: &TokenId, at_ms: u64) {
        let mut noted = self.noted();
        match noted.get_mut(token) {
            Some(known) => known.at_ms = known.at_ms.max(at_ms),
            None => drop(noted.insert(token.clone(), Noted { at_ms, written_ms: 0 })),
        }
    }

    /// When this server let it in last; 0 = never.
    pub fn last(&self, token: &TokenId) -> u64 {
        self.noted().get(token).map_or(0, |known| known.at_ms)
    }

    /// What is not written down yet. Tokens that are gone are forgotten.
    fn news(&self, is_there: impl Fn(&TokenId) -> bool) -> Vec<ApiTokenUse> {
        let mut noted = self.noted();
        noted.retain(|token, _| is_there(token));
        let new = noted.iter().filter(|(_, known)| known.at_ms > known.written_ms);
        new.map(|(token, known)| ApiTokenUse { token: token.clone(), at_ms: known.at_ms }).collect()
    }

    fn written(&self, news: &[ApiTokenUse]) {
        let mut noted = self.noted();
        for used in news {
            if let Some(known) = noted.get_mut(&used.token) {
                known.written_ms = known.written_ms.max(used.at_ms);
            }
        }
    }
}

/// Writes down what is new, again and again. Runs until the server stops.
pub async fn run(api: SharedApi) {
    loop {
        api.env.clock.sleep(CHECKPOINT).await;
        if !api.read_local(|state| state.supports(Feature::Lifecycle)) {
            continue;
        }
        let news = api.read_local(|state| api.token_uses.news(|token| state.api_token(token).is_some()));
        if news.is_empty() {
            continue;
        }
        match tell_leader(&api, news.clone()).await {
            Ok(()) => api.token_uses.written(&news),
            Err(error) => tracing::debug!(%error, "last uses of tokens are not written down yet"),
        }
    }
}

async fn tell_leader(api: &SharedApi, used: Vec<ApiTokenUse>) -> Result<(), ApiError> {
    let limit = api.config.request_deadline;
    match api.find_leader(limit).await? {
        Leader::Here => api.record_uses("leader".into(), used).await,
        Leader::At(address) => api.forwarder.note_uses(&address, used, limit).await,
        Leader::None => Err(ApiError::NotLeader { leader: None }),
    }
}

impl Api {
    /// Writes down when tokens were used last. Only the leader can.
    ///
    /// # Errors
    /// When it can't be recorded now.
    pub async fn record_uses(&self, who: Who<'_>, used: Vec<ApiTokenUse>) -> Result<(), ApiError> {
        self.propose(who, "", Command::CheckpointTokenUse(CheckpointTokenUse { used })).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_written_and_no_time_goes_back() {
        let uses = TokenUses::default();
        let all = |_: &TokenId| true;
        uses.note(&"a".into(), 5);
        uses.note(&"a".into(), 3);
        uses.note(&"b".into(), 4);
        let news = uses.news(all);
        assert_eq!(news.iter().map(|used| used.at_ms).collect::<Vec<_>>(), [5, 4]);
        uses.note(&"b".into(), 9);
        uses.written(&news);
        assert_eq!(uses.news(all), [ApiTokenUse { token: "b".into(), at_ms: 9 }], "used again meanwhile");
        assert!(uses.news(|_| false).is_empty() && uses.last(&"a".into()) == 0, "gone tokens are forgotten");
    }
}
