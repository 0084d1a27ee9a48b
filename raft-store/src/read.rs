//! Linearizable reads by ReadIndex (section 6.4 of Ongaro's dissertation): one confirmation round of the leader serves all
//! who wait for it, and one question of a follower to the leader all who wait there.
//!
//! Never by lease: the pinned openraft renews a lease after a pause of the process although another leader was elected
//! meanwhile.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_env::Env;
use openraft::ReadPolicy;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{LinearizableReadError, RaftError};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::handle::leader_of;
use crate::network::Network;
use crate::types::Raft;
use crate::{ReadError, StateMachine};

/// Readers that may wait for the next round; more wait at the door. Each is a few dozen bytes.
const WAITING_MAX: usize = 4096;

type Answer = Result<u64, ReadError>;

/// The answer of a server that is asked for the read index by another one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ReadIndex {
    /// A majority has confirmed that it leads, and everything up to here is applied there.
    At(u64),
    /// It doesn't lead.
    NotLeader,
    /// It may lead; nobody confirms it in time.
    NoQuorum,
}

impl From<Answer> for ReadIndex {
    fn from(answer: Answer) -> Self {
        match answer {
            Ok(index) => Self::At(index),
            Err(ReadError::NoQuorum) => Self::NoQuorum,
            Err(ReadError::NotLeader { .. } | ReadError::Stopped { .. }) => Self::NotLeader,
        }
    }
}

/// The door to the rounds. Clones are the same door.
#[derive(Clone)]
pub(crate) struct Reads(mpsc::Sender<oneshot::Sender<Answer>>);

impl Reads {
    /// Of a leader, which asks its followers whether it still leads.
    pub(crate) fn of_leader<SM: StateMachine>(env: Env, raft: Raft<SM>, limit: Duration) -> Self {
        let lease = cara_env::planted("lease-read").then(|| Arc::new(PlantedLease::start(&env)));
        Self::start(env, limit, move || {
            let (raft, lease) = (raft.clone(), lease.clone());
            async move {
                if let Some(index) = lease.as_ref().and_then(|lease| lease.index()) {
                    return Ok(index);
                }
                let answer = round(&raft).await;
                if let (Some(lease), Ok(index)) = (&lease, &answer) {
                    lease.renew(*index);
                }
                answer
            }
        })
    }

    /// Of a follower, which asks the leader how far to go.
    pub(crate) fn of_follower<SM: StateMachine>(env: Env, raft: Raft<SM>, network: Network, limit: Duration) -> Self {
        Self::start(env, limit, move || {
            let (raft, network) = (raft.clone(), network.clone());
            async move { ask_leader(&raft, &network, limit).await }
        })
    }

    fn start<F>(env: Env, limit: Duration, round: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let (door, waiting) = mpsc::channel(WAITING_MAX);
        drop(cara_env::spawn(rounds(env, limit, waiting, round)));
        Self(door)
    }

    /// Takes part in a round that starts after this call. Gives an index that is applied here.
    pub(crate) async fn barrier(&self) -> Answer {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).await.map_err(|_| ending())?;
        answered.await.map_err(|_| ending())?
    }
}

fn ending() -> ReadError {
    ReadError::Stopped { reason: "the server is shutting down".into() }
}

/// Whoever comes while a round is on its way takes part in the next: a round proves nothing about the time before it
/// began. Ends with the last handle.
async fn rounds<F: Future<Output = Answer>>(
    env: Env,
    limit: Duration,
    mut waiting: mpsc::Receiver<oneshot::Sender<Answer>>,
    round: impl Fn() -> F,
) {
    let mut readers = Vec::new();
    while waiting.recv_many(&mut readers, WAITING_MAX).await > 0 {
        let answer = cara_env::timeout(&*env.clock, limit, round()).await.unwrap_or(Err(ReadError::NoQuorum));
        for reader in readers.drain(..) {
            drop(reader.send(answer.clone())); // A reader that has gone away needs no answer.
        }
    }
}

/// The leader proves that it leads and says how far its log was acknowledged; when this server has applied that, it has
/// all that a read here must see.
async fn ask_leader<SM: StateMachine>(raft: &Raft<SM>, network: &Network, limit: Duration) -> Answer {
    let mut metrics = raft.metrics();
    let leader = {
        let now = metrics.borrow_watched();
        let leader = now.current_leader.filter(|leader| *leader != now.id);
        leader.and_then(|id| Some((id, now.membership_config.membership().get_node(&id)?.clone())))
    };
    let Some((id, node)) = leader else { return Err(ReadError::NotLeader { leader: None }) };
    let index = network.read_index(id, &node, limit).await?;
    if cara_env::planted("follower-reads-before-it-has-applied") {
        return Ok(index);
    }
    while metrics.borrow_watched().last_applied.is_none_or(|applied| applied.index() < index) {
        metrics.changed().await.map_err(|_| ending())?;
    }
    Ok(index)
}

async fn round<SM: StateMachine>(raft: &Raft<SM>) -> Answer {
    cara_env::mark("read.asked", String::new);
    let linearizer = raft.get_read_linearizer(ReadPolicy::ReadIndex).await.map_err(|error| match error {
        RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)) => {
            ReadError::NotLeader { leader: leader_of(forward) }
        }
        RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) => ReadError::NoQuorum,
        RaftError::Fatal(fatal) => ReadError::Stopped { reason: fatal.to_string() },
    })?;
    let index = linearizer.read_log_id().index();
    match linearizer.await_ready(raft).await {
        Ok(_) => Ok(index),
        Err(fatal) => Err(ReadError::Stopped { reason: fatal.to_string() }),
    }
}

/// The planted bug: a lease shorter than any election, counted in ticks of the process. A process that is paused has none.
///
/// What does no harm is a lease on the clock, even one counted from the answer: an answer to a heartbeat counts for 200 ms
/// only, and the lease is over before the next election can be.
struct PlantedLease(Arc<Mutex<(u32, u64)>>);

impl PlantedLease {
    /// Together 700 ms.
    const TICKS: u32 = 7;
    const TICK: Duration = Duration::from_millis(100);

    fn start(env: &Env) -> Self {
        let lease = Self(Arc::default());
        let (clock, left) = (env.clock.clone(), Arc::downgrade(&lease.0));
        drop(cara_env::spawn(async move {
            while let Some(left) = left.upgrade() {
                {
                    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                    left.0 = left.0.saturating_sub(1);
                }
                drop(left);
                clock.sleep(Self::TICK).await;
            }
        }));
        lease
    }

    /// What is applied at least, while it lasts.
    fn index(&self) -> Option<u64> {
        let (ticks, index) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (ticks > 0).then_some(index)
    }

    /// A round has ended well. Reads under the lease don't make it longer.
    fn renew(&self, index: u64) {
        let mut lease = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lease.0 == 0 {
            *lease = (Self::TICKS, index);
        }
    }
}
