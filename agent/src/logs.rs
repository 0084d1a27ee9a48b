//! Output of containers for the operator, on a connection of its own, so that much output never delays a heartbeat.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cara_env::Env;
use cara_proto::agent::agent_client::AgentClient;
use cara_proto::agent::{LogChunk, LogsRequest};
use cara_transport::Tls;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::labels::{self, Owner};
use crate::runtime::{ContainerRuntime, LogOptions};
use crate::session::Ground;

/// Bytes in one message.
const CHUNK_MAX: usize = 32 << 10;
/// Messages on their way: 256 KiB, enough for a fast link, little enough for a slow reader.
const CHUNKS_WAITING: usize = 8;
/// One answer ends after this much, unless it follows: nobody reads more at once, use --tail.
const BYTES_MAX: usize = 64 << 20;
/// The engine must list its containers within this.
const LIST_DEADLINE: Duration = Duration::from_secs(10);

/// Takes the requests of one session; answers end with it.
pub(crate) struct LogsDesk {
    desk: Arc<Desk>,
    slots: Arc<Semaphore>,
    /// Dropped with the session.
    session: watch::Sender<()>,
}

struct Desk {
    env: Env,
    runtime: Arc<dyn ContainerRuntime>,
    owner: Owner,
    tls: Tls,
    address: String,
    connect_deadline: Duration,
    /// The session's own connection; only for saying no.
    channel: Channel,
}

impl LogsDesk {
    pub(crate) fn new(ground: &Ground, address: &str, channel: Channel, slots: Arc<Semaphore>) -> Self {
        let identity = ground.keeper.identity();
        let desk = Desk {
            env: ground.env.clone(),
            runtime: ground.runtime.clone(),
            owner: Owner { cluster_id: identity.cluster_id, node_id: identity.node_id },
            tls: ground.keeper.tls().clone(),
            address: address.to_owned(),
            connect_deadline: ground.config.connect_deadline,
            channel,
        };
        Self { desk: Arc::new(desk), slots, session: watch::Sender::new(()) }
    }

    /// Answers in a task of its own.
    pub(crate) fn answer(&self, request: LogsRequest) {
        let desk = self.desk.clone();
        let slot = self.slots.clone().try_acquire_owned().ok();
        let mut session = self.session.subscribe();
        drop(cara_env::spawn(async move {
            let work = async {
                match slot {
                    Some(_slot) => desk.serve(&request).await,
                    None => {
                        desk.refuse(&request, "this node is answering too many requests for output; try again").await
                    }
                }
            };
            tokio::select! {
                biased;
                _ = session.changed() => {}
                () = work => {}
            }
        }));
    }
}

impl Desk {
    async fn serve(&self, request: &LogsRequest) {
        let connecting = cara_transport::connect(&self.env, &self.address, self.tls.client(), self.connect_deadline);
        let channel = match connecting.await {
            Ok(channel) => channel,
            Err(error) => return tracing::warn!("can't send output: {error}"),
        };
        let (chunks, receiver) = mpsc::channel(CHUNKS_WAITING);
        let produce = self.produce(request, chunks);
        let call = async { AgentClient::new(channel).logs(ReceiverStream::new(receiver)).await };
        let ((), answer) = tokio::join!(produce, call);
        if let Err(status) = answer {
            tracing::debug!("sending output ended: {}", status.message());
        }
    }

    async fn refuse(&self, request: &LogsRequest, why: &str) {
        let chunk = chunk(request, Bytes::new(), why.to_owned());
        let call = async { AgentClient::new(self.channel.clone()).logs(tokio_stream::once(chunk)).await };
        if let Ok(Err(status)) = cara_env::timeout(&*self.env.clock, self.connect_deadline, call).await {
            tracing::debug!("refusing to send output failed: {}", status.message());
        }
    }

    /// Sends the output, and in the end an empty chunk that carries the error, if any.
    async fn produce(&self, request: &LogsRequest, chunks: mpsc::Sender<LogChunk>) {
        let error = match self.find(request).await {
            Ok(container) => self.copy(request, &container, &chunks).await.err().unwrap_or_default(),
            Err(error) => error,
        };
        // It fails only when the server has stopped reading.
        let _ = chunks.send(chunk(request, Bytes::new(), error)).await;
    }

    /// The container: of the highest generation, and one that runs before one that has ended.
    async fn find(&self, request: &LogsRequest) -> Result<String, String> {
        let mut filter = self.owner.labels();
        filter.insert(labels::UID.to_owned(), request.workload_uid.clone());
        if !request.service.is_empty() {
            filter.insert(labels::SERVICE.to_owned(), request.service.clone());
        }
        let listing = cara_env::timeout(&*self.env.clock, LIST_DEADLINE, self.runtime.list(&filter))
            .await
            .map_err(|_| "the container engine does not answer".to_owned())?
            .map_err(|error| error.to_string())?;
        let rank = |labels: &labels::Labels, alive: bool| {
            (labels.get(labels::GENERATION).and_then(|g| g.parse::<u64>().ok()).unwrap_or_default(), alive)
        };
        let newest = listing.containers.iter().max_by_key(|c| rank(&c.labels, c.state.is_alive()));
        newest.map(|c| c.id.clone()).ok_or_else(|| {
            let service =
                if request.service.is_empty() { String::new() } else { format!(" of service {}", request.service) };
            format!("this node has no container{service} for this workload (yet)")
        })
    }

    async fn copy(
        &self,
        request: &LogsRequest,
        container: &str,
        chunks: &mpsc::Sender<LogChunk>,
    ) -> Result<(), String> {
        let options = LogOptions { tail: request.tail, follow: request.follow, timestamps: request.timestamps };
        let (sink, lines) = mpsc::channel(CHUNKS_WAITING);
        let reading = self.runtime.logs(container, options, sink);
        let forwarding = forward(request, lines, chunks);
        let (mut reading, mut forwarding) = (std::pin::pin!(reading), std::pin::pin!(forwarding));
        tokio::select! {
            biased;
            read = reading.as_mut() => {
                forwarding.await?;
                read.map_err(|error| error.to_string())
            }
            forwarded = forwarding.as_mut() => forwarded,
        }
    }
}

async fn forward(
    request: &LogsRequest,
    mut lines: mpsc::Receiver<Bytes>,
    chunks: &mpsc::Sender<LogChunk>,
) -> Result<(), String> {
    let mut sent = 0;
    loop {
        let line = tokio::select! {
            biased;
            () = chunks.closed() => return Ok(()),
            line = lines.recv() => line,
        };
        let Some(mut line) = line else { return Ok(()) };
        while !line.is_empty() {
            let piece = line.split_to(line.len().min(CHUNK_MAX));
            sent += piece.len();
            if chunks.send(chunk(request, piece, String::new())).await.is_err() {
                return Ok(());
            }
        }
        if sent > BYTES_MAX && !request.follow {
            return Err(format!("the output is cut after {} MiB; ask for the last lines with --tail", BYTES_MAX >> 20));
        }
    }
}

fn chunk(request: &LogsRequest, data: Bytes, error: String) -> LogChunk {
    LogChunk { request_id: request.request_id.clone(), data: data.into(), error }
}
