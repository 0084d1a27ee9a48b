//! Secrets that are shown once, and once more to whoever lost the answer.

use cara_transport::JoinToken;

use super::Api;

impl Api {
    /// A secret of 256 bits, hex: derived from who asks for what under which request id, so that a retry finds the one that
    /// was recorded instead of making another. At random for a request without an id.
    pub fn secret_for(&self, actor: &str, request_id: &str, what: &str) -> String {
        if request_id.is_empty() {
            return cara_env::hex(&*self.env.rng, 32);
        }
        let key = &self.identity.sealing_key;
        // SHA-256 of key, then of its digest with the request: without the key nobody can derive the secret.
        let inner = JoinToken::hash(&format!("{actor}|{request_id}|{what}"));
        JoinToken::hash(&format!("{}|{inner}|{key}", JoinToken::hash(key)))
    }
}
