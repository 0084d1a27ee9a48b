//! Keeps this server trusted and trusting, without a restart: its own certificate, and the CAs that it trusts.
//!
//! ```text
//! the state says whom to trust ─► bundle saved, in use ─► leader told (Attest) ─► recorded
//! due, or of a CA that goes    ─► RenewServer ─► recorded ─► saved, in use for new connections ─► leader told (Attest)
//! not valid by our own clock   ─► signed here with the CA from our own state ─► saved, in use ─► RenewServer as above
//! ```
//! Level-triggered: what is on disk is compared with the state and the clock, so that a crash, a lost answer or a new leader
//! at any point costs another look. Between servers a certificate is good because the CA has signed it; the one before stays
//! good until its own end, so nobody is locked out between two of these steps.
//!
//! A server that was off past the end of its certificate needs nobody: it holds the CA's key, as every server does, and
//! signs for itself. That also brings back a cluster in which all servers were off.
//!
//! Invariant: whom to trust never goes back to what was said before (`trust_epoch`): the state on disk may be older than
//! `server.json` after a power loss, and what was told to the leader holds.

use std::time::Duration;

use cara_core::ServerId;
use cara_transport::{Leaf, Role};

use crate::api::SharedApi;
use crate::api::certificates::{Attested, Renewed};
use crate::error::chain;
use crate::pki;

/// The clock may step, so the time that is left is computed anew at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// After a step that failed; doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest wait after a step that failed: an outage that is over shall not be felt for long.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// What the state says about this server and about whom to trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Recorded {
    /// All servers know the commands that this needs.
    is_supported: bool,
    trust_epoch: u64,
    signing_ca: u64,
    /// This server's record: its certificate, what it is known to trust, and whether one before is still accepted.
    own: Option<(String, u64, bool)>,
}

/// What this server has on disk and uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Kept {
    trust_epoch: u64,
    /// The newest CA that it trusts.
    trusts: u64,
    /// The CA that signed its certificate.
    ca: u64,
    leaf: Leaf,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    SignForOneself,
    TakeBundle,
    Renew,
    Attest,
    Wait(Duration),
}

fn next_step(recorded: &Recorded, kept: &Kept, jitter: u64, now_ms: u64) -> Step {
    if !kept.leaf.is_valid(now_ms) {
        return Step::SignForOneself;
    }
    if kept.trust_epoch < recorded.trust_epoch {
        return Step::TakeBundle;
    }
    let due_in = kept.leaf.due_in(jitter, now_ms);
    let end_in = Duration::from_millis(kept.leaf.until_ms.saturating_sub(now_ms));
    let wait = Step::Wait(LOOK_AGAIN.min(if due_in.is_zero() { end_in } else { due_in }));
    // Behind in the log: what it says about certificates is from before.
    let is_behind = kept.trust_epoch > recorded.trust_epoch;
    let Some((fingerprint, trusts, has_previous)) = &recorded.own else { return wait };
    if !recorded.is_supported || is_behind {
        return wait;
    }
    let is_recorded = *fingerprint == kept.leaf.fingerprint;
    if *trusts < kept.trusts || (is_recorded && *has_previous) {
        return Step::Attest;
    }
    if due_in.is_zero() || kept.ca < recorded.signing_ca || !is_recorded {
        return Step::Renew;
    }
    wait
}

/// Runs until the server stops.
pub async fn run(api: SharedApi) {
    let jitter = api.env.rng.below(1000);
    let mut changed = api.administration.clone();
    let mut retry = RETRY_MIN;
    loop {
        changed.borrow_and_update();
        let step = next_step(&recorded(&api), &kept(&api), jitter, api.env.clock.wall_ms());
        let done = match step {
            Step::SignForOneself => sign_for_oneself(&api).await,
            Step::TakeBundle => take_bundle(&api).await,
            Step::Renew => renew(&api).await,
            Step::Attest => attest(&api).await,
            Step::Wait(wait) => {
                retry = RETRY_MIN;
                let more = tokio::select! {
                    biased;
                    more = changed.changed() => more.is_ok(),
                    () = api.env.clock.sleep(wait) => true,
                };
                if more { continue } else { return }
            }
        };
        let Err(problem) = done else { continue };
        // Never longer than what is left, and not without end for a short life.
        let (life, left) = api.keeper.look(|_, leaf| (leaf.life(), leaf.until_ms));
        let wait = retry.min(RETRY_MAX).min((life / 30).max(RETRY_MIN));
        retry = wait * 2;
        let left_s = left.saturating_sub(api.env.clock.wall_ms()) / 1000;
        tracing::warn!(
            ?step,
            "{problem}; trying again in {} s, the certificate is good for {left_s} s",
            wait.as_secs()
        );
        if !rest(&api, wait).await {
            return;
        }
    }
}

