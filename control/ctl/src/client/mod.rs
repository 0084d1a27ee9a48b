//! The REST client: one request over whichever server answers.
//!
//! It knows all servers of the cluster. A server that can't be reached, breaks off or answers "try again" is passed
//! over for the next one, with the same `Idempotency-Key`, until the deadline. A cluster carries out such a request at
//! most once, so a retry after a lost answer gets the answer that was lost.
//!
//! Invariant: no call without a deadline, and no mutation without an idempotency key.

mod address;
mod error;
mod sse;
mod transfer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cara_env::Env;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use address::Address;
pub use error::{ClientError, Trouble};
pub use sse::Watch;
pub use transfer::{Answer, Streaming};

use transfer::{Call, Reply, Transport};

/// How long a call may take when nobody says otherwise: several elections.
pub const LIMIT_DEFAULT: Duration = Duration::from_secs(20);
/// When every server refuses connections for this long, the cluster is down rather than electing.
const UNREACHABLE_GRACE: Duration = Duration::from_secs(3);
/// One server gets this long before the next one is asked. A frozen server accepts connections and says nothing; a
/// sound one may itself wait for an election for up to 8 s before it answers.
const ATTEMPT_MAX: Duration = Duration::from_secs(9);
/// Pause between two rounds through all servers; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause between two rounds: an election is over after about one second.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Where a cluster is and how to enter it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// All servers, `https://host:port` or `host:port`; `http://` for loopback only.
    pub servers: Vec<String>,
    /// Bearer token; empty sends none.
    pub token: String,
    /// SHA-256 of the cluster's CA certificate, hex. Required for `https`.
    pub ca_fingerprint: String,
}

/// Never prints the token.
impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// Told in one sentence when the client moves on to another server.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// A client of one cluster. Cheap to clone; clones share what they learnt about which server answers.
#[derive(Clone)]
pub struct Client {
    env: Env,
    transport: Arc<Transport>,
    limit: Duration,
    stale: bool,
    preferred: Arc<AtomicUsize>,
    notice: Notice,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("servers", &self.transport.addresses).finish_non_exhaustive()
    }
}

impl Client {
    /// Checks the addresses; connects to nobody yet.
    ///
    /// # Errors
    /// [`ClientError::Setup`] when there is no server, an address is malformed, or `https` comes without a fingerprint.
    pub fn new(env: &Env, access: &Access) -> Result<Self, ClientError> {
        let transport = Transport::new(env, access)?;
        Ok(Self {
            env: env.clone(),
            transport: Arc::new(transport),
            limit: LIMIT_DEFAULT,
            stale: false,
            preferred: Arc::new(AtomicUsize::new(0)),
            notice: Arc::new(|_| ()),
        })
    }

    /// Sets the deadline of each call, all its retries included.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Reads may be answered from a server's own memory, without asking for a quorum.
    #[must_use]
    pub fn with_stale_reads(mut self, stale: bool) -> Self {
        self.stale = stale;
        self
    }

    /// Sets who is told about failovers.
    #[must_use]
    pub fn with_notice(mut self, notice: Notice) -> Self {
        self.notice = notice;
        self
    }

    /// The servers that it knows, `host:port`.
    pub fn servers(&self) -> Vec<String> {
        self.transport.addresses.iter().map(|a| a.authority.clone()).collect()
    }

