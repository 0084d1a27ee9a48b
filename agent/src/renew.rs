//! A new certificate before the old one ends, over the session's connection.
//!
//! The key stays, and the file is replaced whole, so a crash leaves the old certificate or the new one, and both are
//! valid: the leader accepts the old one until it has seen the new one in use.

use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use cara_proto::agent::RenewRequest;
use cara_proto::agent::agent_client::AgentClient;
use rcgen::{CertificateParams, KeyPair};
use tonic::transport::Channel;

use crate::backoff::Backoff;
use crate::keeper::Keeper;

/// The wall clock may step: the time that is left is computed anew at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
/// After a failed renewal; a third of a certificate's life is left for it.
const RETRY_MIN: Duration = Duration::from_secs(60);
/// The longest wait after a failed renewal.
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// Renews whenever two thirds of the certificate's life have passed, and up to a twentieth more, so that nodes enrolled
/// together don't renew together. Never returns.
pub(crate) async fn keep_renewed(env: Env, keeper: Arc<Keeper>, channel: Channel, deadline: Duration) {
    let mut backoff = Backoff::new(RETRY_MIN, RETRY_MAX);
    let jitter = env.rng.below(1000);
    let due_in = || match keeper.identity().validity() {
        Ok(_) if keeper.is_renewal_asked() => Duration::ZERO,
        Ok(validity) => until_due(validity, jitter, env.clock.wall_ms()),
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
        match renew(&env, &keeper, channel.clone(), deadline).await {
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

/// How long until the renewal is due. `jitter` in thousandths of a twentieth of the certificate's life.
fn until_due((from_s, until_s): (i64, i64), jitter: u64, now_ms: u64) -> Duration {
    let from_ms = u64::try_from(from_s).unwrap_or_default().saturating_mul(1000);
    let until_ms = u64::try_from(until_s).unwrap_or_default().saturating_mul(1000);
    let life = until_ms.saturating_sub(from_ms);
    let due = from_ms + life / 3 * 2 + life / 20_000 * jitter;
    Duration::from_millis(due.saturating_sub(now_ms))
}

async fn renew(env: &Env, keeper: &Keeper, channel: Channel, deadline: Duration) -> Result<(), String> {
    let key = KeyPair::from_pem(&keeper.identity().key_pem).map_err(|error| error.to_string())?;
    let csr = CertificateParams::default().serialize_request(&key).map_err(|error| error.to_string())?;
    let request = RenewRequest { csr: csr.der().to_vec() };
    cara_env::point("renew.sent", String::new).await;
    let call = async { AgentClient::new(channel).renew(request).await };
    let answer = cara_env::timeout(&*env.clock, deadline, call)
        .await
        .map_err(|_| format!("no answer within {deadline:?}"))?
        .map_err(|status| status.message().to_owned())?
        .into_inner();
    cara_env::point("renew.answered", String::new).await;
    keeper.renew(answer.certificate_pem, answer.ca_pem, answer.trust_epoch)?;
    cara_env::point("renew.done", String::new).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_after_two_thirds_of_life_and_up_to_a_twentieth_more() {
        let life = (1_000, 91_000); // 90 000 s
        assert_eq!(until_due(life, 0, 1_000_000), Duration::from_secs(60_000));
        assert_eq!(until_due(life, 1000, 1_000_000), Duration::from_secs(64_500));
        assert_eq!(until_due(life, 0, 61_000_000), Duration::ZERO);
        assert_eq!(until_due(life, 1000, 99_000_000), Duration::ZERO);
    }
}
