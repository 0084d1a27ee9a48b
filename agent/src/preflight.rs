//! Everything that joining needs, tried from both sides before the join token is spent.
//!
//! ```text
//! folder, engine (here) -> a server answers, and is the token's -> token, name, address (there) -> clocks (here)
//! ```
//! A refusal here costs nothing: the same token works once the cause is gone.

use std::time::Duration;

use cara_env::Env;
use cara_proto::agent::{EnrollRequest, EnrollResponse};
use cara_transport::JoinToken;

use crate::backoff::Backoff;
use crate::config::Config;
use crate::enrol::{pending_key, probe, request_of, round};
use crate::error::{EnrolError, RunError};
use crate::runtime::ContainerRuntime;
use crate::transfer::listen;

/// An engine that is well answers at once; one that starts at the same time as the agent gets a moment.
const ENGINE_DEADLINE: Duration = Duration::from_secs(10);
/// Clocks that differ by more are worth a word: logs and certificates are read side by side.
const CLOCKS_APART: Duration = Duration::from_secs(30);
/// Rounds over all servers of a trial run; a cluster that elects a leader answers within two.
const TRIAL_ROUNDS: usize = 5;

/// What was found when nothing was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// `host:port` of the server that would let this machine in.
    pub server: String,
    /// The container engine and its version.
    pub engine: String,
    /// What the machine's clock is ahead of the server's, in ms; none when the server doesn't say its time.
    pub clock_ahead_ms: Option<i64>,
    /// `host:port` at which the server has reached this machine; none when it could not, and volumes will be relayed.
    pub reached_at: Option<String>,
}

/// Tries everything that joining needs, and spends nothing.
///
/// # Errors
/// The first thing that is wrong, with what to do about it.
pub async fn preflight(config: &Config, env: &Env, runtime: &dyn ContainerRuntime) -> Result<Findings, RunError> {
    let token = config.token.as_ref().ok_or_else(|| RunError::NoToken { folder: config.data_dir.clone() })?;
    probe(env, config)?;
    let csr = request_of(&pending_key(env, config, &config.pending_key_file())?)?;
    let request = EnrollRequest {
        token: token.secret.clone(),
        node_name: config.node_name.clone(),
        csr,
        address: config.advertise.clone(),
        ..EnrollRequest::default()
    };
    Ok(trial(env, config, token, runtime, &request, Some(TRIAL_ROUNDS)).await?)
}

/// The same as a part of joining: it goes on until a server answers.
pub(crate) async fn check(
    env: &Env,
    config: &Config,
    token: &JoinToken,
    runtime: &dyn ContainerRuntime,
    request: &EnrollRequest,
) -> Result<(), EnrolError> {
    let found = trial(env, config, token, runtime, request, None).await?;
    cara_env::point("enrol.checked", || format!("server={} node={}", found.server, config.node_name)).await;
    Ok(())
}

async fn trial(
    env: &Env,
    config: &Config,
    token: &JoinToken,
    runtime: &dyn ContainerRuntime,
    request: &EnrollRequest,
    rounds_max: Option<usize>,
) -> Result<Findings, EnrolError> {
    let engine = engine(env, runtime).await?;
    // The cluster dials the advertised address, so somebody has to answer there.
    let bound = listen::bind(env, &config.volume_listen, &config.advertise).await;
    let (listener, mut address) = bound.map_or((None, None), |(listener, address)| (Some(listener), Some(address)));
    let answering = listener.map(|listener| cara_env::spawn(async move { while listener.accept().await.is_ok() {} }));
    let asked = ask(env, config, token, request, &mut address, rounds_max).await;
    if let Some(answering) = answering {
        answering.abort();
        answering.await; // The port is free again once the task is gone.
    }
    let (server, answer) = asked?;
    let clock_ahead_ms = clocks(env.clock.wall_ms(), &answer)?;
    Ok(Findings { server, engine, clock_ahead_ms, reached_at: address })
}

async fn engine(env: &Env, runtime: &dyn ContainerRuntime) -> Result<String, EnrolError> {
    let what = match cara_env::timeout(&*env.clock, ENGINE_DEADLINE, runtime.info()).await {
        Ok(Ok(info)) => return Ok(info.engine),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("the container engine did not answer within {} s", ENGINE_DEADLINE.as_secs()),
    };
    let next = "start the engine, let the agent's user use its socket, or name another with --docker-host".to_owned();
    Err(EnrolError::NotReady { what, next })
}

