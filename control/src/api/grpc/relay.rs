//! The tunnel through the leader: copies frames between the two ends of a running move.
//!
//! Each direction is a task that reads a frame only when the other side has room for it, so that a slow reader slows its
//! sender down and nothing piles up here. A tunnel ends with its move, with this server's leadership, with either side,
//! or when nothing has passed for a while.

use std::time::Duration;

use cara_core::{MoveId, NodeId};
use cara_proto::volume::relay_server::Relay as Service;
use cara_proto::volume::tunnel_bytes::Frame;
use cara_proto::volume::{TunnelBytes, TunnelEnd, TunnelOpen};
use cara_transport::Role;
use futures_util::stream::BoxStream;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{check_leads, peer};
use crate::api::SharedApi;
use crate::error::ApiError;
use crate::relay::{Open, Other, Outbox, Side};

/// Frames that wait for a slow side; each is at most [`FRAME_BYTES_MAX`].
const FRAMES: usize = 4;
/// Largest frame: large enough that its head costs nothing, small enough that a tunnel holds a few MiB at most.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// A side that has opened the stream says at once which it is.
const OPEN: Duration = Duration::from_secs(10);
/// How long one side waits for the other, which learns of the relay with its next desired set.
const MEET: Duration = Duration::from_secs(60);
/// Ends of a move keep their connection alive more often than this.
const IDLE_MS_MAX: u64 = 60_000;
/// Between two looks whether the tunnel may stay.
const LOOK: Duration = Duration::from_secs(5);

/// Serves `cara.volume.Relay`.
pub struct RelayService {
    api: SharedApi,
}

impl RelayService {
    /// Over the API.
    pub fn new(api: SharedApi) -> Self {
        Self { api }
    }

    /// Which move and which side of it, if the caller is that.
    fn check(&self, node: &NodeId, open: &TunnelOpen) -> Result<(MoveId, Side), ApiError> {
        let id = MoveId::new(open.move_id.as_str());
        let side = Side::parse(&open.side)
            .ok_or_else(|| ApiError::invalid(format!("side: is {:?}, must be source or target", open.side)))?;
        if is_end(&self.api, &id, side, node) {
            return Ok((id, side));
        }
        Err(ApiError::Missing {
            code: "not-an-end",
            detail: format!("node {node} is not the {} of a running move {id}", open.side),
            hint: "wait for the next desired set",
        })
    }
}

/// A node that was shut out is no end any more, also in a tunnel that it has opened before.
fn is_end(api: &SharedApi, id: &MoveId, side: Side, node: &NodeId) -> bool {
    api.read_local(|state| {
        let certificate = state.node(node).and_then(|node| node.certificate.as_ref());
        let is_in = certificate.is_some_and(|certificate| certificate.revoked_at_ms.is_none());
        let mv = state.get_move(id).filter(|mv| is_in && mv.is_running());
        mv.is_some_and(|mv| match side {
            Side::Source => mv.source == *node,
            Side::Target => mv.target == *node,
        })
    })
}

#[tonic::async_trait]
impl Service for RelayService {
    type TunnelStream = BoxStream<'static, Result<TunnelBytes, Status>>;

    async fn tunnel(&self, request: Request<Streaming<TunnelBytes>>) -> Result<Response<Self::TunnelStream>, Status> {
        check_leads(&self.api)?;
        let peer = peer(&self.api, &request)?;
        let Role::Node(node) = peer.role else {
            return Err(ApiError::Unauthenticated("this call is for nodes").to_status());
        };
        let node = NodeId::new(node);
        let mut frames = request.into_inner();
        let first = cara_env::timeout(&*self.api.env.clock, OPEN, frames.message()).await;
        let Ok(Ok(Some(TunnelBytes { frame: Some(Frame::Open(open)) }))) = first else {
            return Err(ApiError::invalid("a tunnel begins with open").to_status());
        };
        let (id, side) = self.check(&node, &open).map_err(|error| error.to_status())?;
        let busy = || ApiError::Busy("too many tunnels are open".into()).to_status();
        let place = self.api.relay.enter().ok_or_else(busy)?;
        let (outbox, answer) = mpsc::channel(FRAMES);
        let other = self.api.relay.meet(&id, side, outbox.clone(), self.api.mono_ms());
        let tunnel = Tunnel { api: self.api.clone(), id, side, node, outbox, _place: place };
        drop(cara_env::spawn(tunnel.run(frames, other)));
        Ok(Response::new(Box::pin(ReceiverStream::new(answer))))
    }
}

