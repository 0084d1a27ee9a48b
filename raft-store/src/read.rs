//! Linearizable reads by ReadIndex: one confirmation round of the leader serves all who wait for it.
//!
//! Never by lease: the pinned openraft renews a lease after a pause of the process although another leader was elected
//! meanwhile.

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
    while waiting.recv_many(&mut readers, WAITING_MAX).await > 0 {
        let answer = cara_env::timeout(&*env.clock, limit, round(&raft)).await;
        let answer = answer.unwrap_or(Err(ReadError::NoQuorum));
        for reader in readers.drain(..) {
            drop(reader.send(answer.clone())); // A reader that has gone away needs no answer.
        }
    }
}

async fn round<SM: StateMachine>(raft: &Raft<SM>) -> Answer {
    cara_env::mark("read.asked", String::new);
    // A lease of our own, counted from an answer, would do no harm: an answer to a heartbeat counts for so short a time that
    // the lease ends before the next election can. That of openraft is renewed by any answer that comes in after a pause.
    let policy = if cara_env::planted("lease-read") { ReadPolicy::LeaseRead } else { ReadPolicy::ReadIndex };
    let linearizer = raft.get_read_linearizer(policy).await.map_err(|error| match error {
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
