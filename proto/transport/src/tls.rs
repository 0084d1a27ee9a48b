//! TLS configurations made from an identity, replaceable while connections are open.

use std::sync::{Arc, RwLock};

use cara_env::{Clock, Env};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::LEADER_ONLY;
use crate::pin::PinVerifier;

/// The protocols that a server speaks, best first.
const SERVER_ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Who this process is: its certificate, its key, and whom it trusts.
pub struct Identity {
    /// PEM: the leaf certificate; behind it, for a server, what it sends along beside the CAs that it trusts.
    pub certificate_pem: String,
    /// PEM (PKCS#8): the leaf's private key.
    pub key_pem: String,
    /// PEM: the cluster's CA certificates; several while the CA is being replaced.
    pub ca_pem: String,
}

/// Why an identity can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not PEM, or not what it should be.
    #[error("the {what} is not valid PEM")]
    Pem {
        /// Which of the three.
        what: &'static str,
    },
    /// The certificate and the key, or the certificate and the CA, don't fit.
    #[error("the certificate and its key can't be used")]
    Mismatch(#[source] rustls::Error),
    /// The CA certificates can't be used to verify clients.
    #[error("the CA certificate can't be used to verify clients")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
}

/// The client and server configurations of one identity. A clone sees the same, also after [`Tls::replace`]: new
/// connections take the new identity, open ones keep theirs.
#[derive(Clone)]
pub struct Tls {
    clock: Arc<dyn Clock>,
    current: Arc<RwLock<Configs>>,
}

struct Configs {
    client: Arc<ClientConfig>,
    to_leader: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// Checks the identity and makes both configurations.
    ///
    /// # Errors
    /// Says which of certificate, key and CA can't be used.
    pub fn new(env: &Env, identity: &Identity) -> Result<Self, TlsError> {
        let configs = Configs::new(&env.clock, identity)?;
        Ok(Self { clock: env.clock.clone(), current: Arc::new(RwLock::new(configs)) })
    }

    /// Takes another identity for all connections opened from now on.
    pub fn replace(&self, identity: &Identity) -> Result<(), TlsError> {
        let configs = Configs::new(&self.clock, identity)?;
        *self.current.write().unwrap_or_else(std::sync::PoisonError::into_inner) = configs;
        Ok(())
    }

    /// For dialling with this identity's certificate.
    pub fn client(&self) -> Arc<ClientConfig> {
        self.current.read().unwrap_or_else(std::sync::PoisonError::into_inner).client.clone()
    }

    /// As [`Tls::client`], for who wants the leader and nobody else: another server ends the handshake at its first message,
    /// before either side has computed much ([`crate::ConnectError::NotLeading`]).
    pub fn to_leader(&self) -> Arc<ClientConfig> {
        self.current.read().unwrap_or_else(std::sync::PoisonError::into_inner).to_leader.clone()
    }

    /// For serving; a client certificate is verified when given, and not required.
    pub fn server(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(std::sync::PoisonError::into_inner).server.clone()
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Configs {
    fn new(clock: &Arc<dyn Clock>, identity: &Identity) -> Result<Self, TlsError> {
        let leaf = certificates("certificate", &identity.certificate_pem)?;
        let ca = certificates("CA certificate", &identity.ca_pem)?;
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())
            .map_err(|_| TlsError::Pem { what: "private key" })?;
        let mut roots = RootCertStore::empty();
        for root in &ca {
            roots.add(root.clone()).map_err(TlsError::Mismatch)?;
        }
        let roots = Arc::new(roots);

        // The CA travels with the leaf so that a client which knows only its fingerprint can find it.
        let chain: Vec<_> = leaf.iter().chain(&ca).cloned().collect();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider())
            .allow_unauthenticated()
            .build()
            .map_err(TlsError::Verifier)?;
        let mut server = ServerConfig::builder_with_details(provider(), time(clock))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(TlsError::Mismatch)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key.clone_key())
            .map_err(TlsError::Mismatch)?;
        server.alpn_protocols = SERVER_ALPN.iter().map(|p| p.to_vec()).collect();

        let mut client = ClientConfig::builder_with_details(provider(), time(clock))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(TlsError::Mismatch)?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![leaf[0].clone()], key)
            .map_err(TlsError::Mismatch)?;
        client.alpn_protocols = vec![b"h2".to_vec()];
        let mut to_leader = client.clone();
        to_leader.alpn_protocols.push(LEADER_ONLY.to_vec());
        Ok(Self { client: Arc::new(client), to_leader: Arc::new(to_leader), server: Arc::new(server) })
    }
}

/// For dialling without a certificate of one's own, trusting exactly the CA whose SHA-256 is `ca_fingerprint` (hex).
/// `http2` chooses between gRPC (`h2`) and plain REST (`http/1.1`).
pub fn pinned(env: &Env, ca_fingerprint: &str, http2: bool) -> Arc<ClientConfig> {
    let verifier: Arc<dyn ServerCertVerifier> = Arc::new(PinVerifier::new(provider(), ca_fingerprint));
    let mut client = ClientConfig::builder_with_details(provider(), time(&env.clock))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring supports TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    client.alpn_protocols = vec![if http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    Arc::new(client)
}

/// Prefers the suite with SHA-256: processors hash with it several times as fast as with SHA-384, and a handshake hashes a lot.
fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..default_provider() })
}

fn certificates(what: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(TlsError::Pem { what }),
    }
}

/// Certificates are judged by the environment's wall clock.
fn time(clock: &Arc<dyn Clock>) -> Arc<dyn TimeProvider> {
    Arc::new(EnvTime(clock.clone()))
}

struct EnvTime(Arc<dyn Clock>);

impl std::fmt::Debug for EnvTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnvTime")
    }
}

impl TimeProvider for EnvTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_millis(self.0.wall_ms())))
    }
}
