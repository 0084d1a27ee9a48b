//! The identity in use: the only writer of its file, and of the TLS configuration made from it.
//!
//! ```text
//! identity.json             who this node is
//! identity.json.prev        what it was before the last renewal, until a server has accepted the new one
//! identity.json.reenrolled  what `cara-agent reenroll` got; taken over before the next connection
//! ```
//! A renewal writes `.prev` first and the new identity then, and asks a server over a connection of its own. Accepted: `.prev`
//! goes. Rejected: `.prev` comes back. Nobody to ask: the new one is used, and whichever of both is accepted first stays. So no
//! crash and no lost answer leaves the node without an identity that works.
//!
//! `cara-agent reenroll` writes a file of its own and never this one, so it and a running agent can't overwrite each other.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_env::Env;
use cara_transport::Tls;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::watch;

use crate::config::Config;
use crate::enrol::verify_chain;
use crate::identity::{Identity, IdentityError};

/// When all nodes are asked to renew their certificates at once, they do so within this time.
const RENEW_SPREAD_MS: u64 = 10_000;

/// Holds the identity and saves each change before it counts.
pub(crate) struct Keeper {
    env: Env,
    file: PathBuf,
    previous_file: PathBuf,
    reenrolled_file: PathBuf,
    held: Mutex<Held>,
    tls: Tls,
    /// Whom to trust has changed: the number of that answer.
    trusted: watch::Sender<u64>,
    /// A server wants the certificate renewed before its time.
    renew: watch::Sender<bool>,
}

struct Held {
    current: Identity,
    /// As in `.prev`.
    previous: Option<Identity>,
    /// The one before is dialled with, to find out whether it is accepted where the current one is not.
    dials_previous: bool,
}

impl Held {
    /// The one before as it would be used now: with what this node has learned since. Trust is never taken back, because
    /// others rely on it.
    fn put_back(&self) -> Option<Identity> {
        let Identity { servers, ca_pem, trust_epoch, .. } = self.current.clone();
        self.previous.clone().map(|previous| Identity { servers, ca_pem, trust_epoch, ..previous })
    }
}

/// With which identity a connection was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialled {
    certificate_pem: String,
}

impl Keeper {
    /// Takes over what `cara-agent reenroll` left and reads what is there; none when this machine has no identity.
    ///
    /// # Errors
    /// When the identity is there and can't be used.
    pub(crate) fn open(env: Env, config: &Config) -> Result<Option<Self>, IdentityError> {
        let (file, reenrolled_file) = (config.identity_file(), config.reenrolled_file());
        let previous_file = config.previous_file();
        match (Identity::load(&env, &reenrolled_file), Identity::load(&env, &file)) {
            (Ok(Some(found)), Ok(Some(known))) if !found.is_same_node(&known) => {
                let file = reenrolled_file.display();
                tracing::error!("{file} is the identity of another node or cluster: it is not used; remove it");
            }
            (Ok(Some(found)), Ok(_) | Err(_)) => take_over(&env, config, &found)?,
            (Ok(None), Ok(_) | Err(_)) => {}
            (Err(error), Ok(_) | Err(_)) => tracing::error!("{error}"),
        }
        let Some(current) = Identity::load(&env, &file)? else { return Ok(None) };
        let previous = Identity::load(&env, &previous_file).unwrap_or_else(|error| {
            tracing::warn!("{error}; it is only the one before, and is left aside");
            None
        });
        let previous = previous.filter(|previous| previous.is_same_node(&current));
        let tls = current
            .tls(&env)
            .map_err(|error| IdentityError::Damaged { file: file.clone(), problem: error.to_string() })?;
        let (trusted, renew) = (watch::Sender::new(current.trust_epoch), watch::Sender::new(false));
        let held = Mutex::new(Held { current, previous, dials_previous: false });
        Ok(Some(Self { env, file, previous_file, reenrolled_file, held, tls, trusted, renew }))
    }

    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    pub(crate) fn identity(&self) -> Identity {
        self.lock().current.clone()
    }

