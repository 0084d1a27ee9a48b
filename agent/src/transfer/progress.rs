//! How far a transfer is, as it is told to the leader: at once when something is decided, else at most once a second.

use std::collections::BTreeMap;
use std::time::Duration;

use cara_proto::workload::{Transfer, TransferStatus};
use tokio::sync::watch;

/// Each telling is a report, and a report may become an entry of the log.
const EVERY: Duration = Duration::from_secs(1);

/// The transfers to this node, by uid.
pub(crate) type Statuses = BTreeMap<String, TransferStatus>;

/// Tells about one round of one workload.
pub(super) struct Teller {
    uid: String,
    move_id: String,
    statuses: watch::Sender<Statuses>,
    told_at: Duration,
    told_sent: u64,
}

/// Bytes over all volumes of the round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bytes {
    pub(super) total: u64,
    pub(super) done: u64,
    pub(super) sent: u64,
}

impl Teller {
    pub(super) fn new(uid: &str, transfer: &Transfer, statuses: watch::Sender<Statuses>, now: Duration) -> Self {
        let (uid, move_id) = (uid.to_owned(), transfer.move_id.clone());
        Self { uid, move_id, statuses, told_at: now, told_sent: 0 }
    }

    /// Bytes have moved.
    pub(super) fn moved(&mut self, bytes: Bytes, now: Duration) {
        let since = now.saturating_sub(self.told_at);
        if since < EVERY {
            return;
        }
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = bytes.sent.saturating_sub(self.told_sent).saturating_mul(1000) / millis;
        (self.told_at, self.told_sent) = (now, bytes.sent);
        self.tell(|status| {
            count(status, bytes);
            status.rate_bytes_per_second = rate;
            status.error_code.clear();
            status.error.clear();
            status.unreachable = false;
        });
    }

    /// The attempt has failed, and is made again.
    pub(super) fn failed(&mut self, bytes: Bytes, code: &str, error: &str, unreachable: bool) {
        self.tell(|status| {
            count(status, bytes);
            status.rate_bytes_per_second = 0;
            status.error_code = code.to_owned();
            status.error = error.to_owned();
            status.unreachable = unreachable;
        });
    }

    /// The round is finished.
    pub(super) fn finished(&mut self, transfer: &Transfer, bytes: Bytes, digest: String) {
        self.tell(|status| {
            *status = TransferStatus {
                move_id: transfer.move_id.clone(),
                round: transfer.round,
                digest,
                r#final: transfer.r#final,
                ..TransferStatus::default()
            };
            count(status, bytes);
        });
    }

    fn tell(&self, change: impl FnOnce(&mut TransferStatus)) {
        self.statuses.send_if_modified(|statuses| {
            let status = statuses.entry(self.uid.clone()).or_default();
            let before = status.clone();
            if status.move_id != self.move_id {
                *status = TransferStatus { move_id: self.move_id.clone(), ..TransferStatus::default() };
            }
            change(status);
            *status != before
        });
    }
}

fn count(status: &mut TransferStatus, bytes: Bytes) {
    (status.bytes_total, status.bytes_done, status.bytes_sent) = (bytes.total, bytes.done, bytes.sent);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn flowing_bytes_are_told_once_a_second_and_an_end_at_once() {
        let statuses = watch::Sender::new(Statuses::new());
        let mut seen = statuses.subscribe();
        let transfer = Transfer { move_id: "m".into(), round: 2, ..Transfer::default() };
        let mut teller = Teller::new("u", &transfer, statuses.clone(), at(0));
        let bytes = |sent| Bytes { total: 10_000, done: sent, sent };
        for millis in (100..1_000).step_by(100) {
            teller.moved(bytes(millis), at(millis));
        }
        assert!(!seen.has_changed().expect("open"));
        teller.moved(bytes(2_000), at(2_000));
        let told = seen.borrow_and_update()["u"].clone();
        assert_eq!((told.round, told.bytes_sent, told.rate_bytes_per_second), (0, 2_000, 1_000));
        teller.finished(&transfer, bytes(2_100), "d".into());
        let told = seen.borrow_and_update()["u"].clone();
        assert_eq!((told.round, told.bytes_sent, told.rate_bytes_per_second), (2, 2_100, 0));
        assert_eq!((told.digest.as_str(), told.r#final), ("d", false));
    }

    #[test]
    fn a_failure_keeps_the_last_finished_round_and_another_move_forgets_it() {
        let statuses = watch::Sender::new(Statuses::new());
        let first = Transfer { move_id: "m".into(), round: 1, ..Transfer::default() };
        let mut teller = Teller::new("u", &first, statuses.clone(), at(0));
        teller.finished(&first, Bytes::default(), "d".into());
        teller.failed(Bytes::default(), "unreachable", "no route", true);
        let told = statuses.borrow()["u"].clone();
        assert_eq!((told.round, told.error_code.as_str(), told.unreachable), (1, "unreachable", true));
        let other = Transfer { move_id: "other".into(), ..first };
        Teller::new("u", &other, statuses.clone(), at(0)).failed(Bytes::default(), "refused", "no", false);
        let told = statuses.borrow()["u"].clone();
        assert_eq!((told.move_id.as_str(), told.round, told.unreachable), ("other", 0, false));
    }
}
