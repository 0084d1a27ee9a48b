//! Who asked to be let in with which join token, and what came of it, as agents reach their chaos points.

use std::collections::BTreeMap;
use std::time::Duration;

use cara_checker::Finding;
use cara_checker::tokens::{self, Answer, Attempt, Token};
use cara_core::State;
use cara_netsim::Reached;

/// The code with which a spent token is refused.
const SPENT: &str = "join-token-spent";
/// So much of a token's hash tells it from all others of a run; agents say no more of it.
const HASH_PART: usize = 16;

/// Attempts so far, and the tokens that there were.
#[derive(Debug, Default)]
pub struct Tokens {
    attempts: Vec<Attempt>,
    /// The last attempt of each machine.
    last: BTreeMap<String, usize>,
    /// Ids by the begin of their hashes.
    issued: BTreeMap<String, String>,
}

impl Tokens {
    /// A chaos point was reached.
    pub fn reached(&mut self, at: Duration, reached: &Reached) {
        let of = |key: &str| reached.word(key).unwrap_or_default().to_owned();
        match reached.point {
            "enrol.sent" => {
                let (token, key) = (of("token"), of("key"));
                self.last.insert(reached.host.clone(), self.attempts.len());
                self.attempts.push(Attempt { start: at, end: None, token, key, answer: Answer::Unknown });
            }
            "enrol.answered" => self.answered(at, &reached.host, Answer::Admitted(of("certificate"))),
            "enrol.refused" if of("code") == SPENT => self.answered(at, &reached.host, Answer::Spent),
            "enrol.refused" => self.answered(at, &reached.host, Answer::Refused),
            _ => {}
        }
    }

    fn answered(&mut self, at: Duration, host: &str, answer: Answer) {
        if let Some(attempt) = self.last.get(host).and_then(|last| self.attempts.get_mut(*last)) {
            (attempt.end, attempt.answer) = (Some(at), answer);
        }
    }

    /// Tokens expire and are forgotten: each state adds what it has.
    pub fn look(&mut self, state: &State) {
        for token in state.join_tokens() {
            self.issued.entry(token.hash.chars().take(HASH_PART).collect()).or_insert_with(|| token.id.to_string());
        }
    }

    /// What the attempts contradict.
    pub fn judge(&self) -> Vec<Finding> {
        let named = |hash: &str| self.issued.get(hash).cloned().unwrap_or_else(|| hash.to_owned());
        let attempts: Vec<Attempt> =
            self.attempts.iter().map(|attempt| Attempt { token: named(&attempt.token), ..attempt.clone() }).collect();
        let tokens: Vec<Token> = self.issued.values().map(|id| Token { id: id.clone(), is_reusable: false }).collect();
        tokens::check(&tokens, &attempts)
    }
}