/// Waits after a step that failed. False when the server stops.
pub(crate) async fn rest(api: &SharedApi, wait: Duration) -> bool {
    let mut shutdown = api.shutdown.clone();
    tokio::select! {
        biased;
        () = api.env.clock.sleep(wait) => true,
        _ = shutdown.wait_for(|stop| *stop) => false,
    }
}

fn recorded(api: &SharedApi) -> Recorded {
    api.read_local(|state| {
        let Some(cluster) = state.cluster() else { return Recorded::default() };
        Recorded {
            is_supported: state.supports(cara_core::Feature::Lifecycle),
            trust_epoch: cluster.trust_epoch,
            signing_ca: cluster.signing_ca(),
            own: state.server(ServerId(api.identity.server_id)).map(|server| {
                let of = &server.certificate;
                (of.fingerprint.clone(), of.newest_trusted(), of.previous.is_some())
            }),
        }
    })
}

fn kept(api: &SharedApi) -> Kept {
    api.keeper.look(|identity, leaf| Kept {
        trust_epoch: identity.trust_epoch,
        trusts: identity.trusts.max(1),
        ca: identity.ca.max(1),
        leaf: leaf.clone(),
    })
}

/// Takes over whom to trust from the state.
async fn take_bundle(api: &SharedApi) -> Result<(), String> {
    let said = api.read_local(|state| {
        state.cluster().map(|of| (of.trust_epoch, of.newest_ca(), of.bundle_pem(), of.chain_pem()))
    });
    let Some((epoch, trusts, ca_pem, chain_pem)) = said else { return Ok(()) };
    let taken = api.keeper.change(|identity| {
        (identity.trust_epoch, identity.trusts) = (epoch, trusts);
        (identity.ca_pem, identity.chain_pem) = (ca_pem, chain_pem);
    });
    taken.map_err(|error| format!("can't take over whom to trust: {}", chain(&error)))?;
    tracing::info!(epoch, "whom to trust has changed");
    cara_env::point("bundle.saved", || format!("host={} epoch={epoch}", api.identity.name)).await;
    Ok(())
}

/// A certificate from the CA of our own state, for when nobody would talk to us any more.
async fn sign_for_oneself(api: &SharedApi) -> Result<(), String> {
    let (key_pem, hosts) = api.keeper.look(|identity, _| (identity.key_pem.clone(), own_hosts(identity)));
    let ca = crate::server::open_ca(api).map_err(|error| {
        format!("the server's certificate is not valid by this machine's clock, and it can't sign another: {error}")
    })?;
    let (_, csr) = pki::request_for(&key_pem).map_err(|error| chain(&error))?;
    let role = Role::Server(api.identity.server_id);
    let issued = ca.issue(&api.env, &role, &csr, &hosts).map_err(|error| chain(&error))?;
    use_certificate(api, issued.pem, issued.ca).await?;
    tracing::warn!("the server's certificate was not valid by this machine's clock: it has signed itself another");
    Ok(())
}

/// The hosts that a certificate of this server names.
fn own_hosts(identity: &crate::identity::ServerIdentity) -> Vec<String> {
    crate::setup::hosts_of(&[&identity.advertise, &identity.listen, "localhost", "127.0.0.1"])
}

/// Asks the leader for the next certificate, and uses it.
async fn renew(api: &SharedApi) -> Result<(), String> {
    let (key_pem, ca, fingerprint, hosts) = api.keeper.look(|identity, leaf| {
        (identity.key_pem.clone(), identity.ca.max(1), leaf.fingerprint.clone(), own_hosts(identity))
    });
    let (_, csr) = pki::request_for(&key_pem).map_err(|error| chain(&error))?;
    cara_env::point("leaf.sent", || format!("server={}", api.identity.name)).await;
    let renewed = api.ask_for_certificate(csr, ca, &fingerprint, hosts).await;
    let renewed = renewed.map_err(|error| format!("can't renew the server's certificate: {error}"))?;
    cara_env::point("leaf.answered", || format!("server={}", api.identity.name)).await;
    let Renewed { certificate_pem, ca, revision } = renewed;
    let leaf = Leaf::of(&certificate_pem)?;
    if !leaf.is_valid(api.env.clock.wall_ms()) {
        return Err(
            "the renewed certificate is not valid by this machine's clock: set the clock, here or on the leader".into(),
        );
    }
    // The leader dates certificates by its own clock. Without the wait this server would renew without end.
    let is_due = leaf.due_in(0, api.env.clock.wall_ms()).is_zero();
    use_certificate(api, certificate_pem, ca).await?;
    tracing::info!("the server's certificate is renewed");
    until_applied(api, revision).await;
    if is_due {
        return Err(
            "the renewed certificate is due as well by this machine's clock: set the clock, here or on the leader"
                .into(),
        );
    }
    Ok(())
}

