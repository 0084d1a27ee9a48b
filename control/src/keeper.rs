//! The server's identity as it is now: the only writer of `server.json` while the server runs, and of the TLS
//! configuration made from it.
//!
//! Invariant: what is used is on disk before it is used, and before anybody is told.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cara_env::Env;
use cara_transport::{Leaf, Tls, TlsError};

use crate::identity::{IdentityError, ServerIdentity};

/// Why a change was not taken.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The file.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// What it would have said can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Holds the identity and saves each change before it counts.
pub struct Keeper {
    env: Env,
    data_dir: PathBuf,
    now: Mutex<(ServerIdentity, Leaf)>,
    tls: Tls,
    /// One sealing key is made after the other: what becomes of it must be known before the next one.
    pub(crate) making_key: tokio::sync::Mutex<()>,
}

impl Keeper {
    /// # Errors
    /// When the identity's certificate, key or CA can't be used.
    pub fn new(env: &Env, data_dir: PathBuf, identity: ServerIdentity) -> Result<Self, TlsError> {
        let tls = Tls::new(env, &for_tls(&identity))?;
        let leaf = leaf(&identity)?;
        Ok(Self { env: env.clone(), data_dir, now: Mutex::new((identity, leaf)), tls, making_key: Default::default() })
    }

    /// For all connections; changes with the identity.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    fn lock(&self) -> MutexGuard<'_, (ServerIdentity, Leaf)> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look at the identity and its certificate.
    pub fn look<T>(&self, at: impl FnOnce(&ServerIdentity, &Leaf) -> T) -> T {
        let now = self.lock();
        at(&now.0, &now.1)
    }

    /// Changes the identity: checked, saved, then used for new connections.
    ///
    /// # Errors
    /// When what comes out can't be used, or can't be saved; then nothing has changed.
    pub fn change(&self, change: impl FnOnce(&mut ServerIdentity)) -> Result<(), KeepError> {
        let mut now = self.lock();
        let mut next = now.0.clone();
        change(&mut next);
        let leaf = leaf(&next)?;
        Tls::new(&self.env, &for_tls(&next))?;
        next.save(&self.env, &self.data_dir)?;
        self.tls.replace(&for_tls(&next))?;
        *now = (next, leaf);
        Ok(())
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeper")
    }
}

fn leaf(identity: &ServerIdentity) -> Result<Leaf, TlsError> {
    Leaf::of(&identity.certificate_pem).map_err(|_| TlsError::Pem { what: "certificate" })
}

/// What its connections show and trust.
pub(crate) fn for_tls(identity: &ServerIdentity) -> cara_transport::Identity {
    cara_transport::Identity {
        certificate_pem: format!("{}\n{}", identity.certificate_pem.trim_end(), identity.chain_pem),
        key_pem: identity.key_pem.clone(),
        ca_pem: identity.ca_pem.clone(),
    }
}
