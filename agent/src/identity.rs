//! Who this node is: one file, 0600, written whole.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cara_env::{Env, Files};
use cara_transport::{Leaf, Peer, Role, Tls, TlsError, fingerprint};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};

/// A node's identity and where its servers are.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Id of the node; given once, kept for ever.
    pub node_id: String,
    /// Id of the cluster.
    pub cluster_id: String,
    /// PEM: the node's certificate.
    pub certificate_pem: String,
    /// PEM: the private key; never leaves the node.
    pub key_pem: String,
    /// PEM: the cluster's CA certificates.
    pub ca_pem: String,
    /// `host:port` of all servers, as last heard.
    pub servers: Vec<String>,
    /// Which of several answers about whom to trust `ca_pem` is; an older one is not taken.
    #[serde(default)]
    pub trust_epoch: u64,
}

/// Why an identity file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file can't be read.
    #[error("can't read the identity {}: {source}; fix the file's owner and mode and start the agent again", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error(
        "the identity {} is damaged ({problem}); get the node a new one: `caractrl nodes reenroll NODE` prints the command to \
         run here",
        .file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The file can't be written.
    #[error("can't write the identity {}: {source}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Identity {
    /// Reads the identity and checks that it can be used; none when there is no file.
    ///
    /// # Errors
    /// A file that is there and can't be used is an error, never "no identity": enrolling anew would make a second node.
    pub fn load(env: &Env, file: &Path) -> Result<Option<Self>, IdentityError> {
        let bytes = match env.files.read(file) {
            Ok(bytes) => bytes,
            // "Not a folder": enrolment's own check of the folder says it better.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(source) => return Err(IdentityError::Read { file: file.to_owned(), source }),
        };
        let damaged = |problem: String| IdentityError::Damaged { file: file.to_owned(), problem };
        let identity: Self = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        identity.tls(env).map_err(|e| damaged(e.to_string()))?;
        identity.check_names().map_err(damaged)?;
        Ok(Some(identity))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// As the file system says.
    pub fn save(&self, files: &dyn Files, file: &Path) -> Result<(), IdentityError> {
        let bytes = serde_json::to_vec_pretty(self).expect("a struct of strings is JSON");
        files.write(file, &bytes, 0o600).map_err(|source| IdentityError::Write { file: file.to_owned(), source })
    }

    /// Do both name the same node of the same cluster?
    pub(crate) fn is_same_node(&self, other: &Self) -> bool {
        self.node_id == other.node_id && self.cluster_id == other.cluster_id
    }

    /// The TLS configurations for dialling as this node.
    pub(crate) fn tls(&self, env: &Env) -> Result<Tls, TlsError> {
        Tls::new(env, &self.for_tls())
    }

    pub(crate) fn for_tls(&self) -> cara_transport::Identity {
        cara_transport::Identity {
            certificate_pem: self.certificate_pem.clone(),
            key_pem: self.key_pem.clone(),
            ca_pem: self.ca_pem.clone(),
        }
    }

    /// Does the certificate name this node of this cluster?
    pub(crate) fn check_names(&self) -> Result<(), String> {
        let der = self.certificate_der()?;
        let peer = Peer::of(&der.into()).ok_or("the certificate names no member of a cluster")?;
        let role = Role::Node(self.node_id.clone());
        if peer.cluster == self.cluster_id && peer.role == role {
            return Ok(());
        }
        let named = Peer::uri(&peer.cluster, &peer.role);
        Err(format!("the certificate is for {named}, not for {}", Peer::uri(&self.cluster_id, &role)))
    }

    /// Until when the certificate is good, and when the next one is due.
    pub(crate) fn leaf(&self) -> Result<Leaf, String> {
        Leaf::of(&self.certificate_pem)
    }

    /// SHA-256 of each CA that it trusts, hex.
    pub(crate) fn trusted_cas(&self) -> Vec<String> {
        CertificateDer::pem_slice_iter(self.ca_pem.as_bytes()).flatten().map(|ca| fingerprint(&ca)).collect()
    }

    fn certificate_der(&self) -> Result<Vec<u8>, String> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(self.certificate_pem.as_bytes())
            .map_err(|_| "the certificate is not PEM".to_owned())?;
        Ok(pem.contents)
    }
}

/// Never prints the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("node_id", &self.node_id)
            .field("cluster_id", &self.cluster_id)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}