/// Asks until a server answers. An address that can't be reached is given up unless the operator has named it.
async fn ask(
    env: &Env,
    config: &Config,
    token: &JoinToken,
    request: &EnrollRequest,
    address: &mut Option<String>,
    rounds_max: Option<usize>,
) -> Result<(String, EnrollResponse), EnrolError> {
    let mut backoff = Backoff::new(config.backoff_min, config.backoff_max);
    let mut rounds = 0;
    loop {
        let volume_address = address.clone().unwrap_or_default();
        let request = EnrollRequest { preflight: true, volume_address, ..request.clone() };
        match round(env, config, token, &request).await {
            Ok((Some(answered), _)) => return Ok(answered),
            Ok((None, _)) => {}
            Err(EnrolError::Refused { code, message, .. })
                if code == "address-unreachable" && !config.must_answer && address.is_some() =>
            {
                tracing::warn!("{message}; volumes of this node will travel through the servers");
                *address = None;
                continue;
            }
            Err(refused) => return Err(unspent(refused)),
        }
        rounds += 1;
        if rounds_max.is_some_and(|max| rounds >= max) {
            return Err(EnrolError::NotReady {
                what: format!("no server of the token could be asked ({})", token.servers.join(", ")),
                next: "open the way to one of them, and see that it runs".to_owned(),
            });
        }
        let wait = backoff.next(&*env.rng);
        tracing::warn!(
            "no server could say whether this machine may join; asking again in {:.1} s",
            wait.as_secs_f64()
        );
        env.clock.sleep(wait).await;
    }
}

/// A refusal that is not about the token itself leaves it as good as new; the person should know.
fn unspent(error: EnrolError) -> EnrolError {
    match error {
        EnrolError::Refused { server, code, message, hint } if !code.starts_with("join-token") => {
            let next = if message.starts_with("name:") { "choose a name with --name".to_owned() } else { hint };
            EnrolError::Refused { server, code, message, hint: format!("the join token is unspent: {next}") }
        }
        other => other,
    }
}

/// A certificate that isn't valid by this machine's clock is of no use to it.
fn clocks(now_ms: u64, answer: &EnrollResponse) -> Result<Option<i64>, EnrolError> {
    let EnrollResponse { server_time_ms, not_before_ms, not_after_ms, .. } = answer;
    if *server_time_ms == 0 {
        return Ok(None); // A server of a release that didn't say.
    }
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let ahead_ms = signed(now_ms).saturating_sub(signed(*server_time_ms));
    let apart = format!(
        "this machine's clock is {} s {} the server's",
        ahead_ms.unsigned_abs() / 1_000,
        if ahead_ms < 0 { "behind" } else { "ahead of" }
    );
    if now_ms < *not_before_ms || now_ms >= *not_after_ms {
        return Err(EnrolError::NotReady {
            what: format!("{apart}, so that its certificate would not be valid here"),
            next: "set the clock".to_owned(),
        });
    }
    if u128::from(ahead_ms.unsigned_abs()) > CLOCKS_APART.as_millis() {
        tracing::warn!("{apart}; set one of the two");
    }
    Ok(Some(ahead_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_700_000_000_000;
    const HOUR_MS: u64 = 3_600_000;

    fn answer() -> EnrollResponse {
        EnrollResponse {
            server_time_ms: NOW_MS,
            not_before_ms: NOW_MS - HOUR_MS,
            not_after_ms: NOW_MS + 90 * 24 * HOUR_MS,
            ..EnrollResponse::default()
        }
    }

    #[test]
    fn clocks_may_differ_as_long_as_the_certificate_is_valid_here() {
        for (now_ms, ahead_ms) in [(NOW_MS, 0), (NOW_MS - 59 * 60_000, -59 * 60_000), (NOW_MS + 40_000, 40_000)] {
            assert_eq!(clocks(now_ms, &answer()).unwrap(), Some(ahead_ms));
        }
        for now_ms in [NOW_MS - 2 * HOUR_MS, NOW_MS + 91 * 24 * HOUR_MS, 0] {
            let error = clocks(now_ms, &answer()).unwrap_err().to_string();
            assert!(error.contains("unspent") && error.contains("set the clock"), "{error}");
        }
        assert_eq!(clocks(0, &EnrollResponse::default()).unwrap(), None, "an older server says no time");
    }

    #[test]
    fn what_is_refused_before_the_token_is_spent_says_so() {
        let refused = |code: &str, message: &str| {
            let text = |text: &str| text.to_owned();
            let (server, code, message) = (text("s1:7443"), text(code), text(message));
            unspent(EnrolError::Refused { server, code, message, hint: text("do this") }).to_string()
        };
        let name = refused("invalid-field", "name: \"Rack7_N2\" must be ...; rack7-n2 would do");
        assert!(name.contains("rack7-n2 would do") && name.contains("unspent: choose a name with --name"), "{name}");
        let taken = refused("node-name-taken", "a node named n1 exists already");
        assert!(taken.contains("unspent: do this"), "{taken}");
        let spent = refused("join-token-spent", "the join token jt-1 is spent");
        assert!(!spent.contains("unspent"), "{spent}");
    }
}
