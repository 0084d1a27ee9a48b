//! One connection to a peer: dialled once for all who wait, dropped when it proves dead.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_env::{Elapsed, Env};
use tokio::sync::watch;
use tonic::transport::Channel;

/// A connection on which this many calls in a row got no answer is given up. One late answer is a slow disk; a link
/// that lost a segment for good never recovers.
const SILENT_MAX: u32 = 3;

/// Opens connections to members. The caller brings it, and with it TLS and the proof of who the peer is.
#[async_trait::async_trait]
pub trait Dial: Send + Sync + 'static {
    /// Connects to the raft service at `address`, `host:port`. Has no deadline of its own.
    async fn dial(&self, address: &str) -> io::Result<Channel>;
}

/// How a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No answer before the deadline.
    Silent,
    /// The transport reported an error.
    Broken,
}

pub(crate) type Outcome = Option<Result<Channel, (io::ErrorKind, String)>>;

#[derive(Default)]
enum State {
    #[default]
    Closed,
    Dialling(watch::Receiver<Outcome>),
    Open(Channel),
}

/// The channel, or what will tell of it.
pub(crate) enum Begun {
    Open(Channel),
    Dialling(watch::Receiver<Outcome>),
}

#[derive(Default)]
struct Inner {
    state: State,
    silent: u32,
}

/// Shared by the clients of one peer.
pub(crate) struct Connection {
    env: Env,
    dial: Arc<dyn Dial>,
    address: String,
    limit: Duration,
    inner: Arc<Mutex<Inner>>,
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(crate) fn new(env: Env, dial: Arc<dyn Dial>, address: &str, limit: Duration) -> Self {
        Self { env, dial, address: address.to_owned(), limit, inner: Arc::default() }
    }

    /// The open channel, or the outcome of the dial that is going on, or of a new one.
    ///
    /// The dial is a task of its own: callers give up after milliseconds, and a dial that is cancelled each time would
    /// never finish on a slow link.
    pub(crate) async fn channel(&self) -> io::Result<Channel> {
        let mut outcome = match self.begin() {
            Begun::Open(channel) => return Ok(channel),
            Begun::Dialling(outcome) => outcome,
        };
        let done = outcome.wait_for(Option::is_some).await;
        match done.as_deref() {
            Ok(Some(Ok(channel))) => Ok(channel.clone()),
            Ok(Some(Err((kind, message)))) => Err(io::Error::new(*kind, message.clone())),
            _ => Err(io::Error::other("the dial was given up")),
        }
    }

    /// Dials unless the channel is open or being dialled. Waits for nothing.
    pub(crate) fn begin(&self) -> Begun {
        let mut inner = lock(&self.inner);
        match &inner.state {
            State::Open(channel) => Begun::Open(channel.clone()),
            State::Dialling(outcome) => Begun::Dialling(outcome.clone()),
            State::Closed => {
                let outcome = self.start();
                inner.state = State::Dialling(outcome.clone());
                Begun::Dialling(outcome)
            }
        }
    }

    fn start(&self) -> watch::Receiver<Outcome> {
        let (tell, outcome) = watch::channel(None);
        let (env, dial, address) = (self.env.clone(), self.dial.clone(), self.address.clone());
        let (limit, inner) = (self.limit, self.inner.clone());
        drop(cara_env::spawn(async move {
            let dialled = cara_env::timeout(&*env.clock, limit, dial.dial(&address)).await;
            let result = match dialled {
                Ok(Ok(channel)) => Ok(channel),
                Ok(Err(error)) => Err((error.kind(), format!("can't reach {address}: {error}"))),
                Err(Elapsed) => Err((io::ErrorKind::TimedOut, format!("{address} did not answer within {limit:?}"))),
            };
            let mut inner = lock(&inner);
            inner.silent = 0;
            inner.state = match &result {
                Ok(channel) => State::Open(channel.clone()),
                Err(_) => State::Closed,
            };
            drop(inner);
            tell.send_replace(Some(result));
        }));
        outcome
    }

    /// A call got its answer.
    pub(crate) fn answered(&self) {
        lock(&self.inner).silent = 0;
    }

    /// A call got none. The next one dials again if this connection is beyond hope.
    pub(crate) fn lost(&self, how: Lost) {
        let mut inner = lock(&self.inner);
        inner.silent += 1;
        if matches!(inner.state, State::Open(_)) && (how == Lost::Broken || inner.silent >= SILENT_MAX) {
            inner.state = State::Closed;
            inner.silent = 0;
        }
    }
}
