//! Who this server is: one file, `server.json`, written whole or not at all, mode 0600.

use std::path::{Path, PathBuf};

use cara_env::Env;
use serde::{Deserialize, Serialize};

use crate::sealing_keys;

/// The content of `server.json`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerIdentity {
    /// The raft id; never given to two servers.
    pub server_id: u64,
    /// What people call it.
    pub name: String,
    /// The cluster that it belongs to.
    pub cluster_id: String,
    /// `host:port` to listen on.
    pub listen: String,
    /// `host:port` under which servers, agents and people reach it.
    pub advertise: String,
    /// Its certificate.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
    /// The cluster's CA; two while it is being replaced.
    pub ca_pem: String,
    /// What it sends along beside the trusted CAs, for clients that pin one of the CAs before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub chain_pem: String,
    /// Which of several answers about whom to trust this is; an older one is not taken.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trust_epoch: u64,
    /// The number of the newest CA in `ca_pem`; 0 = the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trusts: u64,
    /// The number of the CA that signed the certificate; 0 = the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ca: u64,
    /// Opens the replicated secrets; hex.
    pub sealing_key: String,
    /// Further ones, while it is being replaced; hex. See `sealing_keys`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_sealing_keys: Vec<String>,
    /// No database was ever opened under this identity: an empty folder is fine. Afterwards an empty folder means that
    /// the disk was lost, and a server without memory must not vote.
    pub fresh: bool,
    /// Hex of the first log entry: this server makes the cluster when it runs for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<String>,
}

/// Why the identity can't be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// There is none.
    #[error(
        "{0} has no server.json: this folder was not set up; run cara-server init (first server) or cara-server join"
    )]
    Missing(PathBuf),
    /// There is one already.
    #[error("{0} belongs to server {1} already; use another folder, or run it with cara-server run")]
    Exists(PathBuf, String),
    /// The file is not what it should be.
    #[error("{path} is damaged: {reason}; restore it from a backup, or remove this server and join again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The folder can't be read or written.
    #[error("can't access {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("server.json")
}

impl ServerIdentity {
    /// Reads the identity of a data folder.
    pub fn load(env: &Env, data_dir: &Path) -> Result<Self, IdentityError> {
        let path = path(data_dir);
        let bytes = match env.files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(IdentityError::Missing(data_dir.to_owned()));
            }
            Err(source) => return Err(IdentityError::Io { path, source }),
        };
        let identity: Self = serde_json::from_slice(&bytes)
            .map_err(|error| IdentityError::Damaged { path: path.clone(), reason: error.to_string() })?;
        if !identity.sealing_keys().all(|key| sealing_keys::bytes_of(key).is_some()) {
            return Err(IdentityError::Damaged { path, reason: "a sealing key is not 32 bytes".into() });
        }
        Ok(identity)
    }

    /// Refuses a folder that has an identity, and proves that the folder can be written, before anything is asked of
    /// anyone.
    pub fn check_vacant(env: &Env, data_dir: &Path) -> Result<(), IdentityError> {
        match Self::load(env, data_dir) {
            Ok(identity) => return Err(IdentityError::Exists(data_dir.to_owned(), identity.name)),
            Err(IdentityError::Missing(_)) => {}
            Err(other) => return Err(other),
        }
        let probe = data_dir.join(".probe");
        let io = |source| IdentityError::Io { path: data_dir.to_owned(), source };
        env.files.write(&probe, b"", 0o600).map_err(io)?;
        env.files.remove(&probe).map_err(io)
    }

    /// Writes the identity durably.
    pub fn save(&self, env: &Env, data_dir: &Path) -> Result<(), IdentityError> {
        let path = path(data_dir);
        let json = serde_json::to_vec_pretty(self).expect("plain strings and numbers become JSON");
        env.files.write(&path, &json, 0o600).map_err(|source| IdentityError::Io { path, source })
    }
}

impl std::fmt::Debug for ServerIdentity {
    /// Never prints a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerIdentity")
            .field("server_id", &self.server_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Bytes of a hex string; none when it isn't one.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Lowercase hex of bytes.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
