//! The leader's relay, as plain as it can be: the two sides of a move are joined when the second one comes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cara_proto::volume::TunnelBytes;
use cara_proto::volume::relay_server::Relay as Service;
use cara_proto::volume::tunnel_bytes::Frame;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

type Down = mpsc::Sender<Result<TunnelBytes, Status>>;
/// Sides that wait for the other one, by move and side.
type Waiting = BTreeMap<(String, String), (Streaming<TunnelBytes>, Down)>;

/// The service.
#[derive(Clone, Default)]
pub struct Relay {
    waiting: Arc<Mutex<Waiting>>,
}

#[tonic::async_trait]
impl Service for Relay {
    type TunnelStream = ReceiverStream<Result<TunnelBytes, Status>>;

    async fn tunnel(&self, request: Request<Streaming<TunnelBytes>>) -> Result<Response<Self::TunnelStream>, Status> {
        let mut up = request.into_inner();
        let first = up.message().await?.and_then(|bytes| bytes.frame);
        let Some(Frame::Open(open)) = first else { return Err(Status::invalid_argument("no open")) };
        let (down, frames) = mpsc::channel(4);
        let other = if open.side == "source" { "target" } else { "source" };
        let mut waiting = self.waiting.lock().expect("no panic");
        match waiting.remove(&(open.move_id.clone(), other.to_owned())) {
            Some((other_up, other_down)) => {
                drop(cara_env::spawn(copy(up, other_down)));
                drop(cara_env::spawn(copy(other_up, down)));
            }
            None => {
                waiting.insert((open.move_id, open.side), (up, down));
            }
        }
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}

async fn copy(mut from: Streaming<TunnelBytes>, to: Down) {
    while let Ok(Some(bytes)) = from.message().await {
        if to.send(Ok(bytes)).await.is_err() {
            return;
        }
    }
}
