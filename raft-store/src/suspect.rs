//! A leader that died is replaced before its lease runs out. Silence proves nothing for a second; but when its process
//! ends, the kernel of its machine closes its streams and refuses connections to its address, within milliseconds.
//!
//! A follower that saw both stops counting on the leader (it drops its lease) and asks for a pre-vote. Others grant it
//! only if they saw the same, or the lease has run out: one follower with a broken path unseats nobody, and no term
//! changes before a majority agrees. A machine without power refuses nothing; raft's own timer is there for that.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cara_env::{Elapsed, Env};
use openraft::async_runtime::WatchReceiver;
use openraft::raft::TransferLeaderRequest;
use tokio::sync::watch;

use crate::types::{Raft, Vote};
use crate::{Config, Dial, StateMachine};

/// Pause before a leader is dialled again whose answer said nothing: a process that is ending resets connections until
/// its listener is closed too.
const AGAIN: Duration = Duration::from_millis(20);

/// A voter begins this long after the one before it, so that one is elected before the next one asks.
const STAGGER: Duration = Duration::from_millis(50);

/// Told when a stream of appends has ended.
pub(crate) type Ended = Arc<watch::Sender<()>>;

/// Tells of the end of a stream when it is dropped, however that came.
pub(crate) struct Ending(pub(crate) Ended);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.send_replace(());
    }
}

/// The leader that a follower counts on.
struct Followed {
    id: u64,
    address: String,
    vote: Vote,
    /// Voters besides the leader, and how many of them come before this server.
    others: u32,
    before: u32,
}

/// Looks after the leader of one member.
pub(crate) struct Suspicion<SM: StateMachine> {
    id: u64,
    /// After this long raft's own timer has done what is to be done.
    limit: Duration,
    env: Env,
    raft: Raft<SM>,
    dial: Arc<dyn Dial>,
}

impl<SM: StateMachine> Suspicion<SM> {
    /// Starts the task; it ends when all senders are gone.
    pub(crate) fn start(config: &Config, env: Env, raft: Raft<SM>, dial: Arc<dyn Dial>) -> Ended {
        let (tell, mut ended) = watch::channel(());
        let this = Self { id: config.id, limit: config.election_max, env, raft, dial };
        drop(cara_env::spawn(async move {
            while ended.changed().await.is_ok() {
                let Some(leader) = this.followed() else { continue };
                let work = async {
                    if this.is_gone(&leader).await {
                        this.replace(&leader).await;
                    }
                };
                // Nothing is lost when the time is up: the timer of raft ran meanwhile.
                if let Err(Elapsed) = cara_env::timeout(&*this.env.clock, this.limit, work).await {
                    tracing::info!(leader = leader.id, "neither the leader nor a new one was found in time");
                }
            }
        }));
        Arc::new(tell)
    }

    fn followed(&self) -> Option<Followed> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let id = metrics.current_leader.filter(|leader| *leader != self.id)?;
        let members = metrics.membership_config.membership();
        let address = members.get_node(&id)?.addr.clone();
        let (mut others, mut before, mut votes) = (0, 0, false);
        for voter in members.voter_ids().filter(|voter| *voter != id) {
            others += 1;
            before += u32::from(voter < self.id);
            votes |= voter == self.id;
        }
        votes.then_some(Followed { id, address, vote: metrics.vote, others, before })
    }

    fn still_follows(&self, leader: &Followed) -> bool {
        self.raft.metrics().borrow_watched().vote == leader.vote
    }

    /// Does the leader's machine say that nobody listens at its address?
    async fn is_gone(&self, leader: &Followed) -> bool {
        while self.still_follows(leader) {
            match cara_env::timeout(&*self.env.clock, self.limit, self.dial.dial(&leader.address)).await {
                Ok(Ok(_)) => return false,
                Ok(Err(error)) if is_refusal(&error) => return true,
                Ok(Err(_)) | Err(Elapsed) => self.env.clock.sleep(AGAIN).await,
            }
        }
        false
    }

    async fn replace(&self, leader: &Followed) {
        tracing::info!(leader = leader.id, address = leader.address, "the leader is gone: its address refuses connections");
        // What a leader says when it hands over: its lease counts no more. Only the lease of this server changes.
        let gone = TransferLeaderRequest::new(leader.vote, leader.id, None);
        if self.raft.handle_transfer_leader(gone).await.is_err() {
            return; // Raft has ended.
        }
        self.env.clock.sleep(STAGGER * leader.before).await;
        while self.still_follows(leader) && self.raft.trigger().elect(true).await.is_ok() {
            self.env.clock.sleep(STAGGER * leader.others).await;
        }
    }
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
