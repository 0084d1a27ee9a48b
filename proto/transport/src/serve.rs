//! Incoming connections: accept, handshake under a deadline, serve HTTP/1.1 or HTTP/2, end gracefully.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use cara_env::{Env, Executor, IoStream, Listener};
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::server::{Acceptor, ClientHello};
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::peer::source_of;
use crate::strangers::{Stranger, Strangers};
use crate::turnstile::{Crowd, Turnstile};
use crate::{Caller, LEADER_ONLY, Peer, Tls, Unanswered};

/// Bounds of one listener.
#[derive(Clone)]
pub struct Limits {
    /// Open connections; the next one waits in the kernel's queue. Sized for 10,000 agents and their operators.
    pub connections_max: usize,
    /// A peer that hasn't finished TLS by then is dropped.
    pub handshake: Duration,
    /// HTTP/2 streams per connection: raft, sessions and API calls of one peer, with room.
    pub streams_max: u32,
    /// HTTP/2 ping interval, and how long to wait for the answer.
    pub keepalive: Duration,
    /// How long open requests may go on after the shutdown was asked for.
    pub drain: Duration,
    /// Open connections from one address whose holder has shown no certificate; 0 = any number. It takes so many
    /// addresses to keep everyone else out as this number is smaller than [`Limits::connections_max`].
    pub connections_per_address_max: usize,
    /// A connection without a certificate on which no request has begun by then is closed: it costs memory and a slot.
    pub first_request: Duration,
    /// Does another server lead? Then whoever wants the leader only ([`Tls::to_leader`]) is told so at his first word. Asked
    /// for each of those; by default nobody else does.
    pub another_leads: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Is told of each connection that ended before its first request to keep one of these bounds.
    pub refused: Arc<dyn Fn(Refusal) + Send + Sync>,
}

/// Why a connection ended before its first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// What came was no TLS of ours, or its certificate is not valid.
    Handshake,
    /// The handshake took too long.
    HandshakeLate,
    /// Its address has too many already.
    AddressFull,
    /// No request began.
    FirstRequestLate,
    /// It wanted the leader, and another server leads.
    NotLeading,
    /// Handshakes wait too long at the moment.
    Crowd,
}

impl Refusal {
    /// One word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::HandshakeLate => "handshake-late",
            Self::AddressFull => "connections-per-address",
            Self::FirstRequestLate => "first-request-late",
            Self::NotLeading => "not-leading",
            Self::Crowd => "crowd",
        }
    }
}

/// Bytes of a request's head: a token, a few headers and a long path, many times over. HTTP/1.1 refuses more with 431, HTTP/2
/// ends the stream.
const HEAD_BYTES_MAX: u32 = 32 << 10;

/// A record with a fatal alert (RFC 8446, 5.1 and 6; RFC 7301, 3.2): "no protocol that you offer". It is sent in place of the
/// server's first message, when nothing is encrypted yet.
const NO_APPLICATION_PROTOCOL: [u8; 7] = [21, 3, 3, 0, 2, 2, 120];

/// What one stream may send ahead of its reader.
const STREAM_WINDOW: u32 = 1 << 20;
/// The same for a whole connection: more than a few streams, so that bulk data which nobody reads at the moment (a tunnel
/// whose other end is slow) leaves room for the heartbeats beside it.
const CONNECTION_WINDOW: u32 = 16 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            handshake: Duration::from_secs(10),
            streams_max: 512,
            keepalive: Duration::from_secs(10),
            drain: Duration::from_secs(3),
            connections_per_address_max: 1_024,
            first_request: Duration::from_secs(10),
            another_leads: Arc::new(|| false),
            refused: Arc::new(|_| ()),
        }
    }
}

/// Serves `app` until `shutdown` turns true, then lets open requests end within [`Limits::drain`]. Each request carries
/// a [`Caller`] extension.
pub async fn serve(
    env: &Env,
    listener: Box<dyn Listener>,
    tls: Tls,
    app: Router,
    limits: Limits,
    mut shutdown: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections_max));
    let strangers = Strangers::default();
    let turnstile = Turnstile::new(env.clock.clone());
    let mut failing = false;
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            biased;
            () = asked(&mut shutdown) => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most often. Others are being closed meanwhile; say it once per spell.
                if !failing {
                    tracing::warn!(%error, "can't accept connections; trying on");
                }
                failing = true;
                env.clock.sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        failing = false;
        let Some(stranger) = strangers.enter(source_of(&address), limits.connections_per_address_max) else {
            tracing::debug!(%address, "has too many connections");
            (limits.refused)(Refusal::AddressFull);
            continue;
        };
        let connection = Connection {
            env: env.clone(),
            tls: tls.clone(),
            app: app.clone(),
            limits: limits.clone(),
            shutdown: shutdown.clone(),
            turnstile: turnstile.clone(),
            address,
        };
        drop(cara_env::spawn(connection.run(stream, slot, stranger)));
    }
    drop(listener); // New connections are refused while the open ones end.
    let all = u32::try_from(limits.connections_max).unwrap_or(u32::MAX);
    let drained = cara_env::timeout(&*env.clock, limits.drain, slots.acquire_many(all)).await;
    if drained.is_err() {
        tracing::info!("connections still open after {:?} are dropped", limits.drain);
    }
}