    /// The identity that connections are made with from now on.
    pub(crate) fn dialled(&self) -> Dialled {
        let held = self.lock();
        let used = held.previous.as_ref().filter(|_| held.dials_previous).unwrap_or(&held.current);
        Dialled { certificate_pem: used.certificate_pem.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the servers. A list that can't be saved is used all the same: it is only a hint where to dial.
    pub(crate) fn remember_servers(&self, servers: &[String]) {
        let mut held = self.lock();
        if servers.is_empty() || held.current.servers == servers {
            return;
        }
        tracing::info!(?servers, "the list of servers has changed");
        held.current.servers = servers.to_vec();
        if let Err(error) = held.current.save(&*self.env.files, &self.file) {
            tracing::warn!("{error}; the new list of servers is lost when the agent restarts");
        }
    }

    /// Takes over whom to trust: checked, saved, then used for new connections. What was said before is not taken again: a
    /// server that is behind may say it, and others rely on what this node has said that it trusts.
    pub(crate) fn trust(&self, ca_pem: String, epoch: u64) -> Result<(), String> {
        let mut held = self.lock();
        if epoch <= held.current.trust_epoch {
            return Ok(());
        }
        let trusting = Identity { ca_pem, trust_epoch: epoch, ..held.current.clone() };
        trusting.tls(&self.env).map_err(|error| error.to_string())?;
        trusting.save(&*self.env.files, &self.file).map_err(|error| error.to_string())?;
        held.current = trusting;
        tracing::info!(epoch, "whom to trust has changed");
        self.use_dialled(&held)
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

    /// The identity with a renewed certificate for the same key, if that can be trusted. Nothing is changed yet.
    pub(crate) fn renewed(
        &self,
        certificate_pem: String,
        ca_pem: String,
        trust_epoch: u64,
    ) -> Result<Identity, String> {
        let current = self.identity();
        let mut renewed = Identity { certificate_pem, ..current.clone() };
        if !ca_pem.is_empty() && trust_epoch >= current.trust_epoch {
            (renewed.ca_pem, renewed.trust_epoch) = (ca_pem, trust_epoch);
        }
        renewed.check_names()?;
        // The CAs that we trust so far must vouch for it; a new CA alone proves nothing.
        let trusted: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(current.ca_pem.as_bytes()).collect();
        verify_chain(&self.env, &renewed, &trusted.map_err(|_| "the known CA is not PEM")?)?;
        renewed.tls(&self.env).map_err(|error| error.to_string())?;
        Ok(renewed)
    }

    /// Keeps what is used now, so that it can come back.
    pub(crate) fn keep_previous(&self) -> Result<(), String> {
        let mut held = self.lock();
        held.current.save(&*self.env.files, &self.previous_file).map_err(|error| error.to_string())?;
        held.previous = Some(held.current.clone());
        Ok(())
    }

    /// Saves a renewed identity, and uses it for new connections.
    pub(crate) fn put(&self, renewed: Identity) -> Result<(), String> {
        let mut held = self.lock();
        let renewed = Identity { servers: held.current.servers.clone(), ..renewed };
        if !cara_env::planted("renewal-not-persisted") {
            renewed.save(&*self.env.files, &self.file).map_err(|error| error.to_string())?;
        }
        held.current = renewed;
        self.renew.send_replace(false);
        self.use_current(&mut held)
    }

    /// A server has accepted a connection that was made with this: it stays, and the other one goes.
    pub(crate) fn accepted(&self, dialled: &Dialled) {
        let mut held = self.lock();
        if held.previous.is_none() {
            return;
        }
        if held.current.certificate_pem == dialled.certificate_pem {
            self.drop_previous(&mut held);
        } else if held.previous.as_ref().is_some_and(|p| p.certificate_pem == dialled.certificate_pem) {
            self.put_back(&mut held);
        }
    }

    /// The cluster has rejected a connection that was made with this. True when there is another one to be tried.
    pub(crate) fn rejected(&self, dialled: &Dialled) -> bool {
        let mut held = self.lock();
        let Some(previous) = &held.previous else { return false };
        if previous.certificate_pem == held.current.certificate_pem {
            self.drop_previous(&mut held);
            return false;
        }
        if held.current.certificate_pem == dialled.certificate_pem {
            tracing::warn!("the cluster rejects the renewed certificate: back to the one before");
            self.put_back(&mut held);
        } else {
            self.drop_previous(&mut held);
        }
        true
    }

    /// No server could be reached. A server whose clock is behind does not even finish a handshake with a certificate that is
    /// not valid yet: while it is not known which one is accepted, both take turns.
    pub(crate) fn unreachable(&self) {
        let mut held = self.lock();
        if held.previous.is_none() {
            return;
        }
        held.dials_previous = !held.dials_previous;
        if let Err(problem) = self.use_dialled(&held) {
            held.dials_previous = !held.dials_previous;
            tracing::warn!("can't use the other certificate: {problem}");
        }
    }

    /// Takes over what `cara-agent reenroll` left since the last look. True when there was something.
    pub(crate) fn adopt(&self, config: &Config) -> bool {
        let found = match Identity::load(&self.env, &self.reenrolled_file) {
            Ok(Some(found)) => found,
            Ok(None) => return false,
            Err(error) => {
                tracing::error!("{error}");
                return false;
            }
        };
        let mut held = self.lock();
        if !found.is_same_node(&held.current) {
            let file = self.reenrolled_file.display();
            tracing::error!("{file} is the identity of another node or cluster: it is not used; remove it");
            return false;
        }
        if let Err(error) = take_over(&self.env, config, &found) {
            tracing::error!("{error}");
            return false;
        }
        (held.current, held.previous) = (found, None);
        if let Err(problem) = self.use_current(&mut held) {
            tracing::error!("can't use the identity of `cara-agent reenroll`: {problem}");
            return false;
        }
        tracing::info!("the identity of `cara-agent reenroll` is in use");
        true
    }

    fn use_current(&self, held: &mut Held) -> Result<(), String> {
        held.dials_previous = false;
        self.use_dialled(held)
    }

    /// New connections are made with the identity that is dialled with, and trust whom the newest one trusts.
    fn use_dialled(&self, held: &Held) -> Result<(), String> {
        let dialled = if held.dials_previous { held.put_back() } else { None };
        let dialled = dialled.unwrap_or_else(|| held.current.clone());
        self.tls.replace(&dialled.for_tls()).map_err(|error| error.to_string())?;
        let epoch = held.current.trust_epoch;
        self.trusted.send_if_modified(|known| std::mem::replace(known, epoch) != epoch);
        Ok(())
    }

    fn drop_previous(&self, held: &mut Held) {
        held.previous = None;
        if let Err(error) = self.env.files.remove(&self.previous_file) {
            tracing::warn!("can't remove {}: {error}", self.previous_file.display());
        }
        if let Err(problem) = self.use_current(held) {
            tracing::error!("can't use the node's certificate: {problem}");
        }
    }

    /// The one before is the current one again.
    fn put_back(&self, held: &mut Held) {
        let Some(back) = held.put_back() else { return };
        if let Err(error) = back.save(&*self.env.files, &self.file) {
            tracing::warn!("{error}; it is decided again at the next start");
        }
        held.current = back;
        self.drop_previous(held);
    }
}

/// Makes an identity that `cara-agent reenroll` got this machine's own. A crash in between leaves it to be done again.
fn take_over(env: &Env, config: &Config, reenrolled: &Identity) -> Result<(), IdentityError> {
    reenrolled.save(&*env.files, &config.identity_file())?;
    let write = |file: PathBuf| move |source| IdentityError::Write { file, source };
    env.files.remove(&config.previous_file()).map_err(write(config.previous_file()))?;
    cara_env::mark("reenrol.adopted", || format!("node={}", config.node_name));
    env.files.remove(&config.reenrolled_file()).map_err(write(config.reenrolled_file()))
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
