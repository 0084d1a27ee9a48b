//! A host's gate: may its tasks be polled?
//!
//! Every task of a simulated host asks its gate before each poll ([`cara_env::spawn`] wraps it so). A frozen host
//! (SIGSTOP) refuses all of them and keeps their wakers; its timers go on expiring and its connections stay open. At
//! the thaw the wakers are woken in the order in which they came, once each. A slow CPU admits a few polls a tick. A slow
//! kernel keeps work waiting that blocks on it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use cara_env::{Host, Rng};

use crate::points::Points;
use crate::{SimRng, Spread};

/// What a host's tasks did since the last start of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Tasks alive now, the root included.
    pub tasks: i64,
    /// Polls that were admitted.
    pub polls: u64,
    /// Polls that were refused.
    pub refused: u64,
}

#[derive(Default)]
struct State {
    frozen: bool,
    /// A chaos point was reached: no poll until the next tick, in which the driver has had its turn.
    held: bool,
    /// Polls admitted per tick; no limit when `None`.
    polls_per_tick: Option<u64>,
    polls_this_tick: u64,
    waiting: Vec<Waker>,
    /// How long blocking work takes; nothing when `None`.
    kernel: Option<Spread>,
    counters: Counters,
}

/// The simulator's hold on one host.
pub struct Gate {
    host: String,
    points: Arc<Points>,
    state: Mutex<State>,
    rng: SimRng,
    kernel_rng: SimRng,
}

impl Gate {
    /// `rng` is for libraries, `kernel_rng` for how long the kernel takes.
    pub(crate) fn new(host: &str, points: Arc<Points>, rng: SimRng, kernel_rng: SimRng) -> Self {
        Self { host: host.to_owned(), points, state: Mutex::default(), rng, kernel_rng }
    }

    /// Stops polling the host's tasks.
    pub(crate) fn freeze(&self) {
        self.lock().frozen = true;
    }

    /// Polls the host's tasks again.
    pub(crate) fn thaw(&self) {
        self.lock().frozen = false;
        self.wake_all();
    }

    /// Is the host frozen?
    pub fn is_frozen(&self) -> bool {
        self.lock().frozen
    }

    /// Admits at most `polls_per_tick` polls a tick from now on; `None` lifts the limit.
    pub(crate) fn slow(&self, polls_per_tick: Option<u64>) {
        self.lock().polls_per_tick = polls_per_tick;
        self.wake_all();
    }

    /// Work that blocks on the kernel takes so long from now on; `None` lifts that. What waits already waits on.
    pub(crate) fn slow_kernel(&self, by: Option<Spread>) {
        self.lock().kernel = by;
    }

    /// A new tick begins.
    pub(crate) fn tick(&self) {
        let wake = {
            let mut state = self.lock();
            state.polls_this_tick = 0;
            state.held = false;
            !state.frozen && !state.waiting.is_empty()
        };
        if wake {
            self.wake_all();
        }
    }

    /// The process is gone: forgets its wakers, its freeze and its counters, and takes the next random stream. The kernel
    /// stays as slow as it is.
    pub(crate) fn reset(&self, seed: u64, path: &str) {
        let waiting = {
            let mut state = self.lock();
            let tasks = state.counters.tasks; // Tasks leave the count by themselves when they are dropped.
            let waiting = std::mem::take(&mut state.waiting);
            let counters = Counters { tasks, ..Counters::default() };
            *state = State { counters, kernel: state.kernel, ..State::default() };
            waiting
        };
        drop(waiting); // Outside the lock: the last waker of a task drops the task.
        self.rng.reseed(seed, path);
    }

    /// The counters since the host's last start.
    pub fn counters(&self) -> Counters {
        self.lock().counters
    }

    fn wake_all(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for waker in waiting {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for Gate {
    fn admit(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        let tired = state.polls_per_tick.is_some_and(|limit| state.polls_this_tick >= limit);
        if !state.frozen && !state.held && !tired {
            state.polls_this_tick += 1;
            return true;
        }
        state.counters.refused += 1;
        // A task may be woken many times while it waits here; it goes on once.
        if !state.waiting.iter().any(|known| known.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
        false
    }

    fn rng(&self) -> &dyn Rng {
        &self.rng
    }

    fn count(&self, delta: i64) {
        self.lock().counters.tasks += delta;
    }

    fn polled(&self) {
        self.lock().counters.polls += 1;
    }

    fn reached(&self, point: &'static str, detail: &str) -> bool {
        let held = self.points.reached(&self.host, point, detail);
        if held {
            self.lock().held = true;
        }
        held
    }

    fn kernel(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let takes = self.lock().kernel?.draw(&self.kernel_rng);
        Some(Box::pin(tokio::time::sleep(takes)))
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("frozen", &self.is_frozen()).field("counters", &self.counters()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Wake;

    use super::*;

    fn gate() -> Gate {
        Gate::new("h", Arc::default(), SimRng::new(1, "gate"), SimRng::new(1, "kernel"))
    }

    struct Count(AtomicU64);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_that_asked_many_times_while_frozen_is_woken_once() {
        let gate = gate();
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(count.clone());
        assert!(gate.admit(&waker));
        gate.freeze();
        assert!(!gate.admit(&waker));
        assert!(!gate.admit(&waker));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        gate.thaw();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(gate.admit(&waker));
        assert_eq!(gate.counters().refused, 2);
    }

    #[test]
    fn a_slow_cpu_admits_its_share_and_goes_on_at_the_next_tick() {
        let gate = gate();
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(count.clone());
        gate.slow(Some(2));
        assert!(gate.admit(&waker));
        assert!(gate.admit(&waker));
        assert!(!gate.admit(&waker));
        gate.tick();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(gate.admit(&waker));
    }

    #[test]
    fn a_reset_forgets_the_freeze_and_its_wakers() {
        let gate = gate();
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(count.clone());
        gate.freeze();
        assert!(!gate.admit(&waker));
        gate.reset(1, "gate/2");
        assert_eq!(Arc::strong_count(&count), 2, "the gate must not keep the waker");
        assert!(gate.admit(&waker));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }
}
