//! The network seam over turmoil's TCP. Addresses are `host:port`, with the names of the world's hosts.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use cara_env::{Clock, IoStream, Listener, Net};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

use crate::clock::SimClock;
use crate::link::Links;
use crate::trace;

/// The kernel sends the first SYN again after a second, then doubles, as Linux does.
const SYN_AGAIN: Duration = Duration::from_secs(1);
/// After six tries Linux gives up, about two minutes after the first.
const SYN_TRIES: u32 = 6;
/// How long a refusal takes.
const ROUND_TRIP: Duration = Duration::from_millis(5);

/// One host's network.
pub(crate) struct SimNet {
    pub(crate) host: String,
    pub(crate) links: Arc<Links>,
    pub(crate) clock: Arc<SimClock>,
    /// Numbers the world's connections.
    pub(crate) connections: Arc<AtomicU64>,
}

impl SimNet {
    fn wire(&self, stream: TcpStream) -> Wire {
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        Wire { host: self.host.clone(), id, stream }
    }
}

#[async_trait::async_trait]
impl Net for SimNet {
    async fn connect(&self, address: &str) -> io::Result<IoStream> {
        let peer = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let mut wait = SYN_AGAIN;
        for _ in 0..SYN_TRIES {
            if self.links.refuses(peer) && !self.links.silent(&self.host, peer) {
                self.clock.sleep(ROUND_TRIP).await; // turmoil delivers nothing to a host that runs no software.
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("{address} refuses connections")));
            }
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let wire = self.wire(stream);
                    trace::note(&self.host, "net.connect", &format!("c{} to {address}", wire.id));
                    return Ok(Box::pin(wire));
                }
                // turmoil refuses when the SYN is dropped; a real network says nothing at all.
                Err(error)
                    if error.kind() == io::ErrorKind::ConnectionRefused && self.links.silent(&self.host, peer) =>
                {
                    self.clock.sleep(wait).await;
                    wait *= 2;
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("{address} did not answer")))
    }

    async fn listen(&self, address: &str) -> io::Result<Box<dyn Listener>> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("{address} is not host:port"));
        let (host, port) = address.rsplit_once(':').ok_or_else(invalid)?;
        let port: u16 = port.parse().map_err(|_| invalid())?;
        if host != self.host && host != "0.0.0.0" {
            return Err(io::Error::new(
                io::ErrorKind::AddrNotAvailable,
                format!("{host} is not an address of {}", self.host),
            ));
        }
        let listener = TcpListener::bind(("0.0.0.0", port)).await?;
        let local = format!("{}:{}", self.host, listener.local_addr()?.port());
        let (host, connections) = (self.host.clone(), self.connections.clone());
        Ok(Box::new(SimListener { host, listener, local, connections }))
    }
}

struct SimListener {
    host: String,
    listener: TcpListener,
    local: String,
    connections: Arc<AtomicU64>,
}

#[async_trait::async_trait]
impl Listener for SimListener {
    async fn accept(&self) -> io::Result<(IoStream, String)> {
        let (stream, peer) = self.listener.accept().await?;
        let name = turmoil::reverse_lookup(peer.ip()).unwrap_or_else(|| peer.ip().to_string());
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        Ok((Box::pin(Wire { host: self.host.clone(), id, stream }), format!("{name}:{}", peer.port())))
    }

    fn local_address(&self) -> String {
        self.local.clone()
    }
}

/// One end of a connection; every byte that leaves it goes into the trace's hash.
struct Wire {
    host: String,
    id: u64,
    stream: TcpStream,
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(n)) = written {
            trace::wire(&self.host, self.id, &buf[..n]);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
