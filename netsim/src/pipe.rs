//! What happens to bytes on their way from one host to another: latency, bandwidth, and a clog that lets nothing
//! through until it is lifted. Cuts and holds are in [`crate::link`]; they act below, on turmoil's segments.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::SimClock;
use crate::{SimRng, Spread};

#[derive(Debug, Default)]
struct State {
    clogs: u32,
    /// One for each fault that is active; the one with the greatest maximum counts.
    slow: Vec<Spread>,
    /// Bytes per second, one for each fault that is active; the least counts.
    limits: Vec<u64>,
    /// When the last byte so far has left, if the bandwidth is limited.
    busy_until: Duration,
}

/// The way from one host to another.
#[derive(Debug)]
pub(crate) struct Pipe {
    state: Mutex<State>,
    lifted: Notify,
    /// The world's own latency, where turmoil can't draw it.
    base: Option<Spread>,
    base_rng: SimRng,
    slow_rng: SimRng,
}

impl Pipe {
    /// When bytes that are sent at `now` can be read. Never less than `now`.
    pub(crate) fn deliver_at(&self, now: Duration, bytes: usize) -> Duration {
        let mut state = self.lock();
        let mut at = now;
        if let Some(limit) = state.limits.iter().min() {
            // A limit of zero is one byte a second: a link that lets nothing through is a clog or a cut.
            let takes = Duration::from_secs_f64(bytes as f64 / (*limit).max(1) as f64);
            at = state.busy_until.max(now) + takes;
            state.busy_until = at;
        }
        if let Some(base) = &self.base {
            at += base.draw(&self.base_rng);
        }
        if let Some(slow) = state.slow.iter().max_by_key(|slow| slow.max()) {
            at += slow.draw(&self.slow_rng);
        }
        at
    }

    /// Does nothing come through now?
    pub(crate) fn is_clogged(&self) -> bool {
        self.lock().clogs > 0
    }

    /// Returns when a small message that is sent now has come through: for the handshake, which has no stream yet.
    pub(crate) async fn pass(&self, clock: &SimClock) {
        let now = clock.world();
        clock.sleep_world(self.deliver_at(now, 0).saturating_sub(now)).await;
        loop {
            let lifted = self.lifted.notified();
            if !self.is_clogged() {
                return;
            }
            lifted.await;
        }
    }

    /// Adds or lifts a clog; `true` when the pipe has become free by that.
    pub(crate) fn clog(&self, on: bool) -> bool {
        let mut state = self.lock();
        let before = state.clogs;
        state.clogs = if on { before + 1 } else { before.saturating_sub(1) };
        let free = before > 0 && state.clogs == 0;
        drop(state);
        if free {
            self.lifted.notify_waiters();
        }
        free
    }

    /// Adds or lifts extra latency; `true` when the pipe is as fast as ever by that.
    pub(crate) fn slow(&self, spread: Spread, on: bool) -> bool {
        let mut state = self.lock();
        change(&mut state.slow, spread, on) && state.is_fast()
    }

    /// Adds or lifts a limit of bytes per second; `true` when the pipe is as fast as ever by that.
    pub(crate) fn limit(&self, bytes_per_second: u64, on: bool) -> bool {
        let mut state = self.lock();
        change(&mut state.limits, bytes_per_second, on) && state.is_fast()
    }

    fn heal(&self) {
        *self.lock() = State::default();
        self.lifted.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_fast(&mut self) -> bool {
        if self.limits.is_empty() {
            self.busy_until = Duration::ZERO;
        }
        self.slow.is_empty() && self.limits.is_empty()
    }
}

/// Adds a value, or takes one equal to it away; `true` when one was taken away.
fn change<T: PartialEq>(active: &mut Vec<T>, value: T, on: bool) -> bool {
    if on {
        active.push(value);
        return false;
    }
    let Some(at) = active.iter().position(|known| *known == value) else { return false };
    active.remove(at);
    true
}

/// All pipes of a world.
#[derive(Debug)]
pub(crate) struct Pipes {
    seed: u64,
    base: Option<Spread>,
    pipes: Mutex<BTreeMap<(String, String), Arc<Pipe>>>,
}

impl Pipes {
    /// Pipes of a world whose latency is `base`, where turmoil does not draw it.
    pub(crate) fn new(seed: u64, base: Option<Spread>) -> Self {
        Self { seed, base, pipes: Mutex::default() }
    }

    /// The way from one host to another.
    pub(crate) fn between(&self, from: &str, to: &str) -> Arc<Pipe> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = pipes.entry((from.to_owned(), to.to_owned())).or_insert_with(|| {
            Arc::new(Pipe {
                state: Mutex::default(),
                lifted: Notify::new(),
                base: self.base,
                base_rng: SimRng::new(self.seed, &format!("latency/{from}/{to}")),
                slow_rng: SimRng::new(self.seed, &format!("slow/{from}/{to}")),
            })
        });
        pipe.clone()
    }

    /// Lifts everything.
    pub(crate) fn heal(&self) {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(|pipe| pipe.heal());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> Arc<Pipe> {
        Pipes::new(1, None).between("a", "b")
    }

    #[test]
    fn a_limited_pipe_lets_one_write_after_the_other_through() {
        let (pipe, second) = (pipe(), Duration::from_secs(1));
        assert_eq!(pipe.deliver_at(second, 1_000), second, "no limit, no delay");
        assert!(!pipe.limit(1_000, true));
        assert!(!pipe.limit(500, true));
        assert_eq!(pipe.deliver_at(second, 1_000), 3 * second, "the least limit counts");
        assert_eq!(pipe.deliver_at(second, 500), 4 * second, "what comes next waits");
        assert!(!pipe.limit(500, false), "the other limit is left");
        assert_eq!(pipe.deliver_at(4 * second, 1_000), 5 * second);
        assert!(!pipe.limit(7, false), "nobody set this one");
        assert!(pipe.limit(1_000, false));
        assert_eq!(pipe.deliver_at(second, 1_000), second);
    }

    #[test]
    fn overlapping_clogs_are_counted() {
        let pipe = pipe();
        assert!(!pipe.clog(true));
        assert!(!pipe.clog(true));
        assert!(!pipe.clog(false));
        assert!(pipe.is_clogged());
        assert!(pipe.clog(false));
        assert!(!pipe.clog(false), "there was nothing to lift");
        assert!(!pipe.is_clogged());
    }
}
