//! What an operator does about a node's identity: brings it back, or shuts it out.

use cara_core::command::{MintReenrollToken, RevokeCertificate};
use cara_core::model::JoinToken as JoinTokenRecord;
use cara_core::{Answer, Command, Rejected, TokenId};
use cara_proto::rest::ReenrollToken;
use cara_transport::JoinToken;

use super::rest::Asker;
use super::secret::shown_before;
use super::{Api, find};
use crate::error::ApiError;
use crate::setup::ca_fingerprint;
use crate::wire::rfc3339;

/// As long as a token for a new machine: long enough to walk there. Not for the caller to choose: whoever has the token has
/// the node's workloads.
const TTL_MS: u64 = 15 * 60 * 1000;

impl Api {
    /// Makes the token with which one node comes back. `secret` is the caller's, so that a retry shows the same one.
    ///
    /// # Errors
    /// 404 without such a node, 409 when it has never joined.
    pub async fn mint_reenroll_token(
        &self,
        asker: &Asker,
        name: &str,
        secret: String,
    ) -> Result<ReenrollToken, ApiError> {
        let node = self.read_local(|state| find::node(state, name).map(|node| node.id.clone()))?;
        let id = TokenId::new(format!("jt-{}", &JoinToken::hash(&format!("id of {secret}"))[..12]));
        let expires_at_ms = self.env.clock.wall_ms() + TTL_MS;
        let hash = JoinToken::hash(&secret);
        let command = MintReenrollToken { id: id.clone(), hash, node: node.clone(), expires_at_ms };
        let reply = self.propose(&asker.actor, &asker.request_id, Command::MintReenrollToken(command)).await?;
        let Answer::Token(minted) = &reply.answer else {
            return Err(ApiError::Internal("the answer to MintReenrollToken names no token".into()));
        };
        if minted.token != id {
            let is_for = |token: &JoinTokenRecord| token.bound_node.as_ref() == Some(&node);
            let is_own = self.read_local(|state| state.join_token(&minted.token).is_some_and(is_for));
            let reused = Rejected::RequestIdReused { request: asker.request_id.clone() };
            return Err(if is_own { shown_before(minted.token.as_str()) } else { reused.into() });
        }
        // A retry shows what the first attempt recorded.
        let (expires_at_ms, ca_pem) = self.read_local(|state| {
            let expires = state.join_token(&id).map_or(expires_at_ms, |token| token.expires_at_ms);
            (expires, state.cluster().map(|c| c.ca_cert_pem.clone()).unwrap_or_default())
        });
        let ca_fingerprint = ca_fingerprint(&ca_pem);
        let servers = self.server_addresses();
        let token = JoinToken { secret, servers, ca_fingerprint: ca_fingerprint.clone() }.to_string();
        Ok(ReenrollToken {
            id: id.to_string(),
            agent_command: format!("cara-agent reenroll --data-dir /var/lib/cara-agent --token {token}"),
            token,
            node_id: node.to_string(),
            expires_at: rfc3339(expires_at_ms),
            ca_fingerprint,
        })
    }

    /// Shuts a node out. Done already is done.
    ///
    /// # Errors
    /// 404 without such a node, 409 when it has never joined.
    pub async fn revoke_certificate(&self, asker: &Asker, name: &str) -> Result<(), ApiError> {
        let node = self.read_local(|state| find::node(state, name).map(|node| node.id.clone()))?;
        let command = Command::RevokeCertificate(RevokeCertificate { node: node.clone() });
        self.propose(&asker.actor, &asker.request_id, command).await?;
        self.sessions.end(&node, "revoked", "the node's certificate was revoked");
        Ok(())
    }
}
