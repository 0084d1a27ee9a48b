//! The string that a new machine is given: secret, where to go, and whom to trust.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

const PREFIX: &str = "cara-join.";

/// A join token. Its text form is shown once and pasted on the new machine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinToken {
    /// The secret; the cluster stores only its hash.
    #[serde(rename = "s")]
    pub secret: String,
    /// `host:port` of all servers when the token was made.
    #[serde(rename = "a")]
    pub servers: Vec<String>,
    /// SHA-256 of the CA certificate, hex.
    #[serde(rename = "f")]
    pub ca_fingerprint: String,
}

/// The text is not a join token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a join token (it must begin with \"cara-join.\" and be pasted whole); make one with: caractrl nodes join-token"
)]
pub struct TokenError;

impl JoinToken {
    /// SHA-256 of a secret, hex: what the cluster stores.
    pub fn hash(secret: &str) -> String {
        crate::fingerprint(secret.as_bytes())
    }
}

impl std::fmt::Display for JoinToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| std::fmt::Error)?;
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }
}

impl std::str::FromStr for JoinToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let body = text.trim().strip_prefix(PREFIX).ok_or(TokenError)?;
        let json = URL_SAFE_NO_PAD.decode(body).map_err(|_| TokenError)?;
        let token: Self = serde_json::from_slice(&json).map_err(|_| TokenError)?;
        if token.servers.is_empty() || token.secret.is_empty() { Err(TokenError) } else { Ok(token) }
    }
}

/// Never prints the secret: tokens end up in logs through `{:?}`.
impl std::fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinToken")
            .field("servers", &self.servers)
            .field("ca_fingerprint", &self.ca_fingerprint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_debug_hides_the_secret() {
        let token =
            JoinToken { secret: "s3cret".into(), servers: vec!["10.0.0.1:7443".into()], ca_fingerprint: "ab".into() };
        let text = token.to_string();
        assert_eq!(text.parse::<JoinToken>(), Ok(token.clone()));
        assert!(!format!("{token:?}").contains("s3cret"));
    }

    #[test]
    fn half_a_token_is_refused() {
        let token =
            JoinToken { secret: "s".into(), servers: vec!["a:1".into()], ca_fingerprint: "f".into() }.to_string();
        assert_eq!(token[..token.len() - 5].parse::<JoinToken>(), Err(TokenError));
        assert_eq!("hello".parse::<JoinToken>(), Err(TokenError));
    }
}
