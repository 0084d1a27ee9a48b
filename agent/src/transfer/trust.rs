//! How two nodes prove to each other who they are. A node has one certificate, the one with which it dials servers; when
//! another node dials it, it shows the same. So the one who dials checks what a server checks: the cluster's CA, and which
//! node the certificate names.

use std::sync::Arc;

use cara_transport::{Peer, Role};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::keeper::Keeper;

/// For dialling exactly this node of our cluster, as ourselves.
///
/// # Errors
/// When our own identity holds no usable CA.
pub(super) fn client(keeper: &Keeper, node_id: &str) -> Result<Arc<ClientConfig>, String> {
    let identity = keeper.identity();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(identity.ca_pem.as_bytes()) {
        let certificate = certificate.map_err(|_| "the known CA is not PEM")?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let mut config = ClientConfig::clone(&keeper.tls().client());
    let chain = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), config.crypto_provider().clone())
        .build()
        .map_err(|error| error.to_string())?;
    let role = Role::Node(node_id.to_owned());
    config.dangerous().set_certificate_verifier(Arc::new(NodeVerifier { chain, cluster: identity.cluster_id, role }));
    // A resumed session skips the check, and all nodes are dialled under one name.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Accepts one node of one cluster.
#[derive(Debug)]
struct NodeVerifier {
    chain: Arc<dyn ClientCertVerifier>,
    cluster: String,
    role: Role,
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.chain.verify_client_cert(end_entity, intermediates, now)?;
        match Peer::of(end_entity) {
            Some(peer) if peer.cluster == self.cluster && peer.role == self.role => Ok(ServerCertVerified::assertion()),
            Some(_) | None => Err(CertificateError::NotValidForName.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
