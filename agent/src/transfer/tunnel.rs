//! A connection to another agent through the leader. Both sides dial it; what passes is their own TLS.
//!
//! To the code above, a tunnel is a network with one address: [`TunnelNet`] connects, [`TunnelListener`] accepts.

use std::io;
use std::sync::Arc;

use cara_env::{Env, IoStream, Listener, Net};
use cara_proto::volume::relay_client::RelayClient;
use cara_proto::volume::tunnel_bytes::Frame;
use cara_proto::volume::{TunnelBytes, TunnelEnd, TunnelOpen};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::Ground;
use crate::backoff::jittered;

/// Bytes in one frame, and between the tunnel and what uses it.
const PIECE_BYTES: usize = 64 << 10;
/// Frames on their way to the leader: half a MiB.
const FRAMES_WAITING: usize = 8;

/// The world of `env`, with the tunnel of a move in place of its network.
pub(super) fn env(ground: &Ground, move_id: &str) -> Env {
    let net = TunnelNet { ground: ground.clone(), move_id: move_id.to_owned() };
    Env { net: Arc::new(net), ..ground.env.clone() }
}

struct TunnelNet {
    ground: Ground,
    move_id: String,
}

#[async_trait::async_trait]
impl Net for TunnelNet {
    async fn connect(&self, _address: &str) -> io::Result<IoStream> {
        let (inbound, up) = dial(&self.ground, &self.move_id, "target").await?;
        Ok(join(None, inbound, up))
    }

    async fn listen(&self, _address: &str) -> io::Result<Box<dyn Listener>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The source's end: the next connection of the move's target.
pub(super) struct TunnelListener {
    pub(super) ground: Ground,
    pub(super) move_id: String,
}

#[async_trait::async_trait]
impl Listener for TunnelListener {
    async fn accept(&self) -> io::Result<(IoStream, String)> {
        let mut leader = self.ground.leader.clone();
        loop {
            leader.borrow_and_update();
            let next = tokio::select! {
                biased;
                next = self.next() => next,
                // Where nobody leads any more, nobody joins tunnels.
                changed = leader.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => std::future::pending().await, // The agent is ending.
                },
            };
            match next {
                Ok(stream) => return Ok((stream, format!("relay/{}", self.move_id))),
                Err(error) => tracing::debug!(move_id = %self.move_id, "no tunnel through the leader: {error}"),
            }
            let wait = jittered(&*self.ground.env.rng, self.ground.backoff_min);
            self.ground.env.clock.sleep(wait).await;
        }
    }

    fn local_address(&self) -> String {
        format!("relay/{}", self.move_id)
    }
}

impl TunnelListener {
    /// Opens a tunnel and waits in it until the target says its first word; what listens would give up on silence.
    async fn next(&self) -> io::Result<IoStream> {
        let (mut inbound, up) = dial(&self.ground, &self.move_id, "source").await?;
        let first = inbound.message().await.map_err(io::Error::other)?;
        match first.and_then(|first| first.frame) {
            Some(Frame::Data(data)) => Ok(join(Some(data), inbound, up)),
            Some(Frame::End(end)) => Err(io::Error::other(end.error)),
            Some(Frame::Open(_)) | None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A stream of frames with the leader, opened for this side of the move.
async fn dial(
    ground: &Ground,
    move_id: &str,
    side: &str,
) -> io::Result<(Streaming<TunnelBytes>, mpsc::Sender<TunnelBytes>)> {
    let leader = ground.leader.borrow().clone();
    let leader =
        leader.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "there is no session with a leader"))?;
    let tls = ground.keeper.tls().client();
    let channel = cara_transport::connect(&ground.env, &leader, tls, ground.connect_deadline).await;
    let channel = channel.map_err(io::Error::other)?;
    let (up, frames) = mpsc::channel(FRAMES_WAITING);
    let open = TunnelOpen { move_id: move_id.to_owned(), side: side.to_owned() };
    up.try_send(TunnelBytes { frame: Some(Frame::Open(open)) }).expect("the channel is empty");
    let mut client = RelayClient::new(channel);
    let opening = client.tunnel(ReceiverStream::new(frames));
    let opened = cara_env::timeout(&*ground.env.clock, ground.call_deadline, opening).await;
    let inbound = opened.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
    Ok((inbound.into_inner(), up))
}

/// Makes a connection of the frames. It ends when either side does.
fn join(first: Option<bytes::Bytes>, inbound: Streaming<TunnelBytes>, up: mpsc::Sender<TunnelBytes>) -> IoStream {
    let (near, far) = tokio::io::duplex(PIECE_BYTES);
    let (reader, writer) = tokio::io::split(far);
    drop(cara_env::spawn(send(reader, up)));
    drop(cara_env::spawn(receive(first, inbound, writer)));
    Box::pin(near)
}

async fn send(mut reader: ReadHalf<DuplexStream>, up: mpsc::Sender<TunnelBytes>) {
    let frame = |frame| TunnelBytes { frame: Some(frame) };
    loop {
        let mut data = bytes::BytesMut::with_capacity(PIECE_BYTES);
        match reader.read_buf(&mut data).await {
            Ok(1..) => {
                if up.send(frame(Frame::Data(data.freeze()))).await.is_err() {
                    return;
                }
            }
            Ok(0) | Err(_) => {
                // The leader is gone as well, perhaps; then there is nobody to tell.
                let _ = up.send(frame(Frame::End(TunnelEnd::default()))).await;
                return;
            }
        }
    }
}

async fn receive(
    first: Option<bytes::Bytes>,
    mut inbound: Streaming<TunnelBytes>,
    mut writer: WriteHalf<DuplexStream>,
) {
    let mut data = first;
    loop {
        if let Some(data) = data.take()
            && writer.write_all(&data).await.is_err()
        {
            return;
        }
        match inbound.message().await.ok().flatten().and_then(|bytes| bytes.frame) {
            Some(Frame::Data(next)) => data = Some(next),
            Some(Frame::Open(_)) => {}
            Some(Frame::End(_)) | None => {
                // Who reads sees the end; an error means that nobody does.
                let _ = writer.shutdown().await;
                return;
            }
        }
    }
}
