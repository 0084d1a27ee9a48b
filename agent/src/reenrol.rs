//! `cara-agent reenroll`: a known node gets a new identity, because its own is lost, expired or revoked.
//!
//! Beside a running agent or without one: what it gets is written into a file of its own, which the agent takes over before its
//! next connection or at its next start. Asked again with the same token it goes on where it was, with the same key.

use cara_env::Env;
use cara_transport::JoinToken;

use crate::config::Config;
use crate::enrol::{Errand, enrol};
use crate::error::RunError;
use crate::identity::Identity;

/// Gets this machine a new identity with a token from `caractrl nodes reenroll`. Returns the node's id.
///
/// # Errors
/// When the token is refused, is for another node than this machine was, or the folder can't be used. Servers that can't be
/// reached are tried again, without end.
pub async fn reenroll(config: &Config, env: &Env, token: &JoinToken) -> Result<String, RunError> {
    // What can't be read does not matter: it is about to be replaced.
    let known = Identity::load(env, &config.identity_file()).unwrap_or_else(|error| {
        tracing::warn!("{error}");
        None
    });
    let errand = Errand {
        key_file: config.reenrol_key_file(),
        identity_file: config.reenrolled_file(),
        node_id: known.map(|known| known.node_id).unwrap_or_default(),
    };
    let identity = enrol(env, config, token, None, &errand).await?;
    cara_env::point("reenrol.saved", || format!("node={}", config.node_name)).await;
    Ok(identity.node_id)
}
