//! The handle that the rest of a server holds: open, propose, read, look, end.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use cara_env::{Elapsed, Engine, Env};
use cara_proto::raft::raft_server::RaftServer;
use openraft::BasicNode;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardReason, ForwardToLeader, RaftError};
use tokio::sync::watch;

use crate::behind::Behind;
use crate::config::COMMAND_MAX;
use crate::disk::Disk;
use crate::log::Log;
use crate::network::{Network, keep_connected};
use crate::read::Reads;
use crate::service::{MESSAGE_MAX, RaftService};
use crate::snapshot::Snapshots;
use crate::standing::{Ticks, watch_standing};
use crate::state::{Machine, Shared, applied_index};
use crate::suspect::Suspicion;
use crate::types::{Bytes, Raft, TypeConfig, Written, position};
use crate::{
    ChangeError, Config, Dial, Leader, OpenError, Position, ProposeError, ReadError, Role, Standing, StateMachine,
    Status, log, meta, status,
};

/// The outcome of a command that is committed and applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    /// Where it stands in the log.
    pub position: Position,
    /// What the state machine replied.
    pub reply: Vec<u8>,
}

pub(crate) struct Inner<SM: StateMachine> {
    pub(crate) config: Config,
    pub(crate) env: Env,
    pub(crate) raft: Raft<SM>,
    disk: Arc<Disk>,
    shared: Arc<Shared<SM>>,
    snapshots: Arc<Snapshots>,
    behind: Arc<tokio::sync::Mutex<Behind>>,
    reads: Reads,
    followed: Reads,
    stopping: watch::Sender<bool>,
    standing: watch::Receiver<Standing>,
}

/// One member of the replicated store. Clones are the same member.
pub struct RaftStore<SM: StateMachine>(pub(crate) Arc<Inner<SM>>);

impl<SM: StateMachine> Clone for RaftStore<SM> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

fn opening(error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::InvalidData => OpenError::Damaged { what: error.to_string() },
        io::ErrorKind::StorageFull => OpenError::StorageFull,
        _ => OpenError::Io(error),
    }
}

impl<SM: StateMachine> RaftStore<SM> {
    /// Checks the database, loads the state into `machine`, and starts replication.
    ///
    /// # Errors
    /// Refuses a database that is foreign, damaged, newer, or empty where it must not be, and says which.
    pub async fn open(
        config: Config,
        env: Env,
        engine: Arc<dyn Engine>,
        dial: Arc<dyn Dial>,
        machine: SM,
    ) -> Result<Self, OpenError> {
        let settings = Arc::new(config.for_openraft()?);
        let disk = Arc::new(Disk::new(engine, env.clone()));
        meta::check_identity(&disk, &config).await?;
        log::verify(&disk, applied_index(&disk).map_err(opening)?).await.map_err(opening)?;
        let snapshots = Snapshots::open(disk.clone(), config.snapshot_chunk).await.map_err(opening)?;
        let (shared, snapshots) = (Arc::new(Shared::new(machine)), Arc::new(snapshots));
        let worker = Machine::open(disk.clone(), shared.clone(), snapshots.clone(), config.write_behind);
        let worker = worker.map_err(opening)?;
        let behind = worker.behind();
        let network = Network::new(config.id, env.clone(), dial, config.election_min, disk.gaps.clone());
        let raft = Raft::new(config.id, settings, network.clone(), Log::new(disk.clone()), worker)
            .await
            .map_err(|fatal| OpenError::Damaged { what: fatal.to_string() })?;
        drop(cara_env::spawn(keep_connected(network.clone(), raft.metrics())));
        Suspicion::start(&config, env.clone(), raft.clone(), network.clone());
        let reads = Reads::of_leader(env.clone(), raft.clone(), config.read_timeout);
        let followed = Reads::of_follower(env.clone(), raft.clone(), network.clone(), config.read_timeout);
        let stopping = watch::Sender::new(false);
        let standing = watch_standing(Ticks::of(&raft, &disk));
        let inner = Inner { config, env, raft, disk, shared, snapshots, behind, reads, followed, stopping, standing };
        Ok(Self(Arc::new(inner)))
    }

