//! From a join token to an identity, once in a node's life.
//!
//! Nothing is lost on the way: the folder is tried before the token is sent, and the key is on disk before the request
//! leaves, so that after a lost answer the same token with the same key gets the same identity.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cara_env::Env;
use cara_proto::agent::agent_client::AgentClient;
use cara_proto::agent::{EnrollRequest, EnrollResponse};
use cara_transport::{JoinToken, fingerprint, pinned};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use tonic::Status;

use crate::backoff::{Backoff, jittered};
use crate::config::Config;
use crate::error::EnrolError;
use crate::facts;
use crate::identity::Identity;
use crate::preflight;
use crate::runtime::ContainerRuntime;
use crate::session::refusal;

/// Hints followed in one round; servers that point at each other would otherwise keep us for ever.
const HOPS_MAX: usize = 3;

/// What an enrolment is for: where its files are, and which node it must lead to.
pub(crate) struct Errand {
    /// Keeps the key until the identity is saved.
    pub(crate) key_file: PathBuf,
    /// Gets the identity.
    pub(crate) identity_file: PathBuf,
    /// The node that this machine was; empty = any.
    pub(crate) node_id: String,
}

impl Errand {
    /// A machine without an identity gets one: a new one, or that of the node which its token is bound to.
    pub(crate) fn first(config: &Config) -> Self {
        let (key_file, identity_file) = (config.pending_key_file(), config.identity_file());
        Self { key_file, identity_file, node_id: String::new() }
    }
}

/// Enrols the node; goes on trying while servers can't be reached. Without a runtime nothing is told about the machine.
///
/// # Errors
/// Ends at the first refusal: a token that is wrong now is wrong a second later.
pub(crate) async fn enrol(
    env: &Env,
    config: &Config,
    token: &JoinToken,
    runtime: Option<&dyn ContainerRuntime>,
    errand: &Errand,
) -> Result<Identity, EnrolError> {
    probe(env, config)?;
    let mut key = pending_key(env, config, &errand.key_file)?;
    cara_env::point("enrol.key_saved", || format!("node={}", config.node_name)).await;
    let mut request = EnrollRequest {
        token: token.secret.clone(),
        node_name: config.node_name.clone(),
        csr: request_of(&key)?,
        address: config.advertise.clone(),
        facts: None,
        preflight: false,
        volume_address: String::new(),
        node_id: errand.node_id.clone(),
    };
    if let Some(runtime) = runtime {
        preflight::check(env, config, token, runtime, &request).await?;
    }
    let mut backoff = Backoff::new(config.backoff_min, config.backoff_max);
    loop {
        if cara_env::planted("enrol-key-forgotten") {
            key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| EnrolError::Key(error.to_string()))?;
            request.csr = request_of(&key)?;
        }
        if let Some(runtime) = runtime {
            request.facts = Some(facts::gather(env, config, runtime).await);
        }
        cara_env::point("enrol.sent", || {
            let (token, key) = (JoinToken::hash(&token.secret), fingerprint(key.public_key_pem().as_bytes()));
            format!("node={} token={} key={}", config.node_name, short(&token), short(&key))
        })
        .await;
        let asked = round(env, config, token, &request).await;
        if let Err(EnrolError::Refused { server, code, .. }) = &asked {
            cara_env::mark("enrol.refused", || format!("server={server} code={code}"));
        }
        let (answer, election) = asked?;
        if let Some((server, answer)) = answer {
            let certificate = fingerprint(answer.certificate_pem.as_bytes());
            cara_env::point("enrol.answered", || format!("server={server} certificate={}", short(&certificate))).await;
            let identity =
                accept(env, token, &key, answer).map_err(|problem| EnrolError::Answer { server, problem })?;
            return save(env, config, identity, errand).await;
        }
        let mut wait = backoff.next(&*env.rng);
        if election {
            wait = wait.min(jittered(&*env.rng, config.election_retry));
        }
        tracing::warn!("no server could enrol this node; trying again in {:.1} s", wait.as_secs_f64());
        env.clock.sleep(wait).await;
    }
}

/// Makes the identity this machine's, and ends what was begun for it.
async fn save(env: &Env, config: &Config, identity: Identity, errand: &Errand) -> Result<Identity, EnrolError> {
    let folder = |source| EnrolError::Folder { folder: config.data_dir.clone(), source };
    identity.save(&*env.files, &errand.identity_file).map_err(|error| folder(std::io::Error::other(error)))?;
    cara_env::point("enrol.saved", || format!("node={}", config.node_name)).await;
    env.files.remove(&errand.key_file).map_err(folder)?;
    cara_env::point("enrol.done", || format!("node={}", config.node_name)).await;
    Ok(identity)
}

/// Enough of a hash to tell it from others.
fn short(hash: &str) -> String {
    hash.chars().take(16).collect()
}

/// The signing request for a key.
pub(crate) fn request_of(key: &KeyPair) -> Result<Vec<u8>, EnrolError> {
    let request = CertificateParams::default().serialize_request(key);
    request.map(|request| request.der().to_vec()).map_err(|error| EnrolError::Key(error.to_string()))
}

