//! A leader that died is replaced before its lease runs out. Silence proves nothing for a second; but when its process
//! ends, the kernel of its machine resets its connections and refuses new ones, within milliseconds.
//!
//! So each follower holds a call open at its leader. When it breaks and the leader's address refuses connections, the
//! follower stops counting on the leader (it drops its lease) and asks for a pre-vote. Others grant it only if they saw
//! the same, or the lease has run out: one follower with a broken path unseats nobody, and no term changes before a
//! majority agrees. A machine without power refuses nothing; raft's own timer is there for that.

use std::error::Error;
use std::io;
use std::time::Duration;

use cara_env::{Elapsed, Env};
use openraft::BasicNode;
use openraft::alias::WatchReceiverOf;
use openraft::async_runtime::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use openraft::raft::TransferLeaderRequest;

use crate::network::{Attended, Network};
use crate::types::{Raft, TypeConfig, Vote};
use crate::{Config, StateMachine};

/// Pause before a leader is dialled again whose answer said nothing: a process that is ending resets connections until
/// its listener is closed too.
const AGAIN: Duration = Duration::from_millis(20);

/// Pause before a call is held open again at a leader that is still there.
const RETURN: Duration = Duration::from_millis(100);

/// A voter begins this long after the one before it, so that one is elected before the next one asks.
const STAGGER: Duration = Duration::from_millis(50);

/// What tells of a new leader.
type Servers = WatchReceiverOf<TypeConfig, RaftServerMetrics<TypeConfig>>;

/// The leader that a follower counts on.
struct Followed {
    id: u64,
    node: BasicNode,
    vote: Vote,
    /// Voters besides the leader, and how many of them come before this server.
    others: u32,
    before: u32,
}

/// Looks after the leader of one member.
pub(crate) struct Suspicion<SM: StateMachine> {
    /// After this long raft's own timer has done what is to be done.
    limit: Duration,
    env: Env,
    raft: Raft<SM>,
    network: Network,
}

impl<SM: StateMachine> Suspicion<SM> {
    /// Starts the task; it ends with raft.
    pub(crate) fn start(config: &Config, env: Env, raft: Raft<SM>, network: Network) {
        let this = Self { limit: config.election_max, env, raft, network };
        let mut servers = this.raft.server_metrics();
        drop(cara_env::spawn(async move {
            while let Some(leader) = next_followed(&mut servers).await
                && this.attend(&leader, &mut servers).await.is_some()
            {}
        }));
    }

    /// Stays with this leader until it is gone or another one leads. None once raft has ended.
    async fn attend(&self, leader: &Followed, servers: &mut Servers) -> Option<()> {
        while self.still_follows(leader) {
            let attended = tokio::select! {
                biased;
                replaced = replaced(servers, leader) => return replaced,
                attended = self.network.attend(leader.id, &leader.node) => attended,
            };
            if attended == Attended::Unknown {
                return replaced(servers, leader).await;
            }
            let work = async {
                if self.is_gone(leader).await {
                    self.replace(leader).await;
                }
            };
            if let Err(Elapsed) = cara_env::timeout(&*self.env.clock, self.limit, work).await {
                tracing::info!(leader = leader.id, "neither the leader nor a new one was found in time");
            }
            self.env.clock.sleep(RETURN).await;
        }
        Some(())
    }

    fn still_follows(&self, leader: &Followed) -> bool {
        self.raft.server_metrics().borrow_watched().vote == leader.vote
    }

    /// Does the leader's machine say that nobody listens at its address? The caller limits the time.
    async fn is_gone(&self, leader: &Followed) -> bool {
        while self.still_follows(leader) {
            match self.network.dial(&leader.node.addr).await {
                Ok(_) => return false,
                Err(error) if is_refusal(&error) => return true,
                Err(_) => self.env.clock.sleep(AGAIN).await,
            }
        }
        false
    }

    async fn replace(&self, leader: &Followed) {
        let (id, address) = (leader.id, &leader.node.addr);
        tracing::info!(leader = id, address, "the leader is gone: its address refuses connections");
        // What a leader says when it hands over: its lease counts no more. Only the lease of this server changes.
        let gone = TransferLeaderRequest::new(leader.vote, id, None);
        if self.raft.handle_transfer_leader(gone).await.is_err() {
            return; // Raft has ended.
        }
        self.env.clock.sleep(STAGGER * leader.before).await;
        while self.still_follows(leader) && self.raft.trigger().elect(true).await.is_ok() {
            self.env.clock.sleep(STAGGER * leader.others).await;
        }
    }
}

/// Waits until this server is a voter that follows somebody. None once raft has ended.
async fn next_followed(servers: &mut Servers) -> Option<Followed> {
    loop {
        if let Some(followed) = followed(&servers.borrow_watched()) {
            return Some(followed);
        }
        servers.changed().await.ok()?;
    }
}

/// Waits until this server follows another leader, or the same one anew. None once raft has ended.
async fn replaced(servers: &mut Servers, leader: &Followed) -> Option<()> {
    while servers.borrow_watched().vote == leader.vote {
        servers.changed().await.ok()?;
    }
    Some(())
}

fn followed(servers: &RaftServerMetrics<TypeConfig>) -> Option<Followed> {
    let id = servers.current_leader.filter(|leader| *leader != servers.id)?;
    let members = servers.membership_config.membership();
    let node = members.get_node(&id)?.clone();
    let (mut others, mut before, mut votes) = (0, 0, false);
    for voter in members.voter_ids().filter(|voter| *voter != id) {
        others += 1;
        before += u32::from(voter < servers.id);
        votes |= voter == servers.id;
    }
    votes.then_some(Followed { id, node, vote: servers.vote, others, before })
}

/// Is "connection refused" what the error comes from? Transports wrap what the kernel said.
fn is_refusal(error: &io::Error) -> bool {
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let mut cause: Option<&(dyn Error + 'static)> = error.get_ref().map(|inner| inner as _);
    if refused(error) {
        return true;
    }
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(refused) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no connection to the server")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn a_refusal_is_seen_through_what_wraps_it() {
        let of = |kind: io::ErrorKind| io::Error::other(Wrapped(io::Error::other(Wrapped(kind.into()))));
        assert!(is_refusal(&io::ErrorKind::ConnectionRefused.into()));
        assert!(is_refusal(&of(io::ErrorKind::ConnectionRefused)));
        assert!(!is_refusal(&of(io::ErrorKind::ConnectionReset)));
        assert!(!is_refusal(&io::ErrorKind::TimedOut.into()));
    }
}
