//! Handshakes take turns at computing, so that a crowd of them holds up nothing else.
//!
//! A handshake computes for a good part of a millisecond whenever a message of its peer has come. When ten thousand agents
//! reconnect at once, all of them are ready to run at once, and whatever else the process has to do, raft's heartbeats and
//! votes among it, would wait behind them: no server could win an election as long as the crowd lasts, which comes back
//! because there is no leader. Here only [`AT_ONCE`] are ready to run at a time; the others wait in a queue of their own.
//!
//! The turn is of one step, not of a whole handshake: a peer that sends nothing takes nobody's turn.
//!
//! The queue is short. Whoever stands in a long one has given up before it is his turn, and the work for him is in vain: with
//! enough of those nobody gets through any more, however long it lasts. So while the queue is full, whoever has said his
//! first word is sent away, which costs next to nothing, and comes back later and later ([`Turnstile::is_full`]). To ask
//! when a connection is accepted would be too early: thousands are accepted before the first of them stands in the queue.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

/// Steps that are ready to run at a time. Two keep two cores busy, and whatever else is ready runs after two steps at most.
const AT_ONCE: usize = 2;

/// Steps that may wait: some tenths of a second of work, below anybody's patience.
const WAITING_MAX: usize = 256;

/// One for all connections of a listener. Clones share it.
#[derive(Clone)]
pub(crate) struct Turnstile {
    turns: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Default for Turnstile {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE)), waiting: Arc::default() }
    }
}

impl Turnstile {
    /// Polls `work` only when it is its turn, first come, first served.
    pub(crate) fn through<F: Future + Unpin>(&self, work: F) -> Through<F> {
        let (turns, waiting) = (PollSemaphore::new(self.turns.clone()), self.waiting.clone());
        Through { turns, turn: None, waiting, is_waiting: false, work }
    }

    /// Should newcomers be sent away?
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= WAITING_MAX
    }
}

/// See [`Turnstile::through`].
pub(crate) struct Through<F> {
    turns: PollSemaphore,
    /// It is our turn as soon as the executor comes round to us.
    turn: Option<OwnedSemaphorePermit>,
    waiting: Arc<AtomicUsize>,
    is_waiting: bool,
    work: F,
}

impl<F> Through<F> {
    fn waits(&mut self, now: bool) {
        match (std::mem::replace(&mut self.is_waiting, now), now) {
            (false, true) => drop(self.waiting.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.waiting.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

impl<F> Drop for Through<F> {
    fn drop(&mut self) {
        self.waits(false);
    }
}

impl<F: Future + Unpin> Future for Through<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        // Given back at the end of this step.
        if let Some(_turn) = this.turn.take() {
            return Pin::new(&mut this.work).poll(cx);
        }
        let turn = this.turns.poll_acquire(cx);
        this.waits(turn.is_pending());
        // Nobody closes the semaphore.
        this.turn = ready!(turn);
        // Not now: a turn that began and ended within one poll would keep nobody waiting, however many are ready to run.
        // Who runs meanwhile finds it taken, and stands in the queue here and not in the executor's.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::{join_all, poll_fn};

    use super::*;

    /// A work of so many steps, each of which is ready at once; counts how many steps were made.
    fn work(steps: usize, made: Arc<AtomicUsize>) -> impl Future<Output = ()> + Unpin {
        let mut left = steps;
        poll_fn(move |cx| {
            made.fetch_add(1, Ordering::Relaxed);
            left -= 1;
            if left == 0 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[tokio::test]
    async fn all_get_through_and_no_step_is_lost() {
        let (turnstile, made) = (Turnstile::default(), Arc::<AtomicUsize>::default());
        join_all((0..50).map(|_| turnstile.through(work(3, made.clone())))).await;
        assert_eq!(made.load(Ordering::Relaxed), 150);
        assert_eq!(turnstile.turns.available_permits(), AT_ONCE);
    }

    #[tokio::test]
    async fn whoever_waits_for_a_peer_holds_no_turn_and_who_gives_up_none_either() {
        let turnstile = Turnstile::default();
        let mut silent: Vec<_> = (0..10).map(|_| turnstile.through(std::future::pending::<()>())).collect();
        for silent in &mut silent {
            assert!(futures_util::poll!(&mut *silent).is_pending(), "it is its turn");
            assert!(futures_util::poll!(silent).is_pending(), "and its step is done");
        }
        assert_eq!(turnstile.turns.available_permits(), AT_ONCE);
        turnstile.through(work(3, Arc::default())).await;
        // Those who wait for their turn leave the queue when they are dropped.
        let held = turnstile.turns.clone().acquire_many_owned(2).await.expect("open");
        let mut waiting = turnstile.through(work(1, Arc::default()));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert_eq!(turnstile.waiting.load(Ordering::Relaxed), 1);
        drop(waiting);
        assert_eq!(turnstile.waiting.load(Ordering::Relaxed), 0);
        drop(held);
        assert_eq!(turnstile.turns.available_permits(), AT_ONCE);
    }

    #[tokio::test]
    async fn whatever_else_is_ready_runs_between_two_steps() {
        let (turnstile, made) = (Turnstile::default(), Arc::<AtomicUsize>::default());
        let crowd: Vec<_> = (0..200).map(|_| cara_env::spawn(turnstile.through(work(3, made.clone())))).collect();
        let mut before = 0;
        for round in 0..100 {
            tokio::task::yield_now().await;
            let after = made.load(Ordering::Relaxed);
            assert!(after - before <= AT_ONCE, "round {round}: {before} steps, then {after}");
            before = after;
        }
        assert!(before >= 90, "they get on meanwhile: {before} steps");
        join_all(crowd).await;
        assert_eq!(made.load(Ordering::Relaxed), 600);
    }

    #[tokio::test]
    async fn a_long_queue_is_full_until_it_moves() {
        let turnstile = Turnstile::default();
        let held = turnstile.turns.clone().acquire_many_owned(2).await.expect("open");
        let mut all: Vec<_> = (0..WAITING_MAX).map(|_| turnstile.through(work(1, Arc::default()))).collect();
        assert!(!turnstile.is_full(), "nobody waits before the first step");
        for one in &mut all {
            assert!(futures_util::poll!(one).is_pending());
        }
        assert!(turnstile.is_full());
        drop(held);
        join_all(all).await;
        assert!(!turnstile.is_full());
    }
}