    /// Reads one resource. `path` begins with `/` and is relative to `/api/v1`.
    ///
    /// # Errors
    /// The server's [`ClientError::Problem`], or why no server answered.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.get_raw(path).await?.json()
    }

    /// Reads one resource and keeps the answer as it came, with its headers.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn get_raw(&self, path: &str) -> Result<Answer, ClientError> {
        let call = Call::new(Method::GET, self.with_consistency(path));
        self.whole(call).await
    }

    /// Creates. 409 comes back as a problem.
    ///
    /// # Errors
    /// As [`Client::get`]; [`ClientError::Unknown`] when the answer was lost and the deadline has passed.
    pub async fn post<B: Serialize>(&self, path: &str, body: &B) -> Result<Answer, ClientError> {
        self.mutate(Method::POST, path, Some(encode(body)?)).await
    }

    /// Replaces.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub async fn put<B: Serialize>(&self, path: &str, body: &B) -> Result<Answer, ClientError> {
        self.mutate(Method::PUT, path, Some(encode(body)?)).await
    }

    /// Removes.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub async fn delete(&self, path: &str) -> Result<Answer, ClientError> {
        self.mutate(Method::DELETE, path, None).await
    }

    /// Opens a long answer, such as logs. The deadline covers the beginning only.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn open(&self, path: &str) -> Result<Streaming, ClientError> {
        let call = Call { streaming: true, ..Call::new(Method::GET, path.to_owned()) };
        self.streaming(call).await
    }

    /// Follows committed changes after `revision` (`None`: from now on). `filter` is a query such as `kind=Node`.
    ///
    /// # Errors
    /// As [`Client::get`]; a problem with code `compacted` means: list again and watch from there.
    pub async fn watch(&self, filter: &str, revision: Option<u64>) -> Result<Watch, ClientError> {
        let path = if filter.is_empty() { "/watch".to_owned() } else { format!("/watch?{filter}") };
        let mut call = Call { streaming: true, ..Call::new(Method::GET, path) };
        call.headers.push(("accept", "text/event-stream".to_owned()));
        if let Some(revision) = revision {
            call.headers.push(("last-event-id", revision.to_string()));
        }
        Ok(Watch::new(self.streaming(call).await?))
    }

    async fn mutate(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Answer, ClientError> {
        let mut call = Call::new(method, path.to_owned());
        call.headers.push(("idempotency-key", cara_env::hex(&*self.env.rng, 16)));
        call.body = body;
        self.whole(call).await
    }

    fn with_consistency(&self, path: &str) -> String {
        let separator = if path.contains('?') { '&' } else { '?' };
        if self.stale { format!("{path}{separator}consistency=stale") } else { path.to_owned() }
    }

    async fn whole(&self, call: Call) -> Result<Answer, ClientError> {
        match self.run(call).await? {
            Reply::Whole(answer) => answer.or_problem(),
            Reply::Open(_) => Err(ClientError::Malformed("an endless answer".to_owned())),
        }
    }

    async fn streaming(&self, call: Call) -> Result<Streaming, ClientError> {
        match self.run(call).await? {
            Reply::Open(stream) => Ok(stream),
            Reply::Whole(answer) => {
                let status = answer.status;
                answer.or_problem()?;
                Err(ClientError::Malformed(format!("HTTP {status} instead of a stream")))
            }
        }
    }

    /// Rounds through the servers until one gives a final answer or the deadline passes.
    async fn run(&self, call: Call) -> Result<Reply, ClientError> {
        let started = self.env.clock.monotonic();
        let count = self.transport.addresses.len();
        let first = self.preferred.load(Ordering::Relaxed) % count;
        let mut pause = PAUSE_MIN;
        let mut may_have_arrived = false;
        let mut announced = false;
        loop {
            let mut troubles: Vec<(String, Trouble)> = Vec::with_capacity(count);
            for step in 0..count {
                let index = (first + step) % count;
                let left = self.limit.saturating_sub(self.env.clock.monotonic() - started);
                if left.is_zero() && step > 0 {
                    break;
                }
                let limit = if count == 1 { left } else { left.min(ATTEMPT_MAX) };
                match self.transport.attempt(index, &call, limit).await {
                    Ok(reply) => {
                        if let Some((server, trouble)) = troubles.first() {
                            self.say_moved(server, trouble, index);
                        }
                        self.preferred.store(index, Ordering::Relaxed);
                        return Ok(reply);
                    }
                    Err(trouble) => {
                        may_have_arrived |= trouble.may_have_arrived();
                        troubles.push((self.transport.addresses[index].authority.clone(), trouble));
                    }
                }
            }
            let waited = self.env.clock.monotonic() - started;
            let lost = may_have_arrived && call.method != Method::GET;
            if let Some(error) = verdict(&troubles, waited, waited + pause >= self.limit, lost) {
                return Err(error);
            }
            if !announced {
                announced = true;
                let busy = troubles.iter().find(|(_, t)| matches!(t, Trouble::Busy(_)));
                let reason = busy.or(troubles.first()).map(|(s, t)| format!("{s}: {t}")).unwrap_or_default();
                (self.notice)(&format!("{reason}; trying for up to {} s", self.limit.as_secs()));
            }
            self.env.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn say_moved(&self, from: &str, trouble: &Trouble, to: usize) {
        let to = &self.transport.addresses[to].authority;
        (self.notice)(&format!("{from}: {trouble}; went on with {to}"));
    }
}

/// Is it time to give up after a round in which no server gave a final answer?
fn verdict(troubles: &[(String, Trouble)], waited: Duration, over: bool, lost: bool) -> Option<ClientError> {
    let all = |test: fn(&Trouble) -> bool| troubles.iter().all(|(_, t)| test(t));
    if all(|t| matches!(t, Trouble::Untrusted(_))) {
        return Some(ClientError::Untrusted { tried: tried(troubles) });
    }
    let down = all(|t| matches!(t, Trouble::Unreachable(_) | Trouble::Untrusted(_))) && waited >= UNREACHABLE_GRACE;
    if !over && (lost || !down) {
        return None;
    }
    if lost {
        return Some(ClientError::Unknown { tried: tried(troubles), waited });
    }
    let busy = troubles.iter().find_map(|(_, t)| match t {
        Trouble::Busy(problem) => Some(problem.clone()),
        _ => None,
    });
    Some(match busy {
        Some(problem) => ClientError::Problem(problem),
        None => ClientError::Unreachable { tried: tried(troubles), waited },
    })
}

fn tried(troubles: &[(String, Trouble)]) -> Vec<String> {
    troubles.iter().map(|(server, trouble)| format!("{server}: {trouble}")).collect()
}

fn encode<B: Serialize>(body: &B) -> Result<Bytes, ClientError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|e| ClientError::Setup(format!("the request is not JSON: {e}")))
}

/// Whether a status says "not now, or not by me".
fn is_retryable(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT
    )
}
