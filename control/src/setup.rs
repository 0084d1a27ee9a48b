//! Before a server runs: `init` makes a cluster, `join` makes this machine one of its servers. Both leave a `server.json`
//! behind and nothing else; `run` does the rest.

use std::path::Path;
use std::time::Duration;

use cara_core::command::InitCluster;
use cara_core::model::{Ability, ApiToken, Certificate, Server};
use cara_core::{Command, Entry, FEATURE_LEVEL, ServerId, TokenId, codec};
use cara_env::Env;
use cara_proto::cluster::{JoinRequest, JoinResponse, cluster_client::ClusterClient};
use cara_transport::{JoinToken, Role, TlsError};

use crate::identity::{IdentityError, ServerIdentity, to_hex};
use crate::pki::{self, Ca, PkiError, SEALING_KEY_LEN};

/// One attempt at one server.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Rounds over all servers of the token; a cluster that is electing a leader answers within two.
const ROUNDS: u32 = 5;

/// Where the new server is.
#[derive(Debug, Clone)]
pub struct Place {
    /// What people call it: a DNS label.
    pub name: String,
    /// `host:port` to listen on.
    pub listen: String,
    /// `host:port` under which others reach it.
    pub advertise: String,
    /// The highest feature level that it will announce, as in its `Config`.
    pub feature_level_max: u32,
    /// How long the first server's certificate lives, as in its `Config`.
    pub certificate_life: Duration,
}

impl Place {
    /// A server of this version.
    pub fn new(name: impl Into<String>, listen: impl Into<String>, advertise: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            listen: listen.into(),
            advertise: advertise.into(),
            feature_level_max: FEATURE_LEVEL,
            certificate_life: pki::LEAF_LIFE,
        }
    }
}

/// What `init` tells the operator, once.
#[derive(Clone, serde::Serialize)]
pub struct Founded {
    /// The first root token.
    pub token: String,
    /// SHA-256 of the CA certificate.
    pub ca_fingerprint: String,
    /// The new cluster.
    pub cluster_id: String,
    /// The first server's URL.
    pub server: String,
}

/// Never prints the token.
impl std::fmt::Debug for Founded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Founded");
        shown.field("cluster_id", &self.cluster_id).field("server", &self.server).finish_non_exhaustive()
    }
}

