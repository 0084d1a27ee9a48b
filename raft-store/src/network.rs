//! Calls to the other members. Every call has a deadline of its own, one connection per peer is shared by its clients,
//! and a second one carries snapshots, so that a large copy never holds up heartbeats.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_env::{Elapsed, Env};
use cara_proto::raft::raft_client::RaftClient;
use cara_proto::raft::{Payload, SnapshotChunk};
use futures_util::{FutureExt, Stream, StreamExt};
use openraft::alias::WatchReceiverOf;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{
    Backoff, NetBackoff, NetSnapshot, NetStreamAppend, NetTransferLeader, NetVote, RPCOption, RPCTypes,
    RaftNetworkFactory,
};
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, OptionalSend, RaftMetrics};
use tonic::transport::Channel;

use crate::ReadError;
use crate::codec::{decode, encode, encode_behind};
use crate::connection::{Connection, Dial, Lost};
use crate::pace::{Answering, Pace, Paced};
use crate::read::ReadIndex;
use crate::recent::size;
use crate::service::MESSAGE_MAX;
use crate::snapshot::SnapshotData;
use crate::types::{Snapshot, TypeConfig, Vote};

/// openraft asks for its replication backoff only when it polls the request stream, and a stream that can't connect is
/// never polled; without this pause a dead peer would be dialled in a hot loop.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Pause after a peer could not be reached, before the replication tries again.
const BACKOFF: Duration = Duration::from_millis(200);

/// So often a missing connection is dialled although nobody has anything to say.
const RECONNECT: Duration = Duration::from_secs(1);

/// Requests that the planted bug answers before it tries to connect again.
const BELIEVED: usize = 4;

/// Chunks read ahead of the network while a snapshot is sent: a few MiB at most.
const CHUNKS_AHEAD: usize = 4;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;
type AppendResult = Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>;

/// By member, address, and whether it carries snapshots.
type Connections = BTreeMap<(u64, String, bool), Arc<Connection>>;

/// Makes the clients of all peers. Clones share the connections.
#[derive(Clone)]
pub struct Network {
    id: u64,
    env: Env,
    dial: Arc<dyn Dial>,
    /// A stream on which nothing comes back for this long is broken.
    idle: Duration,
    /// Counts reads whose beginning was purged meanwhile.
    gaps: Arc<AtomicU64>,
    connections: Arc<Mutex<Connections>>,
}

impl Network {
    pub(crate) fn new(id: u64, env: Env, dial: Arc<dyn Dial>, idle: Duration, gaps: Arc<AtomicU64>) -> Self {
        Self { id, env, dial, idle, gaps, connections: Arc::default() }
    }

    fn peer(&self, target: u64, node: &BasicNode, bulk: bool) -> Peer {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = connections
            .entry((target, node.addr.clone(), bulk))
            .or_insert_with(|| Arc::new(Connection::new(self.env.clone(), self.dial.clone(), &node.addr, self.idle)))
            .clone();
        // A member that moved to another address is never dialled at the old one again.
        connections.retain(|(id, address, _), _| *id != target || *address == node.addr);
        Peer { id: self.id, target, env: self.env.clone(), idle: self.idle, gaps: self.gaps.clone(), connection }
    }

    /// A connection of its own, which tells what the kernel over there says now.
    pub(crate) async fn dial(&self, address: &str) -> io::Result<Channel> {
        self.dial.dial(address).await
    }

    /// Waits at the leader until its process ends, or the path to it.
    pub(crate) async fn attend(&self, leader: u64, node: &BasicNode) -> Attended {
        let peer = self.peer(leader, node, false);
        let Ok(mut client) = peer.client().await else { return Attended::Ended };
        match client.attend(Payload::default()).await {
            Err(status) if status.code() == tonic::Code::Unimplemented => Attended::Unknown,
            Err(status) => {
                peer.failed(&status);
                Attended::Ended
            }
            Ok(_) => Attended::Ended,
        }
    }

    /// Asks a server that should lead for an index below which everything lies that was acknowledged before this call.
    ///
    /// # Errors
    /// `NoQuorum` when it says nothing or nobody confirms that it leads, `NotLeader` when it doesn't or can't be asked.
    pub(crate) async fn read_index(&self, leader: u64, node: &BasicNode, limit: Duration) -> Result<u64, ReadError> {
        let send = async move |mut client: RaftClient<Channel>| client.read_index(Payload::default()).await;
        match self.peer(leader, node, false).call(RPCTypes::AppendEntries, limit, "a read index", send).await {
            Ok(ReadIndex::At(index)) => Ok(index),
            Ok(ReadIndex::NoQuorum) | Err(RPCError::Timeout(_)) => Err(ReadError::NoQuorum),
            Ok(ReadIndex::NotLeader) | Err(_) => Err(ReadError::NotLeader { leader: None }),
        }
    }
}

