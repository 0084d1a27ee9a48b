//! Where the two ends of a move meet on the leader, when they can't reach each other.
//!
//! ```text
//! source ── Tunnel ──► waits ─┐
//!                             ├─► joined: each gets the other's outbox, and copies its own frames there
//! target ── Tunnel ──► waits ─┘
//! ```
//! Soft, like everything that is in memory here: after a change of leader both dial again.
//!
//! Invariant: what waits belongs to a running move, is alive, and is at most [`WAITING_MAX`] a side.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cara_core::MoveId;
use cara_proto::volume::TunnelBytes;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Tunnels of one side that wait for the other one. An agent dials again when one has ended, and may have a few at once.
const WAITING_MAX: usize = 4;
/// Tunnels that are open at once, waiting or joined; each holds a few frames.
const TUNNELS_MAX: usize = 128;

/// Which end of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Has the data.
    Source,
    /// Shall have it.
    Target,
}

impl Side {
    /// The side of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "source" => Some(Self::Source),
            "target" => Some(Self::Target),
            _ => None,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Source => Self::Target,
            Self::Target => Self::Source,
        }
    }
}

/// Where a side's frames go out.
pub type Outbox = mpsc::Sender<Result<TunnelBytes, Status>>;

/// The other side of a tunnel.
#[derive(Debug, Clone)]
pub struct Other {
    /// What is put here, it hears.
    pub outbox: Outbox,
    /// When a frame passed last, in either direction, in ms of this server's monotonic clock; both sides share it.
    pub passed_ms: Arc<AtomicU64>,
}

struct Waiting {
    outbox: Outbox,
    tell: oneshot::Sender<Other>,
}

#[derive(Default)]
struct Inner {
    waiting: BTreeMap<(MoveId, Side), VecDeque<Waiting>>,
    open: usize,
}

/// The meeting place. Clones share it.
#[derive(Clone, Default)]
pub struct Relay(Arc<Mutex<Inner>>);

/// Counts a tunnel as open until it is dropped.
pub struct Open(Relay);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.with(|inner| inner.open -= 1);
    }
}

impl Relay {
    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Takes a place for one more tunnel; none when all are taken.
    pub fn enter(&self) -> Option<Open> {
        self.with(|inner| {
            if inner.open == TUNNELS_MAX {
                return None;
            }
            inner.open += 1;
            Some(Open(self.clone()))
        })
    }

    /// Joins this side with the one that waits longest on the other, or waits for one: the receiver tells.
    pub fn meet(&self, id: &MoveId, side: Side, outbox: Outbox, now_ms: u64) -> oneshot::Receiver<Other> {
        let (tell, told) = oneshot::channel();
        self.with(|inner| {
            let passed_ms = Arc::new(AtomicU64::new(now_ms));
            let other_side = (id.clone(), side.other());
            while let Some(other) = inner.waiting.get_mut(&other_side).and_then(VecDeque::pop_front) {
                // One whose agent went away, or gave up waiting, is passed over.
                if other.outbox.is_closed() {
                    continue;
                }
                if other.tell.send(Other { outbox: outbox.clone(), passed_ms: passed_ms.clone() }).is_ok() {
                    drop(tell.send(Other { outbox: other.outbox, passed_ms }));
                    return;
                }
            }
            let waiting = inner.waiting.entry((id.clone(), side)).or_default();
            waiting.retain(|waiting| !waiting.outbox.is_closed() && !waiting.tell.is_closed());
            if waiting.len() == WAITING_MAX {
                waiting.pop_front(); // The newest are the ones that an agent still cares for.
            }
            waiting.push_back(Waiting { outbox, tell });
        });
        told
    }

    /// Drops what waits for nobody any more.
    pub fn sweep(&self) {
        self.with(|inner| {
            for waiting in inner.waiting.values_mut() {
                waiting.retain(|waiting| !waiting.outbox.is_closed() && !waiting.tell.is_closed());
            }
            inner.waiting.retain(|_, waiting| !waiting.is_empty());
        });
    }
}

impl Other {
    /// A frame has passed.
    pub fn passed(&self, now_ms: u64) {
        self.passed_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// How long no frame has passed.
    pub fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.passed_ms.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> (Outbox, mpsc::Receiver<Result<TunnelBytes, Status>>) {
        mpsc::channel(1)
    }

    #[test]
    fn the_two_sides_of_a_move_meet_whoever_comes_first() {
        let (relay, id) = (Relay::default(), MoveId::from("mv_1"));
        let ((source, _hears_source), (target, mut hears_target)) = (outbox(), outbox());
        let mut first = relay.meet(&id, Side::Source, source, 0);
        assert!(first.try_recv().is_err(), "alone");
        let mut elsewhere = relay.meet(&MoveId::from("mv_2"), Side::Target, outbox().0, 0);
        assert!(elsewhere.try_recv().is_err(), "of another move");
        let mut second = relay.meet(&id, Side::Target, target, 0);
        let to_target = first.try_recv().unwrap();
        assert!(second.try_recv().is_ok());
        to_target.outbox.try_send(Ok(TunnelBytes::default())).unwrap();
        assert!(hears_target.try_recv().is_ok());
    }

    #[test]
    fn a_side_that_went_away_is_not_met() {
        let (relay, id) = (Relay::default(), MoveId::from("mv_1"));
        let (gone, hears) = outbox();
        let _told = relay.meet(&id, Side::Source, gone, 0);
        drop(hears);
        let given_up = relay.meet(&id, Side::Source, outbox().0, 0);
        drop(given_up);
        let (target, _hears) = outbox();
        let mut told = relay.meet(&id, Side::Target, target, 0);
        assert!(told.try_recv().is_err());
        relay.sweep();
        assert_eq!(relay.with(|inner| inner.waiting.len()), 1, "only the target waits");
    }

    #[test]
    fn what_waits_and_what_is_open_has_an_end() {
        let (relay, id) = (Relay::default(), MoveId::from("mv_1"));
        let all: Vec<_> = (0..=WAITING_MAX)
            .map(|_| {
                let (outbox, hears) = outbox();
                (relay.meet(&id, Side::Source, outbox, 0), hears)
            })
            .collect();
        assert_eq!(relay.with(|inner| inner.waiting.values().map(VecDeque::len).sum::<usize>()), WAITING_MAX);
        drop(all);
        let open: Vec<_> = std::iter::from_fn(|| relay.enter()).collect();
        assert_eq!(open.len(), TUNNELS_MAX);
        drop(open);
        assert!(relay.enter().is_some());
    }
}