/// Why a server could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The data folder.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Certificates.
    #[error("can't make the server's certificate")]
    Pki(#[from] PkiError),
    /// The address isn't one that others can dial.
    #[error("{what} {given:?} is not host:port; for example 10.0.0.1:7443")]
    Address {
        /// `--listen` or `--advertise`.
        what: &'static str,
        /// What was given.
        given: String,
    },
    /// The address to listen on.
    #[error("can't listen on {address} (nothing was spent); is another process there? choose another with --listen")]
    Listen {
        /// `host:port`.
        address: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No server of the token answered.
    #[error("no server of the token could be reached (nothing was spent): {tried}")]
    Unreachable {
        /// Each address with its reason.
        tried: String,
    },
    /// The cluster refused.
    #[error("the cluster refused: {message}{}", hint_suffix(.hint))]
    Refused {
        /// Why.
        message: String,
        /// The next step.
        hint: String,
    },
    /// The answer isn't usable.
    #[error("the cluster's answer can't be used")]
    Answer(#[source] TlsError),
}

fn hint_suffix(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

/// Makes a new cluster whose first server is this machine. The database is made by the first `run`.
pub fn init(env: &Env, data_dir: &Path, place: &Place) -> Result<Founded, SetupError> {
    check_place(place)?;
    ServerIdentity::check_vacant(env, data_dir)?;
    let cluster_id = format!("cl-{}", cara_env::hex(&*env.rng, 8));
    let mut sealing_key = [0; SEALING_KEY_LEN];
    env.rng.fill(&mut sealing_key);
    let new_ca = pki::new_ca(env, &cluster_id)?;
    let sealed = pki::seal(&*env.rng, &sealing_key, new_ca.key_pem.as_bytes());
    let ca = Ca::open(&cluster_id, &new_ca.certificate_pem, &sealed, &sealing_key)?;
    let ca = ca.with_server_life(place.certificate_life);
    let (key_pem, csr) = pki::new_request()?;
    let issued =
        ca.issue(env, &Role::Server(1), &csr, &hosts_of(&[&place.advertise, &place.listen, "localhost", "127.0.0.1"]))?;
    let token = format!("cara_{}", cara_env::hex(&*env.rng, 32));
    let command = Command::InitCluster(InitCluster {
        cluster_id: cluster_id.clone(),
        incarnation: 1,
        feature_level: place.feature_level_max,
        ca_cert_pem: new_ca.certificate_pem.clone(),
        ca_key_sealed: sealed,
        server: Server {
            id: ServerId(1),
            name: place.name.clone(),
            address: place.advertise.clone(),
            certificate: record(&issued),
            feature_level: place.feature_level_max,
            ..Server::default()
        },
        root_token: ApiToken {
            id: TokenId::new(format!("tk-{}", cara_env::hex(&*env.rng, 6))),
            hash: JoinToken::hash(&token),
            name: "root made by init".into(),
            ability: Ability::Root,
            ..ApiToken::default()
        },
    });
    let entry = Entry {
        incarnation: 0,
        at_ms: env.clock.wall_ms(),
        request_id: String::new(),
        actor: "server:1".into(),
        command,
        caller: String::new(),
    };
    let bytes = codec::encode_entry(&entry).expect("the first entry is a few KB");
    ServerIdentity {
        server_id: 1,
        name: place.name.clone(),
        cluster_id: cluster_id.clone(),
        listen: place.listen.clone(),
        advertise: place.advertise.clone(),
        certificate_pem: issued.pem,
        key_pem,
        ca_pem: new_ca.certificate_pem.clone(),
        chain_pem: String::new(),
        trust_epoch: 0,
        trusts: 0,
        ca: 0,
        sealing_key: to_hex(&sealing_key),
        further_sealing_keys: Vec::new(),
        fresh: true,
        bootstrap: Some(to_hex(&bytes)),
    }
    .save(env, data_dir)?;
    Ok(Founded {
        token,
        ca_fingerprint: ca_fingerprint(&new_ca.certificate_pem),
        cluster_id,
        server: format!("https://{}", place.advertise),
    })
}

/// Makes this machine a server of the cluster that made `token`. Asking again after a lost answer needs a new token only
/// if the key was lost with it: the key is written before it is used.
pub async fn join(env: &Env, data_dir: &Path, place: &Place, token: &JoinToken) -> Result<(), SetupError> {
    check_place(place)?;
    ServerIdentity::check_vacant(env, data_dir)?;
    let key_file = data_dir.join("server.key.new");
    let (key_pem, csr) = match env.files.read(&key_file).ok().and_then(|pem| String::from_utf8(pem).ok()) {
        Some(pem) => pki::request_for(&pem)?,
        None => {
            let made = pki::new_request()?;
            let io = |source| IdentityError::Io { path: key_file.clone(), source };
            env.files.write(&key_file, made.0.as_bytes(), 0o600).map_err(io)?;
            cara_env::point("join.key_saved", String::new).await;
            made
        }
    };
    // The cluster dials the advertised address before it spends the token, so somebody has to answer there. It also
    // shows now, not at the first run, whether the port is free.
    let listener = env
        .net
        .listen(&place.listen)
        .await
        .map_err(|source| SetupError::Listen { address: place.listen.clone(), source })?;
    let answering = cara_env::spawn(async move { while listener.accept().await.is_ok() {} });
    let request = JoinRequest {
        token: token.secret.clone(),
        name: place.name.clone(),
        address: place.advertise.clone(),
        csr,
        feature_level: place.feature_level_max,
    };
    cara_env::point("join.sent", || format!("server={}", place.name)).await;
    let answer = ask(env, token, request).await;
    cara_env::point("join.answered", || format!("ok={}", answer.is_ok())).await;
    answering.abort();
    answering.await; // The port is free again once the task is gone.
    let answer = answer?;
    ServerIdentity {
        server_id: answer.server_id,
        name: place.name.clone(),
        cluster_id: answer.cluster_id,
        listen: place.listen.clone(),
        advertise: place.advertise.clone(),
        certificate_pem: answer.certificate_pem,
        key_pem,
        ca_pem: answer.ca_pem,
        chain_pem: answer.chain_pem,
        trust_epoch: answer.trust_epoch,
        trusts: answer.trusts,
        ca: answer.ca,
        sealing_key: to_hex(&answer.sealing_key),
        further_sealing_keys: Some(to_hex(&answer.next_sealing_key))
            .filter(|key| !key.is_empty())
            .into_iter()
            .collect(),
        fresh: true,
        bootstrap: None,
    }
    .save(env, data_dir)?;
    cara_env::point("join.saved", || format!("server={}", place.name)).await;
    let io = |source| IdentityError::Io { path: key_file.clone(), source };
    Ok(env.files.remove(&key_file).map_err(io)?)
}

async fn ask(env: &Env, token: &JoinToken, request: JoinRequest) -> Result<JoinResponse, SetupError> {
    let tls = cara_transport::pinned(env, &token.ca_fingerprint, true);
    let mut tried = Vec::new();
    for round in 0..ROUNDS {
        if round > 0 {
            env.clock.sleep(Duration::from_millis(500)).await;
        }
        tried.clear();
        let mut addresses = token.servers.clone();
        let mut next = 0;
        while next < addresses.len() {
            let address = addresses[next].clone();
            next += 1;
            match attempt(env, &address, tls.clone(), request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(Attempt::Refused { message, hint }) => return Err(SetupError::Refused { message, hint }),
                Err(Attempt::Elsewhere(leader, reason)) => {
                    tried.push(format!("{address}: {reason}"));
                    if let Some(leader) = leader.filter(|l| !addresses.contains(l)) {
                        addresses.push(leader);
                    }
                }
            }
        }
    }
    Err(SetupError::Unreachable { tried: tried.join("; ") })
}

enum Attempt {
    /// Another server may answer.
    Elsewhere(Option<String>, String),
    Refused {
        message: String,
        hint: String,
    },
}

async fn attempt(
    env: &Env,
    address: &str,
    tls: std::sync::Arc<rustls::ClientConfig>,
    request: JoinRequest,
) -> Result<JoinResponse, Attempt> {
    let channel = cara_transport::connect(env, address, tls, ATTEMPT)
        .await
        .map_err(|error| Attempt::Elsewhere(None, crate::error::chain(&error)))?;
    let mut client = ClusterClient::new(channel);
    let call = cara_env::timeout(&*env.clock, ATTEMPT, client.join(request)).await;
    let status = match call {
        Ok(Ok(response)) => return Ok(response.into_inner()),
        Ok(Err(status)) => status,
        Err(_) => return Err(Attempt::Elsewhere(None, format!("no answer within {ATTEMPT:?}"))),
    };
    let meta = |key| status.metadata().get(key).and_then(|v| v.to_str().ok()).map(str::to_owned);
    if status.code() == tonic::Code::Unavailable {
        return Err(Attempt::Elsewhere(meta(cara_proto::LEADER_KEY), status.message().to_owned()));
    }
    Err(Attempt::Refused { message: status.message().to_owned(), hint: meta(cara_proto::HINT_KEY).unwrap_or_default() })
}

/// What the cluster records of a certificate.
pub(crate) fn record(issued: &pki::Issued) -> Certificate {
    Certificate {
        fingerprint: issued.fingerprint.clone(),
        serial: issued.serial.clone(),
        not_after_ms: issued.not_after_ms,
        key_hash: issued.key_hash.clone(),
        pem: issued.pem.clone(),
        ca: issued.ca,
        trusts: issued.trusts,
        ..Certificate::default()
    }
}

/// SHA-256 of the first certificate of a PEM text, hex.
pub(crate) fn ca_fingerprint(pem: &str) -> String {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    CertificateDer::from_pem_slice(pem.as_bytes()).map(|der| cara_transport::fingerprint(&der)).unwrap_or_default()
}

/// The names and addresses for a server's certificate.
pub(crate) fn hosts_of(addresses: &[&str]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for address in addresses {
        let host = address.rsplit_once(':').map_or(*address, |(host, _)| host).trim_matches(['[', ']']);
        if !host.is_empty() && host != "0.0.0.0" && host != "::" && !hosts.iter().any(|h| h == host) {
            hosts.push(host.to_owned());
        }
    }
    hosts
}

fn check_place(place: &Place) -> Result<(), SetupError> {
    cara_core::name::check_node("name", &place.name)
        .map_err(|error| SetupError::Refused { message: format!("--{error}"), hint: String::new() })?;
    for (what, given) in [("--listen", &place.listen), ("--advertise", &place.advertise)] {
        let port = given.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, p)| p.parse::<u16>().ok());
        if port.is_none_or(|port| port == 0) {
            return Err(SetupError::Address { what, given: given.clone() });
        }
    }
    Ok(())
}