/// One side, and the copying of what it sends.
struct Tunnel {
    api: SharedApi,
    id: MoveId,
    side: Side,
    node: NodeId,
    outbox: Outbox,
    _place: Open,
}

impl Tunnel {
    async fn run(self, frames: Streaming<TunnelBytes>, other: oneshot::Receiver<Other>) {
        let clock = self.api.env.clock.clone();
        let met = tokio::select! {
            biased;
            met = cara_env::timeout(&*clock, MEET, other) => met,
            () = self.outbox.closed() => return self.api.relay.sweep(),
        };
        let Ok(Ok(other)) = met else {
            self.end(&self.outbox, "the other side did not come").await;
            return self.api.relay.sweep();
        };
        if self.side == Side::Target {
            cara_env::point("relay.joined", || format!("move={}", self.id)).await;
        }
        let error = self.copy(frames, &other).await;
        tracing::debug!(id = %self.id, side = ?self.side, error, "tunnel ended");
        // Both hear of it: of an end that is not in order, the one who sent is told as well.
        self.end(&other.outbox, error).await;
        if !error.is_empty() {
            self.end(&self.outbox, error).await;
        }
    }

    /// Copies until the end; returns why it ended, empty when this side has simply sent all.
    async fn copy(&self, mut frames: Streaming<TunnelBytes>, other: &Other) -> &'static str {
        loop {
            let frame = tokio::select! {
                biased;
                frame = frames.message() => frame,
                () = other.outbox.closed() => return "the other side went away",
                () = self.api.env.clock.sleep(LOOK) => match self.over(other) {
                    Some(why) => return why,
                    None => continue,
                },
            };
            match frame {
                Ok(Some(TunnelBytes { frame: Some(Frame::Data(data)) })) => {
                    other.passed(self.api.mono_ms());
                    let frame = TunnelBytes { frame: Some(Frame::Data(data)) };
                    if let Err(why) = self.hand_over(frame, other).await {
                        return why;
                    }
                    other.passed(self.api.mono_ms());
                }
                Ok(Some(TunnelBytes { frame: Some(Frame::End(end)) })) => {
                    return if end.error.is_empty() { "" } else { "this side gave up" };
                }
                Ok(Some(TunnelBytes { frame: Some(Frame::Open(_)) | None })) => {} // Of a newer version.
                Ok(None) => return "",
                Err(_) => return "the connection broke",
            }
        }
    }

    /// Waits until the other side has room, as long as the tunnel may stay.
    async fn hand_over(&self, frame: TunnelBytes, other: &Other) -> Result<(), &'static str> {
        let sending = other.outbox.send(Ok(frame));
        tokio::pin!(sending);
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return sent.map_err(|_| "the other side went away"),
                () = self.api.env.clock.sleep(LOOK) => if let Some(why) = self.over(other) { return Err(why) },
            }
        }
    }

    fn over(&self, other: &Other) -> Option<&'static str> {
        if !self.api.leads() {
            return Some("this server leads no more");
        }
        if !is_end(&self.api, &self.id, self.side, &self.node) {
            return Some("the move is over");
        }
        (other.idle_ms(self.api.mono_ms()) > IDLE_MS_MAX).then_some("nothing passed for a minute")
    }

    /// Tells a side that no more comes; one that reads nothing finds out when its stream ends.
    async fn end(&self, outbox: &Outbox, error: &str) {
        let frame = TunnelBytes { frame: Some(Frame::End(TunnelEnd { error: error.to_owned() })) };
        drop(cara_env::timeout(&*self.api.env.clock, LOOK, outbox.send(Ok(frame))).await);
    }
}
