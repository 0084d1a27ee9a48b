//! What of a member's status changes seldom, told to those who wait for just that.

use openraft::RaftMetrics;
use openraft::alias::WatchReceiverOf;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::watch;

use crate::disk::Disk;
use crate::types::{LogId, Raft, TypeConfig};
use crate::{Role, StateMachine, status};

/// What of a [`Status`](crate::Status) changes seldom: who leads, who is a member, and whether this one can work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its part.
    pub role: Role,
    /// The leader's id, if one is known.
    pub leader: Option<u64>,
    /// Current term.
    pub term: u64,
    /// The entry that made the members what they are.
    members: Option<LogId>,
    /// The device is full; this server waits for room.
    pub storage_full: bool,
    /// Why replication has ended, if it has.
    pub stopped: Option<String>,
}

/// Ticks with all that a status is made of: openraft's metrics, and whether the device is full, which is not among them and
/// while which they stand still.
pub(crate) struct Ticks {
    metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>,
    full: watch::Receiver<bool>,
}

impl Ticks {
    pub(crate) fn of<SM: StateMachine>(raft: &Raft<SM>, disk: &Disk) -> Self {
        Self { metrics: raft.metrics(), full: disk.full_changed() }
    }

    /// Waits for the next change. False once openraft's core has ended: there will be none.
    pub(crate) async fn next(&mut self) -> bool {
        tokio::select! {
            biased;
            changed = self.metrics.changed() => changed.is_ok(),
            changed = self.full.changed() => changed.is_ok(),
        }
    }

    fn standing(&mut self) -> Standing {
        let storage_full = *self.full.borrow_and_update();
        let metrics = self.metrics.borrow_watched();
        Standing {
            role: status::role(&metrics),
            leader: metrics.current_leader,
            term: metrics.current_term,
            members: *metrics.membership_config.log_id(),
            storage_full,
            stopped: status::stopped(&metrics),
        }
    }
}

/// Tells of what changes seldom among what changes with every entry. The task ends with openraft's core.
pub(crate) fn watch_standing(mut ticks: Ticks) -> watch::Receiver<Standing> {
    let (tell, standing) = watch::channel(ticks.standing());
    drop(cara_env::spawn(async move {
        let mut led = 0;
        loop {
            let goes_on = ticks.next().await;
            let now = ticks.standing();
            let leads = if now.role == Role::Leader { now.term } else { 0 };
            match (std::mem::replace(&mut led, leads), leads) {
                (before, now) if before == now => {}
                (term, 0) => cara_env::point("raft.deposed", || format!("term={term}")).await,
                (_, term) => cara_env::point("raft.elected", || format!("term={term}")).await,
            }
            tell.send_if_modified(|standing| {
                let is_news = *standing != now;
                *standing = now;
                is_news
            });
            if !goes_on {
                return;
            }
        }
    }));
    standing
}
