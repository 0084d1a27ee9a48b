//! A new certificate before the old one ends, over the session's connection.
//!
//! In two phases, so that no crash and no lost answer at any point leaves the node without one that works:
//!
//! ```text
//! ask -> keep the old one as .prev -> save the new one -> ask over a new connection: is it accepted?
//!         accepted ----------> .prev goes
//!         rejected ----------> .prev comes back, and it is tried again later
//!         nobody answers ----> the new one is used; the next session decides, see `keeper`
//! ```
//! The key stays. The leader accepts the old certificate until it has seen the new one in a session.

use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use cara_proto::agent::agent_client::AgentClient;
use cara_proto::agent::{CheckIdentityRequest, RenewRequest};
use rcgen::{CertificateParams, KeyPair};
use tonic::transport::Channel;

use crate::backoff::Backoff;
use crate::keeper::Keeper;
use crate::session::refusal;

/// The wall clock may step: the time that is left is computed anew at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
/// After a failed renewal; a third of a certificate's life is left for it.
const RETRY_MIN: Duration = Duration::from_secs(60);
/// The longest wait after a failed renewal.
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// What a renewal needs, for as long as a session lasts.
pub(crate) struct Renewer {
    pub(crate) env: Env,
    pub(crate) keeper: Arc<Keeper>,
    /// The leader's.
    pub(crate) address: String,
    /// The session's.
    pub(crate) channel: Channel,
    pub(crate) connect_deadline: Duration,
    pub(crate) call_deadline: Duration,
}

/// What a server says about a renewed certificate.
enum Checked {
    Accepted,
    Rejected(String),
    /// Nobody could be asked.
    Unknown(String),
}

/// Renews whenever two thirds of the certificate's life have passed, and up to a twentieth more, so that nodes enrolled
/// together don't renew together. Never returns.
pub(crate) async fn keep_renewed(renewer: Renewer) {
    let Renewer { env, keeper, .. } = &renewer;
    let mut backoff = Backoff::new(RETRY_MIN, RETRY_MAX);
    let jitter = env.rng.below(1000);
    let due_in = || match keeper.identity().leaf() {
        Ok(_) if keeper.is_renewal_asked() => Duration::ZERO,
        Ok(leaf) => leaf.due_in(jitter, env.clock.wall_ms()),
        Err(problem) => {
            tracing::error!("can't read the node's certificate: {problem}");
            LOOK_AGAIN
        }
    };
    loop {
        let wait = due_in();
        if !wait.is_zero() {
            keeper.renewal_asked(wait.min(LOOK_AGAIN)).await;
            continue;
        }
        match renewer.renew().await {
            Ok(()) if due_in().is_zero() => {
                // The leader dates certificates by its own clock. Without the wait this node would renew without end.
                let wait = backoff.next(&*env.rng);
                tracing::warn!(
                    "the node's certificate is renewed, and by this machine's clock the new one is due as well: set the \
                     clock; trying again in {} s",
                    wait.as_secs()
                );
                env.clock.sleep(wait).await;
            }
            Ok(()) => {
                tracing::info!("the node's certificate is renewed");
                backoff.reset();
            }
            Err(problem) => {
                let wait = backoff.next(&*env.rng);
                tracing::warn!("can't renew the node's certificate: {problem}; trying again in {} s", wait.as_secs());
                env.clock.sleep(wait).await;
            }
        }
    }
}

impl Renewer {
    async fn renew(&self) -> Result<(), String> {
        let Self { env, keeper, channel, call_deadline, .. } = self;
        let key = KeyPair::from_pem(&keeper.identity().key_pem).map_err(|error| error.to_string())?;
        let csr = CertificateParams::default().serialize_request(&key).map_err(|error| error.to_string())?;
        let request = RenewRequest { csr: csr.der().to_vec() };
        cara_env::point("renew.sent", String::new).await;
        let call = async { AgentClient::new(channel.clone()).renew(request).await };
        let answer = cara_env::timeout(&*env.clock, *call_deadline, call)
            .await
            .map_err(|_| format!("no answer within {call_deadline:?}"))?
            .map_err(|status| status.message().to_owned())?
            .into_inner();
        cara_env::point("renew.answered", String::new).await;
        let renewed = keeper.renewed(answer.certificate_pem, answer.ca_pem, answer.trust_epoch)?;
        keeper.keep_previous()?;
        cara_env::point("renew.prev_saved", String::new).await;
        keeper.put(renewed)?;
        cara_env::point("renew.saved", String::new).await;
        let dialled = keeper.dialled();
        match self.check().await {
            Checked::Accepted => keeper.accepted(&dialled),
            Checked::Rejected(problem) => {
                keeper.rejected(&dialled);
                return Err(format!("the renewed certificate is rejected ({problem}), the one before is used on"));
            }
            Checked::Unknown(problem) => {
                tracing::warn!("the renewed certificate is in use, and no server could be asked about it: {problem}");
            }
        }
        cara_env::point("renew.done", String::new).await;
        Ok(())
    }

    /// Asks the leader over a connection that is made with the renewed certificate.
    async fn check(&self) -> Checked {
        let Self { env, keeper, address, connect_deadline, call_deadline, .. } = self;
        let connecting = cara_transport::connect(env, address, keeper.tls().client(), *connect_deadline);
        let channel = match connecting.await {
            Ok(channel) => channel,
            Err(error) => return Checked::Unknown(error.to_string()),
        };
        let call = async { AgentClient::new(channel).check_identity(CheckIdentityRequest {}).await };
        match cara_env::timeout(&*env.clock, *call_deadline, call).await {
            Err(_) => Checked::Unknown(format!("no answer within {call_deadline:?}")),
            Ok(Err(status)) => {
                let refusal = refusal(&status);
                let verdict = if refusal.rejects_identity { Checked::Rejected } else { Checked::Unknown };
                verdict(refusal.message)
            }
            Ok(Ok(answer)) => {
                let answer = answer.into_inner();
                match answer.node_id == keeper.identity().node_id {
                    true if answer.current => Checked::Accepted,
                    true => Checked::Rejected("a newer one is recorded".to_owned()),
                    false => Checked::Rejected(format!("it is taken for node {}", answer.node_id)),
                }
            }
        }
    }
}
