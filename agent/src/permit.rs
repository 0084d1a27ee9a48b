//! Whether this process may start what the ledger says.
//!
//! A machine that has just started may be a copy of another one that runs all of it already, and its ledger can't tell. So it
//! starts nothing before a server has let it in, or it is plain that there is no server to ask: then the ledger is all that
//! there is, and the node runs what it says. What runs goes on in any case.

use std::time::Duration;

use tokio::sync::watch;

/// Servers that answer and have no leader get this long to elect one; an election takes a second or two.
const LEADERLESS_MAX: Duration = Duration::from_secs(60);

/// May it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    /// Not known yet.
    Waiting,
    /// It may.
    Open,
    /// Another machine is this node.
    Barred,
}

/// Told by whoever talks to servers, heard by whoever starts containers.
#[derive(Clone)]
pub(crate) struct Permits {
    permit: watch::Sender<Permit>,
    began: Duration,
}

impl Permits {
    /// A process that began at this time.
    pub(crate) fn new(now: Duration) -> (Self, watch::Receiver<Permit>) {
        let (permit, heard) = watch::channel(Permit::Waiting);
        (Self { permit, began: now }, heard)
    }

    fn set(&self, to: Permit) {
        self.permit.send_if_modified(|permit| std::mem::replace(permit, to) != to);
    }

    /// A leader has given it a session.
    pub(crate) fn let_in(&self) {
        self.set(Permit::Open);
    }

    /// The leader does not know yet whether another process is this node.
    pub(crate) fn held(&self) {
        self.set(Permit::Waiting);
    }

    /// The leader knows that another machine is this node.
    pub(crate) fn is_clone(&self) {
        self.set(Permit::Barred);
    }

    /// Nobody can be asked.
    pub(crate) fn nobody_there(&self) {
        self.permit.send_if_modified(|permit| {
            let waits = *permit == Permit::Waiting;
            if waits {
                *permit = Permit::Open;
            }
            waits
        });
    }

    /// Servers answer, and none of them leads.
    pub(crate) fn nobody_leads(&self, now: Duration) {
        if now.saturating_sub(self.began) >= LEADERLESS_MAX {
            self.nobody_there();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_started_before_it_is_known_who_this_is() {
        let (permits, heard) = Permits::new(Duration::from_secs(5));
        assert_eq!(*heard.borrow(), Permit::Waiting);
        permits.nobody_leads(Duration::from_secs(64));
        assert_eq!(*heard.borrow(), Permit::Waiting, "an election may be under way");
        permits.nobody_leads(Duration::from_secs(65));
        assert_eq!(*heard.borrow(), Permit::Open);
        permits.is_clone();
        permits.nobody_there();
        assert_eq!(*heard.borrow(), Permit::Barred, "what a leader knew stays known while servers are away");
        permits.let_in();
        assert_eq!(*heard.borrow(), Permit::Open);
    }
}
