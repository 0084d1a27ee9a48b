//! A root token for an operator who has none left: `cara-server recover-token`, on a server's own machine.
//!
//! ```text
//! recover-token -> (this server's certificate) -> the server that runs here -> the leader -> an entry -> shown once
//! ```
//! Whoever can read the server's folder could do anything with the cluster anyway; so its certificate is the credential,
//! and the token is recorded and audited like any other. It takes a running cluster: the database belongs to the server that
//! has it open, and a token that only one server knew would be no token.

use std::path::Path;
use std::time::Duration;

use cara_env::Env;
use cara_proto::cluster::{RecoverTokenRequest, RecoverTokenResponse, cluster_client::ClusterClient};
use cara_transport::{Tls, TlsError};

use crate::identity::{IdentityError, ServerIdentity};
use crate::server::tls_identity;
use crate::setup::ca_fingerprint;

/// One attempt: longer than a server waits for a leader.
const ATTEMPT: Duration = Duration::from_secs(15);
/// After this no other attempt begins: an election is over long before.
const PATIENCE: Duration = Duration::from_secs(9);
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// What the operator is told, once.
#[derive(Clone, serde::Serialize)]
pub struct Recovered {
    /// The root token.
    pub token: String,
    /// Its id, for the list and the audit.
    pub token_id: String,
    /// What it is called.
    pub name: String,
    /// SHA-256 of the CA certificate.
    pub ca_fingerprint: String,
    /// This server's URL.
    pub server: String,
}

/// Never prints the token.
impl std::fmt::Debug for Recovered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recovered").field("token_id", &self.token_id).finish_non_exhaustive()
    }
}

/// Why no token was made.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The data folder.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The certificate in it.
    #[error("the certificate in the data folder can't be used")]
    Tls(#[source] TlsError),
    /// The server isn't there.
    #[error(
        "the server of this folder can't be reached at {address}: {reason}; start it with cara-server run, or say with \
         --address where it listens"
    )]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// Why not.
        reason: String,
    },
    /// It, or the cluster, says no.
    #[error("no token was made: {message}{}", if .hint.is_empty() { String::new() } else { format!("; {}", .hint) })]
    Refused {
        /// Why.
        message: String,
        /// The next step.
        hint: String,
    },
}

/// Makes a root token with the identity in `data_dir`. `address` = where its server listens, when that isn't what the
/// folder says.
///
/// # Errors
/// When the folder isn't a server's, its server doesn't run, or the cluster has no leader.
pub async fn recover_token(env: &Env, data_dir: &Path, address: Option<String>) -> Result<Recovered, RecoverError> {
    let identity = ServerIdentity::load(env, data_dir)?;
    let tls = Tls::new(env, &tls_identity(&identity)).map_err(RecoverError::Tls)?;
    let address = address.unwrap_or_else(|| here(&identity.listen));
    let request = RecoverTokenRequest { request_id: cara_env::hex(&*env.rng, 16), handed_on: false };
    let until = env.clock.monotonic() + PATIENCE;
    let made = loop {
        match ask(env, &address, &tls, request.clone()).await {
            Ok(made) => break made,
            Err((error, is_final)) if is_final || env.clock.monotonic() >= until => return Err(error),
            Err(_) => env.clock.sleep(PAUSE).await,
        }
    };
    let RecoverTokenResponse { token, token_id, name } = made;
    let ca_fingerprint = ca_fingerprint(&identity.ca_pem);
    Ok(Recovered { token, token_id, name, ca_fingerprint, server: format!("https://{}", identity.advertise) })
}

/// An address to dial on this machine.
fn here(listen: &str) -> String {
    match listen.rsplit_once(':') {
        Some(("0.0.0.0", port)) => format!("127.0.0.1:{port}"),
        Some(("[::]" | "::", port)) => format!("[::1]:{port}"),
        Some(_) | None => listen.to_owned(),
    }
}

/// One attempt; the error says whether another one is of use.
async fn ask(
    env: &Env,
    address: &str,
    tls: &Tls,
    request: RecoverTokenRequest,
) -> Result<RecoverTokenResponse, (RecoverError, bool)> {
    let unreachable = |reason: String| RecoverError::Unreachable { address: address.to_owned(), reason };
    let channel = cara_transport::connect(env, address, tls.client(), ATTEMPT)
        .await
        .map_err(|error| (unreachable(crate::error::chain(&error)), true))?;
    let mut client = ClusterClient::new(channel);
    let status = match cara_env::timeout(&*env.clock, ATTEMPT, client.recover_token(request)).await {
        Ok(Ok(answer)) => return Ok(answer.into_inner()),
        Ok(Err(status)) => status,
        Err(_) => return Err((unreachable(format!("no answer within {ATTEMPT:?}")), false)),
    };
    let hint = status.metadata().get(cara_proto::HINT_KEY).and_then(|hint| hint.to_str().ok()).unwrap_or_default();
    let refused = RecoverError::Refused { message: status.message().to_owned(), hint: hint.to_owned() };
    Err((refused, status.code() != tonic::Code::Unavailable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_dialled_here() {
        assert_eq!(here("0.0.0.0:7443"), "127.0.0.1:7443");
        assert_eq!(here("[::]:7443"), "[::1]:7443");
        assert_eq!(here("10.0.0.1:7443"), "10.0.0.1:7443");
    }
}
