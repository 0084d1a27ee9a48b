//! The identity in use: the only writer of its file, and of the TLS configuration made from it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_env::Env;
use cara_transport::Tls;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::watch;

use crate::enrol::verify_chain;
use crate::identity::{Identity, IdentityError};

/// When all nodes are asked to renew their certificates at once, they do so within this time.
const RENEW_SPREAD_MS: u64 = 10_000;

/// Holds the identity and saves each change before it counts.
pub(crate) struct Keeper {
    env: Env,
    file: PathBuf,
    identity: Mutex<Identity>,
    tls: Tls,
    /// Whom to trust has changed: the number of that answer.
    trusted: watch::Sender<u64>,
    /// A server wants the certificate renewed before its time.
    renew: watch::Sender<bool>,
}

impl Keeper {
    pub(crate) fn new(env: Env, file: PathBuf, identity: Identity) -> Result<Self, IdentityError> {
        let tls = identity
            .tls(&env)
            .map_err(|error| IdentityError::Damaged { file: file.clone(), problem: error.to_string() })?;
        let trusted = watch::Sender::new(identity.trust_epoch);
        Ok(Self { env, file, identity: Mutex::new(identity), tls, trusted, renew: watch::Sender::new(false) })
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

    /// Takes over whom to trust: checked, saved, then used for new connections. What was said before is not taken again: a
    /// server that is behind may say it, and others rely on what this node has said that it trusts.
    pub(crate) fn trust(&self, ca_pem: String, epoch: u64) -> Result<(), String> {
        let mut identity = self.lock();
        if epoch <= identity.trust_epoch {
            return Ok(());
        }
        let trusting = Identity { ca_pem, trust_epoch: epoch, ..identity.clone() };
        trusting.tls(&self.env).map_err(|error| error.to_string())?;
        trusting.save(&*self.env.files, &self.file).map_err(|error| error.to_string())?;
        self.tls.replace(&trusting.for_tls()).map_err(|error| error.to_string())?;
        *identity = trusting;
        tracing::info!(epoch, "whom to trust has changed");
        self.trusted.send_replace(epoch);
        Ok(())
    }

    /// Changes when whom to trust has changed.
    pub(crate) fn trusted(&self) -> watch::Receiver<u64> {
        self.trusted.subscribe()
    }

    /// A server wants the certificate renewed now.
    pub(crate) fn ask_for_renewal(&self) {
        self.renew.send_if_modified(|asked| !std::mem::replace(asked, true));
    }

    /// Does a server want that?
    pub(crate) fn is_renewal_asked(&self) -> bool {
        *self.renew.borrow()
    }

    /// Waits for that, at most so long, and then a little more: all nodes are asked at once.
    pub(crate) async fn renewal_asked(&self, limit: Duration) {
        let mut asked = self.renew.subscribe();
        let waiting = async { asked.wait_for(|asked| *asked).await.is_ok() };
        if cara_env::timeout(&*self.env.clock, limit, waiting).await == Ok(true) {
            self.env.clock.sleep(Duration::from_millis(self.env.rng.below(RENEW_SPREAD_MS))).await;
        }
    }

    /// Takes a renewed certificate for the same key: checked, saved, then used for new connections.
    pub(crate) fn renew(&self, certificate_pem: String, ca_pem: String, trust_epoch: u64) -> Result<(), String> {
        let mut identity = self.lock();
        let mut renewed = Identity { certificate_pem, ..identity.clone() };
        if !ca_pem.is_empty() && trust_epoch >= identity.trust_epoch {
            (renewed.ca_pem, renewed.trust_epoch) = (ca_pem, trust_epoch);
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
        self.trusted.send_if_modified(|epoch| std::mem::replace(epoch, renewed.trust_epoch) != renewed.trust_epoch);
        *identity = renewed;
        self.renew.send_replace(false);
        Ok(())
    }
}
