//! How far the moves' copying is, as the leader hears it: for people who look, and to choose the road that the bytes
//! take. None of it enters the log, so a new leader knows nothing until the targets report again; nothing waits for it.
//!
//! Invariant: what is kept belongs to moves that run, and goes with them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cara_core::MoveId;
use cara_proto::workload::TransferStatus;

/// What is known of one move's copying.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The target's last word.
    pub last: TransferStatus,
    /// The target has said once that it can't dial the source. It stays so until the move is over: that the relay works
    /// is no sign that it isn't needed.
    pub relay: bool,
}

/// The registry. Clones share it. At most one entry a running move, of which there are at most `MOVES_RUNNING_MAX`.
#[derive(Clone, Default)]
pub struct Transfers(Arc<Mutex<BTreeMap<MoveId, Seen>>>);

impl Transfers {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<MoveId, Seen>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The target of a running move has reported. True when the relay is needed from now on.
    pub fn note(&self, id: &MoveId, status: TransferStatus) -> bool {
        let mut all = self.seen();
        let seen = all.entry(id.clone()).or_default();
        let begins = status.unreachable && !seen.relay;
        seen.relay |= status.unreachable;
        seen.last = status;
        begins
    }

    /// What was heard of a move's copying.
    pub fn of(&self, id: &MoveId) -> Option<Seen> {
        self.seen().get(id).cloned()
    }

    /// True when both ends shall meet at this server.
    pub fn needs_relay(&self, id: &MoveId) -> bool {
        self.seen().get(id).is_some_and(|seen| seen.relay)
    }

    /// The move is over.
    pub fn forget(&self, id: &MoveId) {
        self.seen().remove(id);
    }

    /// This server leads no more.
    pub fn forget_all(&self) {
        self.seen().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relay_once_needed_is_kept_until_the_move_is_over() {
        let (transfers, id) = (Transfers::default(), MoveId::from("mv_1"));
        let said = |unreachable| TransferStatus { unreachable, ..TransferStatus::default() };
        assert!(!transfers.note(&id, said(false)));
        assert!(transfers.note(&id, said(true)), "now it is needed");
        assert!(!transfers.note(&id, said(true)), "that is no news");
        assert!(!transfers.note(&id, said(false)));
        assert!(transfers.needs_relay(&id), "that it works through the relay is no reason to leave it");
        transfers.forget(&id);
        assert!(!transfers.needs_relay(&id));
    }
}
