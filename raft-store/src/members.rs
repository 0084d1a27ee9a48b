//! Changing who belongs to the cluster. All of it works on the leader only, one change at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use cara_env::Elapsed;
use openraft::errors::{ClientWriteError, RaftError};
use openraft::{BasicNode, ChangeMembers};

use crate::handle::{RaftStore, leader_of};
use crate::types::{TypeConfig, Written};
use crate::{ChangeError, Role, StateMachine, Status};

fn refused<T>(reason: impl Into<String>) -> Result<T, ChangeError> {
    Err(ChangeError::Refused { reason: reason.into() })
}

impl<SM: StateMachine> RaftStore<SM> {
    /// Sends the log to a new server, which doesn't vote yet. Ids are never used again, also not by the same machine
    /// with an empty disk.
    ///
    /// # Errors
    /// `Refused` while another change is on its way, or when the id has another address.
    pub async fn add_learner(&self, id: u64, address: &str) -> Result<(), ChangeError> {
        let known = self.status();
        if let Some(other) = known.voters.get(&id).or(known.learners.get(&id))
            && other != address
        {
            return refused(format!("server {id} is a member already, at {other}"));
        }
        self.change(self.0.raft.add_learner(id, BasicNode { addr: address.to_owned() }, false)).await
    }

    /// Lets a learner vote, once it has caught up: before that it could cost the cluster its majority.
    ///
    /// # Errors
    /// `Refused` when the server is no learner or is too far behind.
    pub async fn promote(&self, id: u64) -> Result<(), ChangeError> {
        let status = self.leading()?;
        if status.voters.contains_key(&id) {
            return Ok(());
        }
        if !status.learners.contains_key(&id) {
            return refused(format!("server {id} is not a learner; add it first"));
        }
        let has = status.matched.get(&id).copied().flatten();
        let behind = status.last_log.unwrap_or(0).saturating_sub(has.unwrap_or(0));
        if has.is_none() || behind > self.0.config.max_payload {
            return refused(format!("server {id} is {behind} entries behind; retry once it has caught up"));
        }
        let voters = ChangeMembers::AddVoterIds(BTreeSet::from([id]));
        self.change(self.0.raft.change_membership(voters, true)).await
    }

    /// Makes exactly these servers the voters; former ones become learners.
    ///
    /// # Errors
    /// `Refused` for an empty set or an unknown server.
    pub async fn change_voters(&self, voters: BTreeSet<u64>) -> Result<(), ChangeError> {
        self.change(self.0.raft.change_membership(voters, true)).await
    }

    /// Removes a server for good. The leader may remove itself: it hands over the leadership then.
    ///
    /// # Errors
    /// `Refused` for the last voter or an unknown server.
    pub async fn remove(&self, id: u64) -> Result<(), ChangeError> {
        let status = self.leading()?;
        let change: ChangeMembers<u64, BasicNode> = if status.voters.contains_key(&id) {
            if status.voters.len() == 1 {
                return refused(format!("server {id} is the last one that votes"));
            }
            ChangeMembers::RemoveVoters(BTreeSet::from([id]))
        } else if status.learners.contains_key(&id) {
            ChangeMembers::RemoveNodes(BTreeSet::from([id]))
        } else {
            return refused(format!("server {id} is not a member"));
        };
        self.change(self.0.raft.change_membership(change, false)).await
    }

    /// Hands the leadership to another voter and waits until somebody else leads.
    ///
    /// # Errors
    /// `Unknown` when that does not happen in time; leadership then stays or moves as elections decide.
    pub async fn transfer_leader(&self, id: u64) -> Result<(), ChangeError> {
        let status = self.leading()?;
        if id == status.id {
            return Ok(());
        }
        if !status.voters.contains_key(&id) {
            return refused(format!("server {id} does not vote"));
        }
        self.0.raft.trigger().transfer_leader(id).await.map_err(stopped)?;
        let limit = self.0.config.election_max * 2;
        self.wait(limit, "the leadership did not move", |now| now.role != Role::Leader && now.leader.is_some()).await
    }

    /// Builds a snapshot now and waits for it. Old entries can be removed from the log then.
    ///
    /// # Errors
    /// `Unknown` when it isn't there in time.
    pub async fn snapshot_now(&self) -> Result<(), ChangeError> {
        let applied = self.status().applied;
        self.0.raft.trigger().snapshot().await.map_err(stopped)?;
        let limit = self.0.config.snapshot_timeout;
        self.wait(limit, "the snapshot is not finished", |now| now.snapshot >= applied).await
    }

    /// Waits until this member's status is as wanted.
    ///
    /// # Errors
    /// `Unknown` with `otherwise` when `limit` passes first, `Stopped` when replication ends.
    pub async fn wait(
        &self,
        limit: Duration,
        otherwise: &str,
        wanted: impl Fn(&Status) -> bool + Send,
    ) -> Result<(), ChangeError> {
        let mut ticks = self.ticks();
        let reached = async {
            loop {
                let now = self.status();
                if wanted(&now) {
                    return Ok(());
                }
                if let Some(reason) = now.stopped {
                    return Err(ChangeError::Stopped { reason });
                }
                if !ticks.next().await {
                    return Err(ChangeError::Stopped { reason: "the server is shutting down".into() });
                }
            }
        };
        match cara_env::timeout(&*self.0.env.clock, limit, reached).await {
            Ok(reached) => reached,
            Err(Elapsed) => Err(ChangeError::Unknown { reason: format!("{otherwise} within {limit:?}") }),
        }
    }

    fn leading(&self) -> Result<Status, ChangeError> {
        let status = self.status();
        if status.role == Role::Leader { Ok(status) } else { Err(ChangeError::NotLeader { leader: status.leader }) }
    }

    async fn change(&self, change: impl Future<Output = Written>) -> Result<(), ChangeError> {
        let limit = self.0.config.propose_timeout;
        match cara_env::timeout(&*self.0.env.clock, limit, change).await {
            Err(Elapsed) => Err(ChangeError::Unknown { reason: format!("no majority answered within {limit:?}") }),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RaftError::Fatal(fatal))) => Err(stopped(fatal)),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))) => {
                Err(ChangeError::NotLeader { leader: leader_of(forward) })
            }
            Ok(Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)))) => {
                Err(ChangeError::Unknown { reason: "the leader changed meanwhile".into() })
            }
            Ok(Err(RaftError::APIError(other))) => refused(other.to_string()),
        }
    }
}

fn stopped(fatal: openraft::errors::Fatal<TypeConfig>) -> ChangeError {
    ChangeError::Stopped { reason: fatal.to_string() }
}

/// The members as a map for [`RaftStore::initialize`].
pub fn members<'a>(all: impl IntoIterator<Item = (u64, &'a str)>) -> BTreeMap<u64, String> {
    all.into_iter().map(|(id, address)| (id, address.to_owned())).collect()
}
