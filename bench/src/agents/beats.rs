//! Counts the heartbeats of all agents of a process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_agent::Witness;
use cara_env::Clock;
use tokio::sync::Notify;

use super::tick::Tick;
use crate::measure::latency::Latency;

/// A heartbeat that is acknowledged later than this is late: a fifteenth of the default interval.
const LATE: Duration = Duration::from_secs(1);

/// What all agents of a process have in common.
pub struct Tally {
    clock: Arc<dyn Clock>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    tick: Tick,
    round_trips: Latency,
    returns: Latency,
}

impl Tally {
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, counts: Mutex::default() })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent has its identity.
    pub fn enrolled(&self) {
        self.counts().tick.enrolled += 1;
    }

    /// An agent has ended by itself.
    pub fn failed(&self, why: String) {
        let mut counts = self.counts();
        counts.tick.failed += 1;
        counts.tick.failure = why;
    }

    /// Since the last call, and how it stands.
    pub fn take(&self) -> Tick {
        let mut counts = self.counts();
        let (round_trips, returns) = (std::mem::take(&mut counts.round_trips), std::mem::take(&mut counts.returns));
        let tick = Tick { round_trips: round_trips.pairs(), returns: returns.pairs(), ..counts.tick.clone() };
        let fresh = Tick { sent: 0, acknowledged: 0, late: 0, missed: 0, ..std::mem::take(&mut counts.tick) };
        counts.tick = fresh;
        tick
    }
}

/// Looks on at one agent.
pub struct Beats {
    tally: Arc<Tally>,
    seen: Mutex<Seen>,
    came: Notify,
}

#[derive(Default)]
struct Seen {
    /// Not acknowledged yet: sequence, and when it was sent.
    open: VecDeque<(u64, Duration)>,
    online: bool,
    /// It was ended on purpose, then.
    restarted: Option<Duration>,
}

impl Beats {
    pub fn new(tally: &Arc<Tally>) -> Arc<Self> {
        Arc::new(Self { tally: tally.clone(), seen: Mutex::default(), came: Notify::new() })
    }

    /// Returns once the agent has come online since the last call.
    pub async fn came_online(&self) {
        self.came.notified().await;
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent was ended on purpose: what it had sent is not missed.
    pub fn restarts(&self) {
        let now = self.tally.clock.monotonic();
        let mut seen = self.seen();
        seen.open.clear();
        seen.restarted = Some(now);
        self.offline(&mut seen);
    }

    fn offline(&self, seen: &mut Seen) {
        if std::mem::take(&mut seen.online) {
            self.tally.counts().tick.online -= 1;
        }
    }
}

impl Witness for Beats {
    fn opened(&self, _server: &str) {}

    fn sent(&self, sequence: u64) {
        self.seen().open.push_back((sequence, self.tally.clock.monotonic()));
        self.tally.counts().tick.sent += 1;
    }

    fn acknowledged(&self, sequence: u64) {
        let now = self.tally.clock.monotonic();
        let mut seen = self.seen();
        let mut counts = self.tally.counts();
        if !std::mem::replace(&mut seen.online, true) {
            counts.tick.online += 1;
            counts.tick.came_online += 1;
            self.came.notify_one();
            if let Some(since) = seen.restarted.take() {
                counts.returns.record(now.saturating_sub(since));
            }
        }
        // A session acknowledges in order, so those before it will not be any more.
        while let Some((oldest, sent_at)) = seen.open.front().copied() {
            if oldest > sequence {
                break;
            }
            seen.open.pop_front();
            if oldest < sequence {
                counts.tick.missed += 1;
                continue;
            }
            let took = now.saturating_sub(sent_at);
            counts.round_trips.record(took);
            counts.tick.acknowledged += 1;
            counts.tick.late += u64::from(took > LATE);
        }
    }

    fn ended(&self) {
        let mut seen = self.seen();
        let lost = seen.open.drain(..).len() as u64;
        self.tally.counts().tick.missed += lost;
        self.offline(&mut seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Hand(Mutex<Duration>);

    #[async_trait::async_trait]
    impl Clock for Hand {
        fn monotonic(&self) -> Duration {
            *self.0.lock().expect("one thread")
        }
        fn wall_ms(&self) -> u64 {
            0
        }
        async fn sleep(&self, _: Duration) {}
    }

    fn world() -> (Arc<Hand>, Arc<Tally>, Arc<Beats>) {
        let clock = Arc::new(Hand(Mutex::new(Duration::ZERO)));
        let tally = Tally::new(clock.clone());
        let beats = Beats::new(&tally);
        (clock, tally, beats)
    }

    fn pass(clock: &Hand, ms: u64) {
        *clock.0.lock().expect("one thread") += Duration::from_millis(ms);
    }

    #[test]
    fn a_round_trip_is_from_sending_to_acknowledgement() {
        let (clock, tally, beats) = world();
        beats.sent(1);
        pass(&clock, 5);
        beats.acknowledged(1);
        beats.sent(2);
        pass(&clock, 1_500);
        beats.acknowledged(2);
        let tick = tally.take();
        assert_eq!((tick.sent, tick.acknowledged, tick.late, tick.missed, tick.online), (2, 2, 1, 0, 1));
        assert_eq!(Latency::of_pairs(&tick.round_trips).count(), 2);
        let next = tally.take();
        assert_eq!((next.sent, next.round_trips.len(), next.online, next.came_online), (0, 0, 1, 1));
    }

    #[test]
    fn what_a_lost_session_had_sent_is_missed_once() {
        let (_, tally, beats) = world();
        beats.sent(1);
        beats.acknowledged(1);
        beats.sent(2);
        beats.sent(3);
        beats.acknowledged(3);
        beats.sent(4);
        beats.ended();
        beats.ended();
        let tick = tally.take();
        assert_eq!((tick.acknowledged, tick.missed, tick.online), (2, 2, 0));
        // The next session counts from one again.
        beats.sent(1);
        beats.acknowledged(1);
        assert_eq!((tally.take().online, tally.take().came_online), (1, 2));
    }

    #[test]
    fn a_restart_on_purpose_misses_nothing_and_its_return_is_timed() {
        let (clock, tally, beats) = world();
        beats.sent(1);
        beats.acknowledged(1);
        beats.sent(2);
        beats.restarts();
        pass(&clock, 700);
        beats.sent(1);
        beats.acknowledged(1);
        let tick = tally.take();
        assert_eq!((tick.missed, tick.online, tick.came_online), (0, 1, 2));
        assert!(Latency::of_pairs(&tick.returns).ms(50.0).is_some_and(|ms| ms >= 699.0));
    }
}
