//! Calls from the other members. Who they are was checked below, by the caller's TLS layer.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use cara_proto::raft::raft_server::Raft as RaftRpc;
use cara_proto::raft::{Payload, SnapshotChunk};
use futures_util::{Stream, StreamExt};
use serde::Serialize;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use crate::StateMachine;
use crate::codec::{decode, encode};
use crate::read::{ReadIndex, Reads};
use crate::snapshot::Snapshots;
use crate::types::{Raft, Snapshot, SnapshotMeta, Vote};

/// The largest gRPC message: the entries of one append (2 MiB and one entry more) and one snapshot chunk, with room.
pub(crate) const MESSAGE_MAX: usize = 16 * 1024 * 1024;

/// A sender of a snapshot that is silent for this long is gone. Longer than a leader needs to read one chunk.
const CHUNK_IDLE: Duration = Duration::from_secs(10);

/// Serves raft of one member.
pub struct RaftService<SM: StateMachine> {
    pub(crate) env: Env,
    pub(crate) raft: Raft<SM>,
    pub(crate) snapshots: Arc<Snapshots>,
    /// One snapshot is received at a time; a second sender waits until the first one's is installed.
    pub(crate) receiving: Arc<tokio::sync::Mutex<()>>,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) reads: Reads,
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, Status> {
    decode(bytes, what).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn answer<T: Serialize, E: std::fmt::Display>(result: Result<T, E>) -> Result<Response<Payload>, Status> {
    let value = result.map_err(|error| Status::unavailable(error.to_string()))?;
    Ok(Response::new(Payload { payload: encode(&value).into() }))
}

fn storage(error: &std::io::Error) -> Status {
    Status::internal(format!("the snapshot can't be stored: {error}"))
}

#[tonic::async_trait]
impl<SM: StateMachine> RaftRpc for RaftService<SM> {
    type AppendStream = Pin<Box<dyn Stream<Item = Result<Payload, Status>> + Send>>;

    async fn append(&self, request: Request<Streaming<Payload>>) -> Result<Response<Self::AppendStream>, Status> {
        // A broken or unreadable request ends the stream; the leader then starts a new one.
        let requests = request.into_inner().map_while_ok(|payload: Payload| read(&payload.payload, "an append").ok());
        let answers = self.raft.stream_append(requests).map(|result| match result {
            Ok(result) => Ok(Payload { payload: encode(&result).into() }),
            Err(fatal) => Err(Status::unavailable(fatal.to_string())),
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn vote(&self, request: Request<Payload>) -> Result<Response<Payload>, Status> {
        let request = read(&request.into_inner().payload, "a vote request")?;
        answer(self.raft.vote(request).await)
    }

    async fn pre_vote(&self, request: Request<Payload>) -> Result<Response<Payload>, Status> {
        let request = read(&request.into_inner().payload, "a pre-vote request")?;
        answer(self.raft.pre_vote(request).await)
    }

    async fn transfer_leader(&self, request: Request<Payload>) -> Result<Response<Payload>, Status> {
        let request = read(&request.into_inner().payload, "a transfer request")?;
        answer(self.raft.handle_transfer_leader(request).await)
    }

    async fn read_index(&self, _request: Request<Payload>) -> Result<Response<Payload>, Status> {
        let index = ReadIndex::from(self.reads.barrier().await);
        Ok(Response::new(Payload { payload: encode(&index).into() }))
    }

    async fn attend(&self, _request: Request<Payload>) -> Result<Response<Payload>, Status> {
        // An error is the end of the store, which is the end of this server.
        drop(self.stopping.clone().wait_for(|stopping| *stopping).await);
        Ok(Response::new(Payload::default()))
    }

    async fn snapshot(&self, request: Request<Streaming<SnapshotChunk>>) -> Result<Response<Payload>, Status> {
        let one = self.receiving.clone().lock_owned().await;
        let mut chunks = request.into_inner();
        let head = self.next_chunk(&mut chunks).await?.ok_or_else(|| Status::invalid_argument("an empty snapshot"))?;
        let (vote, meta, count): (Vote, SnapshotMeta, u32) = read(&head.meta, "the head of a snapshot")?;
        let mut writer = self.snapshots.receive().await.map_err(|error| storage(&error))?;
        while let Some(chunk) = self.next_chunk(&mut chunks).await? {
            writer.add_chunk(&chunk.data).await.map_err(|error| storage(&error))?;
        }
        let snapshot = writer.finish().await.map_err(|error| storage(&error))?;
        if snapshot.chunks != count {
            return Err(Status::aborted(format!("{} of {count} chunks have arrived", snapshot.chunks)));
        }
        tracing::info!(chunks = count, "received a snapshot, installing it");
        cara_env::point("raft.snapshot_received", || format!("chunks={count}")).await;
        // A task of its own: a sender that gives up ends this call but not the installation, whose chunks the next
        // sender would take for left over.
        let (raft, snapshots) = (self.raft.clone(), self.snapshots.clone());
        let installed = cara_env::spawn(async move {
            let installed = raft.install_full_snapshot(vote, Snapshot { meta, snapshot }).await;
            snapshots.received();
            drop(one);
            installed
        });
        answer(installed.await.ok_or_else(|| Status::aborted("the installation was broken off"))?)
    }
}

impl<SM: StateMachine> RaftService<SM> {
    async fn next_chunk(&self, chunks: &mut Streaming<SnapshotChunk>) -> Result<Option<SnapshotChunk>, Status> {
        cara_env::timeout(&*self.env.clock, CHUNK_IDLE, chunks.message())
            .await
            .map_err(|_| Status::deadline_exceeded("the sender of the snapshot has gone silent"))?
    }
}

/// Ends a stream at its first error.
trait WhileOk<T>: Stream<Item = Result<T, Status>> + Sized + Send + 'static {
    fn map_while_ok<U, F>(self, map: F) -> Pin<Box<dyn Stream<Item = U> + Send>>
    where
        T: Send,
        U: Send + 'static,
        F: Fn(T) -> Option<U> + Send + Sync + 'static,
    {
        Box::pin(StreamExt::filter_map(
            StreamExt::take_while(StreamExt::map(self, move |item| item.ok().and_then(&map)), |item| {
                std::future::ready(item.is_some())
            }),
            std::future::ready,
        ))
    }
}

impl<T, S: Stream<Item = Result<T, Status>> + Send + 'static> WhileOk<T> for S {}
