//! One end of a connection: turmoil's stream, held back as long as the way between the hosts says, and cut short by a
//! reset. Every byte that leaves it goes into the trace's hash.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::TcpStream;

use crate::clock::SimClock;
use crate::conn::{Conn, Ready};
use crate::trace;

/// One end.
pub(crate) struct Wire {
    host: String,
    /// Numbers the world's ends in the trace.
    pub(crate) id: u64,
    stream: TcpStream,
    local: SocketAddr,
    conn: Arc<Conn>,
    clock: Arc<SimClock>,
    /// Until when a reader waits, in the world's time.
    wait: Option<(Duration, Pin<Box<tokio::time::Sleep>>)>,
    has_ended: bool,
}

impl Wire {
    /// The end of `conn` that `stream` is, on `host`.
    pub(crate) fn new(
        host: &str,
        id: u64,
        stream: TcpStream,
        local: SocketAddr,
        conn: Arc<Conn>,
        clock: Arc<SimClock>,
    ) -> Self {
        Self { host: host.to_owned(), id, stream, local, conn, clock, wait: None, has_ended: false }
    }

    fn check_reset(&self) -> io::Result<()> {
        if self.conn.is_reset() {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the connection was reset by a fault"));
        }
        Ok(())
    }

    /// Waits until what comes next may be read.
    #[allow(clippy::disallowed_methods)] // This is the seam: the network's delays are in the world's time.
    fn poll_way(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = self.clock.world();
            match self.conn.incoming(self.local).ready(now) {
                Ready::Now => {
                    self.wait = None;
                    return Poll::Ready(());
                }
                Ready::Clogged => return Poll::Pending,
                Ready::At(at) => {
                    let known = self.wait.take().filter(|(until, _)| *until == at);
                    let (_, sleep) = self
                        .wait
                        .insert(known.unwrap_or_else(|| (at, Box::pin(tokio::time::sleep(at.saturating_sub(now))))));
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.wait = None;
                }
            }
        }
    }

    fn end(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            self.conn.outgoing(self.local).sent(self.clock.world(), 0);
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check_reset()?;
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = match self.poll_way(cx) {
            Poll::Ready(()) => Pin::new(&mut self.stream).poll_read(cx, buf),
            Poll::Pending => Poll::Pending,
        };
        let lane = self.conn.incoming(self.local);
        match &read {
            Poll::Pending => lane.keep_reader(cx.waker()),
            Poll::Ready(Ok(())) => lane.received(self.clock.world(), buf.filled().len() - before),
            Poll::Ready(Err(_)) => {}
        }
        read
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check_reset()?;
        let written = if self.conn.outgoing(self.local).is_full() {
            Poll::Pending
        } else {
            Pin::new(&mut self.stream).poll_write(cx, buf)
        };
        let lane = self.conn.outgoing(self.local);
        match &written {
            Poll::Pending => lane.keep_writer(cx.waker()),
            Poll::Ready(Ok(n)) if *n > 0 => {
                trace::wire(&self.host, self.id, &buf[..*n]);
                lane.sent(self.clock.world(), *n);
            }
            Poll::Ready(_) => {}
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_reset()?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_reset()?;
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        if matches!(shut, Poll::Ready(Ok(()))) {
            self.end();
        }
        shut
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.end(); // turmoil's stream sends its FIN when it is dropped, just after this.
        self.conn.outgoing(self.local).writer_gone();
        self.conn.incoming(self.local).reader_gone();
    }
}