/// Returns once the shutdown was asked for, or can't be any more.
async fn asked(shutdown: &mut watch::Receiver<bool>) {
    // The guard that `wait_for` returns must not live on: it isn't Send.
    drop(shutdown.wait_for(|stop| *stop).await);
}

struct Connection {
    env: Env,
    tls: Tls,
    app: Router,
    limits: Limits,
    shutdown: watch::Receiver<bool>,
    turnstile: Turnstile,
    address: String,
}

impl Connection {
    /// Reading the first message costs next to nothing; to answer it takes a turn. Nobody is sent away after that.
    async fn handshake(&self, stream: IoStream) -> Result<TlsStream<IoStream>, Refusal> {
        let failed = |error: io::Error| {
            tracing::debug!(address = %self.address, %error, "TLS handshake failed");
            Refusal::Handshake
        };
        let mut begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await.map_err(failed)?;
        if wants_leader(&begun.client_hello()) && (self.limits.another_leads)() {
            begun.io.write_all(&NO_APPLICATION_PROTOCOL).await.map_err(failed)?;
            begun.io.shutdown().await.map_err(failed)?;
            return Err(Refusal::NotLeading);
        }
        let turn = self.turnstile.turn().await.map_err(|Crowd| Refusal::Crowd)?;
        let mut rest = begun.into_stream(self.tls.server());
        let answered = poll_fn(|cx| Poll::Ready(Pin::new(&mut rest).poll(cx))).await;
        drop(turn);
        match answered {
            Poll::Ready(done) => done,
            Poll::Pending => rest.await,
        }
        .map_err(failed)
    }

    /// `_slot` counts the connection until it ends, `stranger` until it has shown a certificate.
    async fn run(mut self, stream: IoStream, _slot: OwnedSemaphorePermit, stranger: Stranger) {
        let accept = self.handshake(stream);
        let done = cara_env::timeout(&*self.env.clock, self.limits.handshake, accept).await;
        let stream = match done.unwrap_or(Err(Refusal::HandshakeLate)) {
            Ok(stream) => stream,
            Err(refusal) => {
                tracing::debug!(address = %self.address, refusal = refusal.as_str(), "no TLS connection");
                return (self.limits.refused)(refusal);
            }
        };
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let caller = Caller { peer: certificate.and_then(Peer::of), address: self.address.clone() };
        let stranger = caller.peer.is_none().then_some(stranger);
        let app = self.app.clone();
        let heard = Arc::new(AtomicBool::new(false));
        let hears = heard.clone();
        let unanswered = Unanswered::default();
        let told = unanswered.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            hears.store(true, Ordering::Relaxed);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(caller.clone());
            request.extensions_mut().insert(told.clone());
            app.clone().oneshot(request)
        });
        let mut builder = auto::Builder::new(Executor);
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.handshake)
            .max_buf_size(HEAD_BYTES_MAX as usize);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(self.limits.keepalive)
            .keep_alive_timeout(self.limits.keepalive)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD_BYTES_MAX)
            .max_concurrent_streams(self.limits.streams_max);
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        let mut serving = std::pin::pin!(serving);
        let clock = self.env.clock.clone();
        let silent = async {
            if stranger.is_some() {
                clock.sleep(self.limits.first_request).await;
            }
            if stranger.is_none() || heard.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let ended = tokio::select! {
            biased;
            ended = serving.as_mut() => ended,
            () = silent => {
                tracing::debug!(address = %self.address, "no request came");
                return (self.limits.refused)(Refusal::FirstRequestLate);
            }
            () = asked(&mut self.shutdown) => {
                serving.as_mut().graceful_shutdown();
                match cara_env::timeout(&*self.env.clock, self.limits.drain, serving).await {
                    Ok(ended) => ended,
                    Err(_) => return,
                }
            }
        };
        if let Err(error) = ended {
            // Noted before the connection is dropped, which is when its streams hear of it.
            if is_keepalive_timeout(&*error) {
                unanswered.note();
            }
            tracing::debug!(address = %self.address, %error, "connection ended");
        }
    }
}

fn wants_leader(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|mut offered| offered.any(|protocol| protocol == LEADER_ONLY))
}

/// Has the other end answered no ping? hyper gives no other sign of it than its words.
fn is_keepalive_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("keep-alive timed out") {
            return true;
        }
        cause = error.source();
    }
    false
}
