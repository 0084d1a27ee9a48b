//! Connections. Bytes only: TLS, HTTP/2 and gRPC sit above (`proto/transport`), the same in both worlds.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// What a connection can do.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// One open connection.
pub type IoStream = Pin<Box<dyn Io>>;

/// Outgoing and incoming connections of one host.
#[async_trait::async_trait]
pub trait Net: Send + Sync + 'static {
    /// Connects to `host:port`. Has no deadline of its own: the caller brings one that also covers TLS.
    async fn connect(&self, address: &str) -> io::Result<IoStream>;

    /// Listens on `host:port`; port 0 lets the system choose.
    ///
    /// # Errors
    /// `AddrInUse` when another process has the port, `AddrNotAvailable` when the address is not this host's.
    async fn listen(&self, address: &str) -> io::Result<Box<dyn Listener>>;
}

/// A listening socket.
#[async_trait::async_trait]
pub trait Listener: Send + Sync + 'static {
    /// The next connection and the peer's address.
    async fn accept(&self) -> io::Result<(IoStream, String)>;

    /// The address that this listener has, with the real port.
    fn local_address(&self) -> String;
}

/// The kernel's TCP.
#[derive(Debug, Default)]
pub struct RealNet;

#[async_trait::async_trait]
impl Net for RealNet {
    async fn connect(&self, address: &str) -> io::Result<IoStream> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?; // Raft appends and heartbeats are small and must not wait for more bytes.
        Ok(Box::pin(stream))
    }

    async fn listen(&self, address: &str) -> io::Result<Box<dyn Listener>> {
        let listener = tokio::net::TcpListener::bind(address).await?;
        let local = listener.local_addr()?.to_string();
        Ok(Box::new(RealListener { listener, local }))
    }
}

struct RealListener {
    listener: tokio::net::TcpListener,
    local: String,
}

#[async_trait::async_trait]
impl Listener for RealListener {
    async fn accept(&self) -> io::Result<(IoStream, String)> {
        let (stream, peer) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((Box::pin(stream), peer.to_string()))
    }

    fn local_address(&self) -> String {
        self.local.clone()
    }
}
