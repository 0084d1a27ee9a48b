//! The identity in use: the only writer of its file, and of the TLS configuration made from it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cara_env::Env;
use cara_transport::Tls;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::enrol::verify_chain;
use crate::identity::{Identity, IdentityError};

/// Holds the identity and saves each change before it counts.
pub(crate) struct Keeper {
    env: Env,
    file: PathBuf,
    identity: Mutex<Identity>,
    tls: Tls,
}

impl Keeper {
    pub(crate) fn new(env: Env, file: PathBuf, identity: Identity) -> Result<Self, IdentityError> {
        let tls = identity
            .tls(&env)
            .map_err(|error| IdentityError::Damaged { file: file.clone(), problem: error.to_string() })?;
        Ok(Self { env, file, identity: Mutex::new(identity), tls })
    }

    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    pub(crate) fn identity(&self) -> Identity {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the servers. A list that can't be saved is used all the same: it is only a hint where to dial.
    pub(crate) fn remember_servers(&self, servers: &[String]) {
        let mut identity = self.lock();
        if servers.is_empty() || identity.servers == servers {
            return;
        }
        tracing::info!(?servers, "the list of servers has changed");
        identity.servers = servers.to_vec();
        if let Err(error) = identity.save(&*self.env.files, &self.file) {
            tracing::warn!("{error}; the new list of servers is lost when the agent restarts");
        }
    }

    /// Takes a renewed certificate for the same key: checked, saved, then used for new connections.
    pub(crate) fn renew(&self, certificate_pem: String, ca_pem: String) -> Result<(), String> {
        let mut identity = self.lock();
        let mut renewed = Identity { certificate_pem, ..identity.clone() };
        if !ca_pem.is_empty() {
            renewed.ca_pem = ca_pem;
        }
        renewed.check_names()?;
        // The CAs that we trust so far must vouch for it; a new CA alone proves nothing.
        let trusted: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(identity.ca_pem.as_bytes()).collect();
        verify_chain(&self.env, &renewed, &trusted.map_err(|_| "the known CA is not PEM")?)?;
        renewed.tls(&self.env).map_err(|error| error.to_string())?;
        if !cara_env::planted("renewal-not-persisted") {
            renewed.save(&*self.env.files, &self.file).map_err(|error| error.to_string())?;
        }
        cara_env::mark("renew.saved", String::new);
        self.tls.replace(&renewed.for_tls()).map_err(|error| error.to_string())?;
        *identity = renewed;
        Ok(())
    }
}
