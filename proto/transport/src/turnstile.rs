//! Handshakes take turns at computing, so that a crowd of them holds up nothing else.
//!
//! A handshake computes for a good part of a millisecond once its first message has come. When ten thousand agents reconnect
//! at once, all of them are ready to run at once, and whatever else the process has to do, raft's heartbeats and votes among
//! it, would wait behind them: no server could win an election as long as the crowd lasts, which comes back because there is
//! no leader. Here only [`AT_ONCE`] are ready to run at a time; the others wait in a queue of their own, which costs nothing
//! but memory.
//!
//! The turn is of one step, not of a whole handshake: a peer that says nothing more takes nobody's turn. The steps after
//! the first need none: they come at most as fast as first ones are let through.
//!
//! Whoever waits long has given up before it is his turn, and the work for him is in vain: with enough of those nobody gets
//! through any more, however long it lasts. So who has waited too long is sent away without any work, and while the wait is
//! long, so are newcomers. Both come back later and later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use cara_env::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Steps that are ready to run at a time. Two keep two cores busy, and whatever else is ready runs after two steps at most.
const AT_ONCE: usize = 2;

/// While others wait longer than this, newcomers are sent away.
const LONG: Duration = Duration::from_secs(2);

/// Who has waited longer than this is sent away. An agent gives up after five seconds, and needs some of them for the rest.
const TOO_LONG: Duration = Duration::from_secs(3);

/// One for all connections of a listener. Clones share it.
#[derive(Clone)]
pub(crate) struct Turnstile {
    clock: Arc<dyn Clock>,
    turns: Arc<Semaphore>,
    /// Whoever got the last turn had waited long.
    is_slow: Arc<AtomicBool>,
}

/// One step may be made while this lives.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn(#[expect(dead_code, reason = "is given back when it is dropped")] OwnedSemaphorePermit);

/// It takes too long at the moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Crowd;

impl Turnstile {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, turns: Arc::new(Semaphore::new(AT_ONCE)), is_slow: Arc::default() }
    }

    /// Waits for a turn, first come, first served.
    ///
    /// # Errors
    /// At once while others wait long; later if it has taken too long to be of use.
    pub(crate) async fn turn(&self) -> Result<Turn, Crowd> {
        if self.is_slow.load(Ordering::Relaxed) && self.turns.available_permits() == 0 {
            return Err(Crowd);
        }
        let came = self.clock.monotonic();
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| Crowd)?; // Nobody closes it.
        let waited = self.clock.monotonic().saturating_sub(came);
        self.is_slow.store(waited > LONG, Ordering::Relaxed);
        if waited > TOO_LONG {
            return Err(Crowd);
        }
        // Not now: a turn that began and ended within one poll would keep nobody waiting, however many are ready to run.
        // Who runs meanwhile finds it taken, and stands in the queue here and not in the executor's.
        behind_all_that_is_ready().await;
        Ok(Turn(turn))
    }
}

/// Goes to the end of the executor's queue. (`yield_now` would wait until the queue is empty.)
async fn behind_all_that_is_ready() {
    let mut is_behind = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut is_behind, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use futures_util::future::join_all;
    use futures_util::poll;

    use super::*;

    /// Stands until it is told to go on.
    #[derive(Default)]
    struct Stands(Mutex<Duration>);

    impl Stands {
        fn pass(&self, time: Duration) {
            *self.0.lock().expect("no test panics with it") += time;
        }
    }

    #[async_trait::async_trait]
    impl Clock for Stands {
        fn monotonic(&self) -> Duration {
            *self.0.lock().expect("no test panics with it")
        }

        fn wall_ms(&self) -> u64 {
            0
        }

        async fn sleep(&self, _: Duration) {
            std::future::pending().await
        }
    }

    fn turnstile() -> (Turnstile, Arc<Stands>) {
        let clock = Arc::<Stands>::default();
        (Turnstile::new(clock.clone()), clock)
    }

    #[tokio::test]
    async fn whatever_else_is_ready_runs_between_two_steps() {
        let (turnstile, _) = turnstile();
        let made = Arc::<AtomicUsize>::default();
        let step = || {
            let (turnstile, made) = (turnstile.clone(), made.clone());
            async move {
                let _turn = turnstile.turn().await.expect("nobody waits long");
                made.fetch_add(1, Ordering::Relaxed);
            }
        };
        let crowd: Vec<_> = (0..200).map(|_| cara_env::spawn(step())).collect();
        // A task as well: what a runtime blocks on has a place of its own in the order.
        let watch = cara_env::spawn(async move {
            let mut before = 0;
            while before < 200 {
                behind_all_that_is_ready().await;
                let after = made.load(Ordering::Relaxed);
                assert!(after - before <= AT_ONCE, "{before} steps, then {after}");
                before = after;
            }
        });
        watch.await.expect("no more than two at a time");
        join_all(crowd).await;
        assert_eq!(turnstile.turns.available_permits(), AT_ONCE);
    }

    #[tokio::test]
    async fn who_gives_up_takes_nobodys_turn() {
        let (turnstile, _) = turnstile();
        let held = [turnstile.turn().await, turnstile.turn().await];
        let mut gives_up = Box::pin(turnstile.turn());
        let mut waits = Box::pin(turnstile.turn());
        assert!(poll!(&mut gives_up).is_pending() && poll!(&mut waits).is_pending());
        drop(gives_up);
        drop(held);
        drop(waits.await.expect("its turn"));
        assert_eq!(turnstile.turns.available_permits(), AT_ONCE);
    }

    #[tokio::test]
    async fn who_has_waited_too_long_is_sent_away_and_newcomers_are_until_the_wait_is_short_again() {
        let (turnstile, clock) = turnstile();
        let held = [turnstile.turn().await, turnstile.turn().await];
        let mut first = Box::pin(turnstile.turn());
        assert!(poll!(&mut first).is_pending());
        clock.pass(TOO_LONG);
        let mut second = Box::pin(turnstile.turn());
        assert!(poll!(&mut second).is_pending(), "nobody has got a turn since, so nobody knows that it takes long");
        clock.pass(Duration::from_millis(1));
        let [one, other] = held;
        drop(one);
        assert_eq!(first.await.err(), Some(Crowd));
        // The turn that he did not use is the second's.
        assert!(poll!(&mut second).is_pending(), "behind all that is ready");
        let held = [second.await, other];
        turnstile.is_slow.store(true, Ordering::Relaxed);
        assert_eq!(turnstile.turn().await.err(), Some(Crowd));
        drop(held);
        drop(turnstile.turn().await.expect("there is a turn that nobody waits for"));
        assert!(!turnstile.is_slow.load(Ordering::Relaxed));
    }
}