/// How a call ended that was held open at the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attended {
    /// It broke, or could not be made, or the leader is about to stop.
    Ended,
    /// The leader's version doesn't know such calls.
    Unknown,
}

/// Keeps a connection to every other member, also between those that don't lead: the vote after a leader's death would
/// otherwise wait for a handshake, at the very moment at which all agents of the dead leader come with theirs.
pub(crate) async fn keep_connected(network: Network, metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>) {
    loop {
        {
            let metrics = metrics.borrow_watched();
            if metrics.running_state.is_err() {
                return;
            }
            for (id, node) in metrics.membership_config.nodes().filter(|(id, _)| **id != network.id) {
                network.peer(*id, node, false).connection.begin();
            }
        }
        network.env.clock.sleep(RECONNECT).await;
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Peer {
        self.peer(target, node, false)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &BasicNode) -> Peer {
        self.peer(target, node, true)
    }
}

/// The client of one peer.
pub struct Peer {
    id: u64,
    target: u64,
    env: Env,
    idle: Duration,
    gaps: Arc<AtomicU64>,
    connection: Arc<Connection>,
}

impl Peer {
    async fn client(&self) -> Result<RaftClient<Channel>, RPCError<TypeConfig>> {
        let channel = self.connection.channel().await.map_err(|error| unreachable(&error))?;
        Ok(RaftClient::new(channel).max_decoding_message_size(MESSAGE_MAX).max_encoding_message_size(MESSAGE_MAX))
    }

    fn timeout(&self, action: RPCTypes, timeout: Duration) -> RPCError<TypeConfig> {
        RPCError::Timeout(Timeout { action, id: self.id, target: self.target, timeout })
    }

    /// One request, one answer, within the deadline.
    async fn call<T, F, R>(
        &self,
        action: RPCTypes,
        limit: Duration,
        what: &str,
        send: F,
    ) -> Result<T, RPCError<TypeConfig>>
    where
        T: serde::de::DeserializeOwned,
        F: FnOnce(RaftClient<Channel>) -> R,
        R: Future<Output = Result<tonic::Response<Payload>, tonic::Status>>,
    {
        let work = async { send(self.client().await?).await.map_err(|status| self.failed(&status)) };
        match cara_env::timeout(&*self.env.clock, limit, work).await {
            Ok(answer) => {
                let answer = answer?;
                self.connection.answered();
                decode(&answer.into_inner().payload, what).map_err(|error| RPCError::Network(NetworkError::new(&error)))
            }
            Err(Elapsed) => {
                self.connection.lost(Lost::Silent);
                Err(self.timeout(action, limit))
            }
        }
    }

    fn failed(&self, status: &tonic::Status) -> RPCError<TypeConfig> {
        // An older version that doesn't know the call is there and well.
        if status.code() != tonic::Code::Unimplemented {
            self.connection.lost(Lost::Broken);
        }
        unreachable(&io::Error::other(format!("{}: {}", status.code(), status.message())))
    }
}

fn unreachable(error: &io::Error) -> RPCError<TypeConfig> {
    RPCError::Unreachable(Unreachable::new(error))
}

impl NetBackoff<TypeConfig> for Peer {
    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(std::iter::repeat(BACKOFF)))
    }
}

impl NetVote<TypeConfig> for Peer {
    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let request = Payload { payload: encode(&rpc).into() };
        let send = async move |mut client: RaftClient<Channel>| client.vote(request).await;
        self.call(RPCTypes::Vote, option.soft_ttl(), "a vote", send).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let request = Payload { payload: encode(&rpc).into() };
        let send = async move |mut client: RaftClient<Channel>| client.pre_vote(request).await;
        self.call(RPCTypes::Vote, option.soft_ttl(), "a pre-vote", send).await
    }
}

impl NetTransferLeader<TypeConfig> for Peer {
    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        let request = Payload { payload: encode(&rpc).into() };
        let send = async move |mut client: RaftClient<Channel>| client.transfer_leader(request).await;
        self.call(RPCTypes::TransferLeader, option.soft_ttl(), "the answer to a transfer", send).await
    }
}

impl NetStreamAppend<TypeConfig> for Peer {
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, AppendResult>, RPCError<TypeConfig>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            if cara_env::planted("commit-without-quorum")
                && let Err(error) = self.client().await
            {
                self.env.clock.sleep(CONNECT_PAUSE).await;
                return Ok(believed(input, error));
            }
            let pace = Pace::new(input);
            // From here on: a stream that can't be opened must not go on to take requests either.
            let answering = Answering(pace.clone());
            let requests = Paced::new(pace, self.gaps.clone()).map(|request| {
                let about = request.entries.iter().map(size).sum();
                Payload { payload: encode_behind(&request, Vec::with_capacity(about)).into() }
            });
            let limit = self.idle.max(option.hard_ttl());
            let opening = async { self.client().await?.append(requests).await.map_err(|status| self.failed(&status)) };
            let answers = match cara_env::timeout(&*self.env.clock, limit, opening).await {
                Ok(Ok(answers)) => answers.into_inner(),
                Ok(Err(error)) => {
                    self.env.clock.sleep(CONNECT_PAUSE).await;
                    return Err(error);
                }
                Err(Elapsed) => {
                    self.connection.lost(Lost::Silent);
                    return Err(self.timeout(RPCTypes::AppendEntries, limit));
                }
            };
            let this: &'s Self = self;
            let stream =
                futures_util::stream::unfold(Some((answers, answering)), move |state| this.next_answer(state, limit));
            Ok(Box::pin(stream) as BoxStream<'s, AppendResult>)
        })
    }
}

