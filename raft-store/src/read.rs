//! Linearizable reads by ReadIndex: one confirmation round of the leader serves all who wait for it.
//!
//! Never by lease: the pinned openraft renews a lease after a pause of the process although another leader was elected
//! meanwhile.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_env::Env;
use openraft::ReadPolicy;
use openraft::errors::{LinearizableReadError, RaftError};
use tokio::sync::{mpsc, oneshot};

use crate::handle::leader_of;
use crate::types::Raft;
use crate::{ReadError, StateMachine};

/// Readers that may wait for the next round; more wait at the door. Each is a few dozen bytes.
const WAITING_MAX: usize = 4096;

type Answer = Result<u64, ReadError>;

/// The door to the rounds.
pub(crate) struct Reads(mpsc::Sender<oneshot::Sender<Answer>>);

impl Reads {
    pub(crate) fn start<SM: StateMachine>(env: Env, raft: Raft<SM>, limit: Duration) -> Self {
        let (door, waiting) = mpsc::channel(WAITING_MAX);
        drop(cara_env::spawn(rounds(env, raft, limit, waiting)));
        Self(door)
    }

    /// Takes part in a round that starts after this call. Gives an index that is applied here.
    pub(crate) async fn barrier(&self) -> Answer {
        let stopped = || ReadError::Stopped { reason: "the server is shutting down".into() };
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

/// Whoever comes while a round is on its way takes part in the next: a round proves nothing about the time before it
/// began. Ends with the last handle.
async fn rounds<SM: StateMachine>(
    env: Env,
    raft: Raft<SM>,
    limit: Duration,
    mut waiting: mpsc::Receiver<oneshot::Sender<Answer>>,
) {
    let mut readers = Vec::new();
    let lease = cara_env::planted("lease-read").then(|| PlantedLease::start(&env));
    while waiting.recv_many(&mut readers, WAITING_MAX).await > 0 {
        let answer = match lease.as_ref().and_then(PlantedLease::index) {
            Some(index) => Ok(index),
            None => {
                let answer = cara_env::timeout(&*env.clock, limit, round(&raft)).await;
                answer.unwrap_or(Err(ReadError::NoQuorum))
            }
        };
        if let (Some(lease), Ok(index)) = (&lease, &answer) {
            lease.renew(*index);
        }
        for reader in readers.drain(..) {
            drop(reader.send(answer.clone())); // A reader that has gone away needs no answer.
        }
    }
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
