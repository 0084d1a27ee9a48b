//! Secrets that are shown once, and once more to whoever lost the answer.

use cara_core::{Answer, TokenId};
use cara_transport::JoinToken;
use http::StatusCode;

use super::Api;
use crate::error::ApiError;
use crate::identity::to_hex;
use crate::server::sealing_key;

impl Api {
    /// A secret of 256 bits, hex: derived from who asks for what under which request id, so that a retry finds the one that
    /// was recorded instead of making another. At random for a request without an id.
    ///
    /// # Errors
    /// When this server doesn't have the key that it is derived with.
    pub fn secret_for(&self, actor: &str, request_id: &str, what: &str) -> Result<String, ApiError> {
        if request_id.is_empty() {
            return Ok(cara_env::hex(&*self.env.rng, 32));
        }
        let key = to_hex(&sealing_key(self, &self.sealed_under())?);
        // SHA-256 of key, then of its digest with the request: without the key nobody can derive the secret.
        let inner = JoinToken::hash(&format!("{actor}|{request_id}|{what}"));
        Ok(JoinToken::hash(&format!("{}|{inner}|{key}", JoinToken::hash(&key))))
    }
}

/// Refuses a retry that was answered with another token than the one that it would show.
///
/// # Errors
/// `token-shown-before`.
pub(super) fn check_shown(answer: &Answer, id: &TokenId) -> Result<(), ApiError> {
    match answer {
        Answer::Token(made) if made.token != *id => Err(shown_before(made.token.as_str())),
        _ => Ok(()),
    }
}

/// What a retry is told whose first attempt was before the sealing key was replaced: its secret can't be derived again, and
/// another one would not be what was recorded.
pub(super) fn shown_before(token: &str) -> ApiError {
    ApiError::Bad {
        status: StatusCode::CONFLICT,
        code: "token-shown-before",
        detail: format!("token {token} was made by this request, and its text can't be shown again"),
        hint: "revoke it, and make another under a new Idempotency-Key",
    }
}