/// The planted answers of a peer that can't be reached: "it will get the entries later".
fn believed<S>(input: S, error: RPCError<TypeConfig>) -> BoxStream<'static, AppendResult>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
{
    let last = |request: AppendEntriesRequest<TypeConfig>| {
        request.entries.last().map(|entry| entry.log_id).or(request.prev_log_id)
    };
    let answers = input.take(BELIEVED).map(move |request| Ok(Ok(last(request))));
    Box::pin(answers.chain(futures_util::stream::iter([Err(error)])))
}

type Answers = (tonic::Streaming<Payload>, Answering);

impl Peer {
    /// The next answer on an append stream; after an error the stream ends.
    async fn next_answer(&self, state: Option<Answers>, limit: Duration) -> Option<(AppendResult, Option<Answers>)> {
        let (mut answers, answering) = state?;
        let pace = &answering.0;
        pace.handled();
        loop {
            let asked = pace.outstanding();
            let answer = match cara_env::timeout(&*self.env.clock, limit, answers.message()).await {
                Ok(Ok(Some(answer))) => answer,
                Ok(Ok(None)) if pace.has_gap() => {
                    let gap = tonic::Status::out_of_range("the log was purged under the stream; a snapshot is needed");
                    return Some((Err(self.failed(&gap)), None));
                }
                Ok(Ok(None)) if pace.outstanding() == 0 => return None,
                // Raft over there has stopped. openraft would take a plain end for a pause, and keep every entry in
                // the log for as long as it lasts.
                Ok(Ok(None)) => {
                    let ended = tonic::Status::unavailable("the peer ended the stream without an answer");
                    return Some((Err(self.failed(&ended)), None));
                }
                Ok(Err(status)) => return Some((Err(self.failed(&status)), None)),
                // Silence is fine as long as nothing was asked.
                Err(Elapsed) if asked == 0 => continue,
                Err(Elapsed) => {
                    self.connection.lost(Lost::Silent);
                    return Some((Err(self.timeout(RPCTypes::AppendEntries, limit)), None));
                }
            };
            self.connection.answered();
            let result: StreamAppendResult<TypeConfig> = match decode(&answer.payload, "an append's answer") {
                Ok(result) => result,
                Err(error) => return Some((Err(RPCError::Network(NetworkError::new(&error))), None)),
            };
            if pace.answered(&result) {
                return Some((Ok(result), Some((answers, answering))));
            }
        }
    }
}

impl NetSnapshot<TypeConfig> for Peer {
    type SnapshotData = SnapshotData;

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let limit = option.soft_ttl();
        let Snapshot { meta, snapshot: data } = snapshot;
        let (chunks, receiver) = tokio::sync::mpsc::channel(CHUNKS_AHEAD);
        let feed = async move {
            let head = SnapshotChunk { meta: encode(&(vote, meta, data.chunks)).into(), ..SnapshotChunk::default() };
            let mut sent = chunks.send(head).await.is_ok();
            for number in 0..data.chunks {
                if !sent {
                    break; // The receiving end has hung up; its answer says why.
                }
                let chunk = SnapshotChunk { data: data.chunk(number)?.into(), ..SnapshotChunk::default() };
                sent = chunks.send(chunk).await.is_ok();
            }
            Ok::<(), io::Error>(())
        };
        let requests = futures_util::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        let send = async move |mut client: RaftClient<Channel>| {
            let (fed, answer) = futures_util::future::join(feed, client.snapshot(requests)).await;
            fed.map_err(|error| tonic::Status::data_loss(error.to_string()))?;
            answer
        };
        let work = self.call(RPCTypes::InstallSnapshot, limit, "the answer to a snapshot", send);
        let mut work = Box::pin(work.fuse());
        let mut cancel = Box::pin(cancel.fuse());
        std::future::poll_fn(|cx| {
            if let std::task::Poll::Ready(closed) = cancel.poll_unpin(cx) {
                return std::task::Poll::Ready(Err(StreamingError::Closed(closed)));
            }
            work.poll_unpin(cx).map_err(StreamingError::from)
        })
        .await
    }
}