/// Saved, then used for new connections; what is cached was opened with the one before.
async fn use_certificate(api: &SharedApi, certificate_pem: String, ca: u64) -> Result<(), String> {
    let taken = api.keeper.change(|identity| (identity.certificate_pem, identity.ca) = (certificate_pem, ca));
    taken.map_err(|error| format!("can't use the renewed certificate: {}", chain(&error)))?;
    cara_env::point("leaf.saved", || format!("server={}", api.identity.name)).await;
    api.forwarder.forget_all();
    Ok(())
}

/// Tells the leader whom this server trusts and what it uses.
async fn attest(api: &SharedApi) -> Result<(), String> {
    let (trusts, fingerprint) = api.keeper.look(|identity, leaf| (identity.trusts.max(1), leaf.fingerprint.clone()));
    let told = api.attest_to_leader(Attested { trusts, fingerprint }).await;
    let revision = told.map_err(|error| format!("can't tell the leader whom this server trusts: {error}"))?;
    cara_env::point("bundle.attested", || format!("server={} ca={trusts}", api.identity.name)).await;
    until_applied(api, revision).await;
    Ok(())
}

/// Until this server has applied what the leader has recorded: before, the state would ask for it once more.
pub(crate) async fn until_applied(api: &SharedApi, revision: u64) {
    let mut changed = api.changed.clone();
    let applied = async {
        loop {
            changed.borrow_and_update();
            if api.raft.with_state(|machine| machine.applied()) >= revision || changed.changed().await.is_err() {
                return;
            }
        }
    };
    // One that is far behind looks again later.
    let _ = cara_env::timeout(&*api.env.clock, api.config.request_deadline, applied).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Recorded {
        let own = Some(("a".into(), 1, false));
        Recorded { is_supported: true, trust_epoch: 0, signing_ca: 1, own }
    }

    fn kept() -> Kept {
        let leaf = Leaf { fingerprint: "a".into(), from_ms: 0, until_ms: 90_000_000 };
        Kept { trust_epoch: 0, trusts: 1, ca: 1, leaf }
    }

    fn step(recorded: &Recorded, kept: &Kept) -> Step {
        next_step(recorded, kept, 0, 1_000_000)
    }

    #[test]
    fn it_renews_when_due_when_the_ca_goes_and_when_another_certificate_is_recorded() {
        assert_eq!(step(&recorded(), &kept()), Step::Wait(LOOK_AGAIN));
        assert_eq!(next_step(&recorded(), &kept(), 0, 59_990_000), Step::Wait(Duration::from_secs(10)));
        assert_eq!(next_step(&recorded(), &kept(), 0, 60_000_000), Step::Renew);
        assert_eq!(next_step(&recorded(), &kept(), 1000, 60_000_000), Step::Wait(LOOK_AGAIN), "others first");
        let of_next = Recorded { signing_ca: 2, own: Some(("a".into(), 2, false)), ..recorded() };
        assert_eq!(step(&of_next, &kept()), Step::Renew);
        let lost = Recorded { own: Some(("b".into(), 1, true)), ..recorded() };
        assert_eq!(step(&lost, &kept()), Step::Renew, "the answer was lost: another one");
        let old = Recorded { is_supported: false, ..lost };
        assert_eq!(step(&old, &kept()), Step::Wait(LOOK_AGAIN), "some server does not know it");
    }

    #[test]
    fn whom_to_trust_is_saved_before_it_is_told_and_never_goes_back() {
        let told = Recorded { trust_epoch: 1, ..recorded() };
        assert_eq!(step(&told, &kept()), Step::TakeBundle);
        let saved = Kept { trust_epoch: 1, trusts: 2, ..kept() };
        assert_eq!(step(&told, &saved), Step::Attest);
        assert_eq!(step(&recorded(), &saved), Step::Wait(LOOK_AGAIN), "the state is of before");
        let unused = Recorded { own: Some(("a".into(), 1, true)), ..recorded() };
        assert_eq!(step(&unused, &kept()), Step::Attest, "it is used: the one before may go");
    }

    #[test]
    fn a_certificate_that_is_not_valid_here_is_replaced_without_asking_anybody() {
        assert_eq!(next_step(&Recorded::default(), &kept(), 0, 90_000_000), Step::SignForOneself);
        let ahead = Kept { leaf: Leaf { from_ms: 5_000_000, ..kept().leaf }, ..kept() };
        assert_eq!(step(&recorded(), &ahead), Step::SignForOneself, "the clock was weeks ahead when it was signed");
    }
}