/// Finds out whether the folder can be written, before the token is at stake.
pub(crate) fn probe(env: &Env, config: &Config) -> Result<(), EnrolError> {
    let file = config.data_dir.join("probe");
    let tried = env.files.write(&file, b"can this folder be written?\n", 0o600).and_then(|()| env.files.remove(&file));
    tried.map_err(|source| EnrolError::Folder { folder: config.data_dir.clone(), source })
}

/// The key of an enrolment that was begun, or a new one, saved.
pub(crate) fn pending_key(env: &Env, config: &Config, file: &Path) -> Result<KeyPair, EnrolError> {
    let key_error = |error: rcgen::Error| EnrolError::Key(error.to_string());
    match env.files.read(file) {
        Ok(pem) => KeyPair::from_pem(&String::from_utf8_lossy(&pem)).map_err(key_error),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(key_error)?;
            save_key(env, file, &key)
                .map_err(|source| EnrolError::Folder { folder: config.data_dir.clone(), source })?;
            Ok(key)
        }
        Err(error) => Err(EnrolError::Key(format!("{}: {error}", file.display()))),
    }
}

fn save_key(env: &Env, file: &Path, key: &KeyPair) -> std::io::Result<()> {
    env.files.write(file, key.serialize_pem().as_bytes(), 0o600)
}

/// Asks each server once, following hints. The answer, if any, and whether a server spoke of having no leader.
pub(crate) async fn round(
    env: &Env,
    config: &Config,
    token: &JoinToken,
    request: &EnrollRequest,
) -> Result<(Option<(String, EnrollResponse)>, bool), EnrolError> {
    let tls = pinned(env, &token.ca_fingerprint, true);
    let mut queue: VecDeque<String> = token.servers.iter().cloned().collect();
    let mut hops = 0;
    let mut election = false;
    while let Some(server) = queue.pop_front() {
        let channel = match cara_transport::connect(env, &server, tls.clone(), config.connect_deadline).await {
            Ok(channel) => channel,
            Err(error) => {
                tracing::warn!("{}", with_causes(&error));
                continue;
            }
        };
        let call = async { AgentClient::new(channel).enroll(request.clone()).await };
        let status = match cara_env::timeout(&*env.clock, config.call_deadline, call).await {
            Ok(Ok(response)) => return Ok((Some((server, response.into_inner())), election)),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded(format!("no answer within {:?}", config.call_deadline)),
        };
        let refusal = refusal(&status);
        if let Some(leader) = refusal.leader
            && hops < HOPS_MAX
        {
            hops += 1;
            queue.push_front(leader);
        } else if refusal.is_final {
            let (code, message, hint) = (refusal.code, refusal.message, refusal.hint);
            return Err(EnrolError::Refused { server, code, message, hint });
        } else {
            election |= status.code() == tonic::Code::Unavailable;
            tracing::warn!("{server} can't enrol this node now: {}", status.message());
        }
    }
    Ok((None, election))
}

/// Checks the answer against the key, the token and itself.
fn accept(env: &Env, token: &JoinToken, key: &KeyPair, answer: EnrollResponse) -> Result<Identity, String> {
    let mut servers = answer.servers;
    for server in &token.servers {
        if !servers.contains(server) {
            servers.push(server.clone());
        }
    }
    let identity = Identity {
        node_id: answer.node_id,
        cluster_id: answer.cluster_id,
        certificate_pem: answer.certificate_pem,
        key_pem: key.serialize_pem(),
        ca_pem: answer.ca_pem,
        servers,
        trust_epoch: answer.trust_epoch,
    };
    let cas: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(identity.ca_pem.as_bytes()).collect();
    let cas = cas.map_err(|_| "its CA certificate is not PEM")?;
    // The server has proven the token's CA in the handshake. What it says to trust need not have that CA among it: it may have
    // been replaced since the token was made.
    verify_chain(env, &identity, &cas)?;
    identity.tls(env).map_err(|error| error.to_string())?;
    identity.check_names()?;
    Ok(identity)
}

/// Is the certificate signed by the CA, valid now, and fit for a client?
pub(crate) fn verify_chain(env: &Env, identity: &Identity, cas: &[CertificateDer<'_>]) -> Result<(), String> {
    let leaf = CertificateDer::from_pem_slice(identity.certificate_pem.as_bytes())
        .map_err(|_| "the certificate is not PEM".to_owned())?;
    let mut roots = RootCertStore::empty();
    for ca in cas {
        roots.add(ca.clone().into_owned()).map_err(|error| format!("its CA certificate can't be used: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| format!("its CA certificate can't be used: {error}"))?;
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_millis(env.clock.wall_ms()));
    verifier
        .verify_client_cert(&leaf, &[], now)
        .map(|_| ())
        .map_err(|error| format!("its CA has not signed the certificate, or this machine's clock is wrong: {error}"))
}

/// An error and its causes in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
