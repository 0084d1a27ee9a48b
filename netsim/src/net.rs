//! The network seam over turmoil's TCP. Addresses are `host:port`, with the names of the world's hosts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cara_env::{Clock, IoStream, Listener, Net};
use turmoil::net::{TcpListener, TcpStream};

use crate::clock::SimClock;
use crate::conn::Conns;
use crate::link::Links;
use crate::pipe::Pipes;
use crate::trace;
use crate::wire::Wire;

/// The kernel sends the first SYN again after a second, then doubles, as Linux does.
const SYN_AGAIN: Duration = Duration::from_secs(1);
/// After six tries Linux gives up, about two minutes after the first.
const SYN_TRIES: u32 = 6;
/// How long a refusal takes.
const ROUND_TRIP: Duration = Duration::from_millis(5);

/// One host's network.
#[derive(Clone)]
pub(crate) struct SimNet {
    pub(crate) host: String,
    pub(crate) links: Arc<Links>,
    pub(crate) pipes: Arc<Pipes>,
    pub(crate) conns: Arc<Conns>,
    pub(crate) clock: Arc<SimClock>,
    /// Numbers the world's connections.
    pub(crate) connections: Arc<AtomicU64>,
}

impl SimNet {
    fn wire(&self, stream: TcpStream) -> io::Result<Wire> {
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
        let peer = name_of(remote);
        let conn = self.conns.join(&self.pipes, (&self.host, local), (&peer, remote));
        Ok(Wire::new(&self.host, id, stream, local, conn, self.clock.clone()))
    }
}

/// The name of the host that has this address.
fn name_of(address: SocketAddr) -> String {
    turmoil::reverse_lookup(address.ip()).unwrap_or_else(|| address.ip().to_string())
}

#[async_trait::async_trait]
impl Net for SimNet {
    async fn connect(&self, address: &str) -> io::Result<IoStream> {
        let peer = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let (forth, back) = (self.pipes.between(&self.host, peer), self.pipes.between(peer, &self.host));
        let mut wait = SYN_AGAIN;
        for _ in 0..SYN_TRIES {
            forth.pass(&self.clock).await;
            if self.links.refuses(&self.host, peer) && !self.links.silent(&self.host, peer) {
                self.clock.sleep(ROUND_TRIP).await; // turmoil delivers nothing to a host that runs no software.
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("{address} refuses connections")));
            }
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    back.pass(&self.clock).await;
                    let wire = self.wire(stream)?;
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
        Ok(Box::new(SimListener { net: self.clone(), listener, local }))
    }
}

struct SimListener {
    net: SimNet,
    listener: TcpListener,
    local: String,
}

#[async_trait::async_trait]
impl Listener for SimListener {
    async fn accept(&self) -> io::Result<(IoStream, String)> {
        let (stream, peer) = self.listener.accept().await?;
        Ok((Box::pin(self.net.wire(stream)?), format!("{}:{}", name_of(peer), peer.port())))
    }

    fn local_address(&self) -> String {
        self.local.clone()
    }
}
