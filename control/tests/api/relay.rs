//! The two ends of a move meet on the leader when the one can't dial the other.

use bytes::Bytes;
use cara_proto::volume::relay_client::RelayClient;
use cara_proto::volume::tunnel_bytes::Frame;
use cara_proto::volume::{TunnelBytes, TunnelEnd, TunnelOpen};
use cara_proto::workload::{Assignment, TransferStatus};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::agent::{Agent, ready};
use crate::harness::{DEADLINE, Server, app};
use crate::moves::running;

struct Tunnel {
    out: mpsc::Sender<TunnelBytes>,
    input: Streaming<TunnelBytes>,
}

impl Tunnel {
    async fn open(agent: &Agent, move_id: &str, side: &str) -> Result<Tunnel, Status> {
        let (out, outgoing) = mpsc::channel(4);
        let open = TunnelOpen { move_id: move_id.into(), side: side.into() };
        out.send(TunnelBytes { frame: Some(Frame::Open(open)) }).await.unwrap();
        let input = RelayClient::new(agent.channel.clone()).tunnel(ReceiverStream::new(outgoing)).await?.into_inner();
        Ok(Tunnel { out, input })
    }

    async fn send(&self, frame: Frame) {
        self.out.send(TunnelBytes { frame: Some(frame) }).await.unwrap();
    }

    async fn next(&mut self, server: &Server) -> Option<Frame> {
        let next = cara_env::timeout(&*server.env.clock, DEADLINE, self.input.message()).await.unwrap();
        next.unwrap().and_then(|bytes| bytes.frame)
    }
}

#[tokio::test]
async fn bytes_pass_between_the_ends_of_a_move_and_nobody_else() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    let c = Agent::join(&server, "c").await;
    let mut store = app("store");
    store["spec"]["volumes"] = json!([{ "name": "data", "type": "Managed" }]);
    running(&server, &a, store).await;
    let begun = server.post("/api/v1/apps/store/move", &json!({ "node_id": "b", "interval_s": 3600 })).await.json();
    let id = begun["id"].as_str().unwrap();

    // The target can't dial the source: both are told to meet here.
    let told = b.told_to("receive", "store").await;
    let unreachable = TransferStatus { move_id: id.into(), unreachable: true, ..TransferStatus::default() };
    b.says(ready(&told, Some(unreachable))).await;
    let relayed = |set: &[Assignment]| set.iter().any(|a| a.transfer.as_ref().is_some_and(|t| t.relay));
    a.told(relayed).await;
    b.told(relayed).await;

    let mut source = Tunnel::open(&a, id, "source").await.unwrap();
    source.send(Frame::Data(Bytes::from_static(b"early"))).await;
    for (agent, move_id, side) in [(&c, id, "target"), (&a, id, "target"), (&b, "mv_0", "target")] {
        let refused = Tunnel::open(agent, move_id, side).await.err().unwrap();
        assert_eq!(refused.code(), tonic::Code::NotFound, "{} as {side}: {refused}", agent.name);
    }
    let mut target = Tunnel::open(&b, id, "target").await.unwrap();
    assert_eq!(target.next(&server).await, Some(Frame::Data(Bytes::from_static(b"early"))), "it has waited");
    target.send(Frame::Data(Bytes::from_static(b"answer"))).await;
    assert_eq!(source.next(&server).await, Some(Frame::Data(Bytes::from_static(b"answer"))));
    // One direction ends, the other goes on.
    source.send(Frame::End(TunnelEnd::default())).await;
    assert_eq!(target.next(&server).await, Some(Frame::End(TunnelEnd::default())));
    target.send(Frame::Data(Bytes::from_static(b"more"))).await;
    assert_eq!(source.next(&server).await, Some(Frame::Data(Bytes::from_static(b"more"))));
    server.stop().await;
}

#[tokio::test]
async fn a_tunnel_ends_with_its_move() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;
    let begun = server.post("/api/v1/apps/web/move", &json!({ "interval_s": 3600 })).await.json();
    let id = begun["id"].as_str().unwrap();
    let told = b.told_to("receive", "web").await;
    let mut source = Tunnel::open(&a, id, "source").await.unwrap();
    let mut target = Tunnel::open(&b, id, "target").await.unwrap();
    source.send(Frame::Data(Bytes::from_static(b"x"))).await;
    assert!(target.next(&server).await.is_some());
    assert_eq!(server.post(&format!("/api/v1/node-moves/{id}/cancel"), &Value::Null).await.status, 202);
    b.told_to("discard", "web").await;
    b.removed(&told.uid, Vec::new()).await;
    let Some(Frame::End(end)) = target.next(&server).await else { panic!("it goes on") };
    assert_eq!(end.error, "the move is over");
    assert!(matches!(source.next(&server).await, Some(Frame::End(_))));
    server.stop().await;
}
