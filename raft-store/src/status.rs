//! What a member knows about itself and its cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::{RaftMetrics, ServerState};

use crate::types::TypeConfig;
use crate::{Leader, Position};

/// The part that a member plays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Receives the log, doesn't vote.
    #[default]
    Learner,
    /// Votes and follows.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Leads, as far as it knows. Never a reason to serve a read: see [`crate::RaftStore::read_barrier`].
    Leader,
}

pub(crate) fn role(metrics: &RaftMetrics<TypeConfig>) -> Role {
    match metrics.state {
        ServerState::Leader => Role::Leader,
        ServerState::Candidate => Role::Candidate,
        ServerState::Follower => Role::Follower,
        ServerState::Learner | ServerState::Shutdown => Role::Learner,
    }
}

pub(crate) fn stopped(metrics: &RaftMetrics<TypeConfig>) -> Option<String> {
    metrics.running_state.as_ref().err().map(ToString::to_string)
}

/// The leader with its address, if one is known.
pub(crate) fn leader(metrics: &RaftMetrics<TypeConfig>) -> Option<Leader> {
    let id = metrics.current_leader?;
    let node = metrics.membership_config.membership().get_node(&id);
    Some((id, node.map(|node| node.addr.clone()).unwrap_or_default()))
}

/// A member's view of the cluster at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// This server.
    pub id: u64,
    /// Its part.
    pub role: Role,
    /// The leader, if one is known.
    pub leader: Option<Leader>,
    /// Current term.
    pub term: u64,
    /// Index of the last entry in the log.
    pub last_log: Option<u64>,
    /// Last entry known to be committed.
    pub committed: Option<Position>,
    /// Last entry applied to the state machine.
    pub applied: Option<Position>,
    /// Last entry in the current snapshot.
    pub snapshot: Option<Position>,
    /// Last entry removed from the log.
    pub purged: Option<Position>,
    /// Voting servers and their addresses.
    pub voters: BTreeMap<u64, String>,
    /// Servers that receive the log without voting.
    pub learners: BTreeMap<u64, String>,
    /// On the leader: the last entry that each server is known to have.
    pub matched: BTreeMap<u64, Option<u64>>,
    /// On the leader: how long ago each other server last answered.
    pub heard: BTreeMap<u64, Duration>,
    /// On the leader: how long ago a majority last confirmed it. Grows while the leader is cut off.
    pub quorum_acked: Option<Duration>,
    /// The device is full; this server waits for room.
    pub storage_full: bool,
    /// Why replication has ended, if it has.
    pub stopped: Option<String>,
}

impl Status {
    pub(crate) fn from_metrics(metrics: &RaftMetrics<TypeConfig>, storage_full: bool) -> Self {
        let membership = metrics.membership_config.membership();
        let voter_ids: BTreeSet<u64> = membership.voter_ids().collect();
        let mut voters = BTreeMap::new();
        let mut learners = BTreeMap::new();
        for (id, node) in membership.nodes() {
            let group = if voter_ids.contains(id) { &mut voters } else { &mut learners };
            group.insert(*id, node.addr.clone());
        }
        let position = |log_id: &Option<crate::types::LogId>| log_id.as_ref().map(crate::types::position);
        Self {
            id: metrics.id,
            role: role(metrics),
            leader: leader(metrics),
            term: metrics.current_term,
            last_log: metrics.last_log_index,
            committed: position(&metrics.local_committed),
            applied: position(&metrics.last_applied),
            snapshot: position(&metrics.snapshot),
            purged: position(&metrics.purged),
            matched: metrics.replication.as_ref().map_or_else(BTreeMap::new, |replication| {
                replication.iter().map(|(id, log_id)| (*id, log_id.as_ref().map(|l| l.index()))).collect()
            }),
            heard: metrics.heartbeat.as_ref().map_or_else(BTreeMap::new, |heartbeat| {
                heartbeat
                    .iter()
                    .filter_map(|(id, at)| Some((*id, openraft::Instant::elapsed(&**at.as_ref()?))))
                    .collect()
            }),
            quorum_acked: metrics.last_quorum_acked.as_ref().map(|at| openraft::Instant::elapsed(&**at)),
            voters,
            learners,
            storage_full,
            stopped: stopped(metrics),
        }
    }

    /// Does a majority of the voters still answer, if up to one more of them is lost? On the leader only.
    pub fn can_lose_one(&self, lag_max: u64) -> bool {
        let last = self.last_log.unwrap_or(0);
        let current = self
            .voters
            .keys()
            .filter(|id| {
                **id == self.id || self.matched.get(id).copied().flatten().is_some_and(|m| m + lag_max >= last)
            })
            .count();
        current > self.voters.len() / 2 + 1
    }
}