    /// Makes this server and the others the first members of a new cluster. Once, on one server.
    ///
    /// # Errors
    /// `Refused` when this server has members already.
    pub async fn initialize(&self, members: BTreeMap<u64, String>) -> Result<(), ChangeError> {
        let members: BTreeMap<u64, BasicNode> =
            members.into_iter().map(|(id, address)| (id, BasicNode { addr: address })).collect();
        self.0.raft.initialize(members).await.map_err(|error| match error {
            RaftError::APIError(refused) => ChangeError::Refused { reason: refused.to_string() },
            RaftError::Fatal(fatal) => ChangeError::Stopped { reason: fatal.to_string() },
        })
    }

    /// Replicates a command and applies it. Returns once a majority has it durably and this server has applied it.
    ///
    /// # Errors
    /// `Unknown` means just that: the command may be applied later. All others: nothing was done.
    pub async fn propose(&self, command: Vec<u8>) -> Result<Proposed, ProposeError> {
        if self.is_low_on_space() {
            return Err(ProposeError::StorageFull);
        }
        self.propose_freeing(command).await
    }

    /// As [`RaftStore::propose`], also while room is short: for commands that free room.
    ///
    /// # Errors
    /// As [`RaftStore::propose`].
    pub async fn propose_freeing(&self, command: Vec<u8>) -> Result<Proposed, ProposeError> {
        if command.len() > COMMAND_MAX {
            return Err(ProposeError::TooLarge { bytes: command.len(), limit: COMMAND_MAX });
        }
        if self.0.disk.is_full() {
            return Err(ProposeError::StorageFull);
        }
        if let Err(fatal) = &self.0.raft.metrics().borrow_watched().running_state {
            return Err(ProposeError::Stopped { reason: fatal.to_string() });
        }
        let limit = self.0.config.propose_timeout;
        match cara_env::timeout(&*self.0.env.clock, limit, self.write(Bytes(command.into()))).await {
            Err(Elapsed) => Err(ProposeError::Unknown { reason: format!("no majority answered within {limit:?}") }),
            Ok(Ok(done)) => Ok(Proposed { position: position(&done.log_id), reply: done.data.0.into() }),
            Ok(Err(RaftError::Fatal(fatal))) => Err(ProposeError::Unknown { reason: fatal.to_string() }),
            Ok(unconfirmed) if is_unconfirmed(&unconfirmed) => Err(ProposeError::NoQuorum),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))) => {
                Err(ProposeError::NotLeader { leader: leader_of(forward) })
            }
            Ok(Err(RaftError::APIError(other))) => Err(ProposeError::Unknown { reason: other.to_string() }),
        }
    }

    /// A leader that no majority has answered for a lease takes nothing. Mostly that passes, as when the disks of all servers
    /// were busy for a second; if not, another one leads by the end of an election.
    async fn write(&self, command: Bytes) -> Written {
        let written = self.0.raft.client_write(command.clone()).await;
        if !is_unconfirmed(&written) {
            return written;
        }
        let confirmed = async {
            let clock = &*self.0.env.clock;
            let ends = clock.monotonic() + self.0.config.election_max;
            loop {
                clock.sleep(self.0.config.heartbeat / 2).await; // Whoever can answer does so at the next heartbeat.
                let written = self.0.raft.client_write(command.clone()).await;
                if !is_unconfirmed(&written) || clock.monotonic() >= ends {
                    return written;
                }
            }
        };
        Box::pin(confirmed).await // Rare, and large.
    }

    fn is_low_on_space(&self) -> bool {
        self.0.config.low_space.as_ref().is_some_and(|low| low())
    }

    /// Makes the following [`RaftStore::with_state`] linearizable: a majority has confirmed after this call that this
    /// server still leads, and everything committed before the call is applied. Gives the applied index. Concurrent
    /// calls share one round.
    ///
    /// # Errors
    /// On a server that doesn't lead, or whose leadership nobody confirms.
    pub async fn read_barrier(&self) -> Result<u64, ReadError> {
        if cara_env::planted("read-guarded-by-is-leader") && self.status().role == Role::Leader {
            return Ok(self.0.shared.read(|_, at| at.map_or(0, |at| at.index)));
        }
        let at_least = self.0.reads.barrier().await?;
        Ok(self.0.shared.read(|_, at| at.map_or(0, |at| at.index)).max(at_least))
    }

    /// As [`RaftStore::read_barrier`], on a server that doesn't lead: the leader says how far the log was acknowledged
    /// when it was asked, and this server waits until it has applied that. Concurrent calls share one question.
    ///
    /// # Errors
    /// `NotLeader` when no leader is known, or it can't be asked, or doesn't lead; `NoQuorum` when it says nothing in time,
    /// or nobody confirms that it leads.
    pub async fn follower_barrier(&self) -> Result<u64, ReadError> {
        self.0.followed.barrier().await
    }

    /// Looks at the state as it is on this server. The lock is short: copy out what you need, don't compute in it.
    pub fn with_state<T>(&self, read: impl FnOnce(&SM) -> T) -> T {
        self.0.shared.read(|machine, _| read(machine))
    }

    /// As [`RaftStore::with_state`], with the position of the last applied entry; none in a new store.
    pub fn with_state_at<T>(&self, read: impl FnOnce(&SM, Option<Position>) -> T) -> T {
        self.0.shared.read(read)
    }

    /// Makes durable what this server has applied.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn sync_applied(&self) -> io::Result<()> {
        self.0.behind.lock().await.write(&self.0.disk).await?;
        self.0.disk.engine.sync().await
    }

    /// This member's view of the cluster now.
    pub fn status(&self) -> Status {
        Status::from_metrics(&self.0.raft.metrics().borrow_watched(), self.0.disk.is_full())
    }

    /// The leader as this member knows it: what every request asks for.
    pub fn leader(&self) -> Option<Leader> {
        status::leader(&self.0.raft.metrics().borrow_watched())
    }

    /// Ticks whenever role, leader, term or members change, and not with every entry.
    pub fn changed(&self) -> watch::Receiver<Standing> {
        self.0.standing.clone()
    }

    /// Ticks with every entry as well.
    pub(crate) fn ticks(&self) -> Ticks {
        Ticks::of(&self.0.raft, &self.0.disk)
    }

    /// Returns the reason once replication has ended by itself.
    pub async fn ended(&self) -> String {
        match self.changed().wait_for(|standing| standing.stopped.is_some()).await {
            Ok(standing) => standing.stopped.clone().unwrap_or_default(),
            Err(_) => "its core is gone".to_owned(),
        }
    }

    /// The gRPC service for the other members. The caller's layer must admit certified members of this cluster only:
    /// raft trusts what it is told here.
    pub fn service(&self) -> RaftServer<RaftService<SM>> {
        let service = RaftService {
            env: self.0.env.clone(),
            raft: self.0.raft.clone(),
            snapshots: self.0.snapshots.clone(),
            receiving: Arc::default(),
            stopping: self.0.stopping.subscribe(),
            reads: self.0.reads.clone(),
        };
        RaftServer::new(service).max_decoding_message_size(MESSAGE_MAX).max_encoding_message_size(MESSAGE_MAX)
    }

    /// Says that this server is about to stop: nothing that followers hold open here delays its end, and they look for
    /// another leader as soon as its address refuses connections.
    pub fn announce_stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Ends replication on this server. The database is free once the last handle is gone.
    pub async fn shutdown(&self) {
        self.announce_stop();
        self.0.disk.close();
        if let Err(error) = self.0.raft.shutdown().await {
            tracing::error!(%error, "replication did not end cleanly");
        }
    }
}

/// Was it refused, by a leader, because no majority has answered that one lately?
fn is_unconfirmed(written: &Written) -> bool {
    let Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) = written else { return false };
    forward.reason == ForwardReason::LeaseExpired
}

pub(crate) fn leader_of(forward: ForwardToLeader<TypeConfig>) -> Option<Leader> {
    Some((forward.leader_id?, forward.leader_node?.addr))
}
