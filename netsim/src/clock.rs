//! A host's clocks in the simulated world.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_env::Clock;
use tokio::time::Instant;

/// When every simulated world begins: 2026-01-01 00:00:00 UTC, in milliseconds since 1970.
pub const EPOCH_MS: u64 = 1_767_225_600_000;

/// A clock that is off by more parts in a million than this is no clock. (Quartz stays within 500.)
pub const DRIFT_MAX_PPM: i64 = 100_000;

/// Rounding may leave this much of a sleep; a timer would make a millisecond of it.
const CLOCK_GRAIN: Duration = Duration::from_micros(1);

const MILLION: i128 = 1_000_000;

/// The world's time in nanoseconds, published by the driver once a step.
#[derive(Debug, Default, Clone)]
pub(crate) struct Now(Arc<AtomicU64>);

impl Now {
    pub(crate) fn set(&self, now: Duration) {
        self.0.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// A machine's crystal and its battery clock: what makes its time differ from the world's. Outlives its processes.
#[derive(Debug, Default)]
pub(crate) struct Crystal(Mutex<Drift>);

#[derive(Debug, Default)]
struct Drift {
    /// Parts in a million that the machine's time runs faster than the world's.
    ppm: i64,
    /// The world's time and the machine's when the drift was set.
    since: Duration,
    local: Duration,
    wall_offset_ms: i64,
}

impl Crystal {
    /// The machine's monotonic time at a time of the world. Continuous, and never goes back.
    pub(crate) fn local(&self, world: Duration) -> Duration {
        let drift = self.lock();
        drift.local + drift.scaled(world.saturating_sub(drift.since))
    }

    /// How long the world takes while the machine counts `local`, rounded up.
    fn in_world(&self, local: Duration) -> Duration {
        let ppm = self.lock().ppm;
        if ppm == 0 {
            return local;
        }
        let nanos = i128::try_from(local.as_nanos()).unwrap_or(i128::MAX / MILLION);
        let rate = MILLION + i128::from(ppm);
        nanos_to_duration((nanos * MILLION + rate - 1) / rate)
    }

    /// From the world's time `now` on, the machine's clock runs so much faster.
    pub(crate) fn set_drift(&self, now: Duration, ppm: i64) {
        let mut drift = self.lock();
        let passed = drift.scaled(now.saturating_sub(drift.since));
        drift.local += passed;
        drift.since = now.max(drift.since);
        drift.ppm = ppm.clamp(-DRIFT_MAX_PPM, DRIFT_MAX_PPM);
    }

    /// Steps the wall clock.
    pub(crate) fn step_wall(&self, by_ms: i64) {
        let mut drift = self.lock();
        drift.wall_offset_ms = drift.wall_offset_ms.saturating_add(by_ms);
    }

    fn wall_ms(&self, local: Duration) -> u64 {
        let since = u64::try_from(local.as_millis()).unwrap_or(u64::MAX);
        EPOCH_MS.saturating_add(since).saturating_add_signed(self.lock().wall_offset_ms)
    }

    fn lock(&self) -> MutexGuard<'_, Drift> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drift {
    fn scaled(&self, world: Duration) -> Duration {
        if self.ppm == 0 {
            return world;
        }
        let nanos = i128::try_from(world.as_nanos()).unwrap_or(i128::MAX / MILLION);
        nanos_to_duration(nanos + nanos * i128::from(self.ppm) / MILLION)
    }
}

fn nanos_to_duration(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

/// The clock of one host since its last start. Monotonic time runs at the rate of the machine's crystal and never stops
/// or steps, also while the host is frozen; wall time has an offset that a fault may move in both directions. Timers of
/// libraries that ask tokio instead of this clock run at the world's rate.
#[derive(Debug)]
pub struct SimClock {
    /// The world's time when the host started.
    started: Duration,
    /// The runtime's time at that moment.
    base: Instant,
    now: Now,
    crystal: Arc<Crystal>,
}

impl SimClock {
    /// Must be called in the host's runtime, at its start.
    #[allow(clippy::disallowed_methods)] // This is the seam: the paused clock of the host's own runtime.
    pub(crate) fn new(now: Now, crystal: Arc<Crystal>) -> Self {
        Self { started: now.get(), base: Instant::now(), now, crystal }
    }

    /// The world's time, whatever the machine thinks: for its network and its disk.
    #[allow(clippy::disallowed_methods)] // This is the seam: the paused clock of the host's own runtime.
    pub(crate) fn world(&self) -> Duration {
        // Destructors may run while no runtime is entered; tokio would answer with the kernel's time then.
        match tokio::runtime::Handle::try_current() {
            Ok(_) => self.started + Instant::now().saturating_duration_since(self.base),
            Err(_) => self.now.get(),
        }
    }

    /// Sleeps in the world's time. Returns at once when there is nothing to wait for.
    pub(crate) async fn sleep_world(&self, duration: Duration) {
        if !duration.is_zero() {
            tokio::time::sleep(duration).await;
        }
    }
}

#[async_trait::async_trait]
impl Clock for SimClock {
    fn monotonic(&self) -> Duration {
        self.crystal.local(self.world())
    }

    fn wall_ms(&self) -> u64 {
        self.crystal.wall_ms(self.monotonic())
    }

    async fn sleep(&self, duration: Duration) {
        let until = self.monotonic().saturating_add(duration);
        tokio::time::sleep(self.crystal.in_world(duration)).await;
        // The crystal may have become slower meanwhile.
        loop {
            let left = until.saturating_sub(self.monotonic());
            if left < CLOCK_GRAIN {
                return;
            }
            tokio::time::sleep(self.crystal.in_world(left)).await;
        }
    }
}

/// The clock of a machine as a whole, for what outlives its processes (a container engine). Exact to the tick.
#[derive(Debug)]
pub(crate) struct MachineClock {
    pub(crate) now: Now,
    pub(crate) crystal: Arc<Crystal>,
}

#[async_trait::async_trait]
impl Clock for MachineClock {
    fn monotonic(&self) -> Duration {
        self.crystal.local(self.now.get())
    }

    fn wall_ms(&self) -> u64 {
        self.crystal.wall_ms(self.monotonic())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(self.crystal.in_world(duration)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_drift_bends_the_clock_and_never_breaks_it() {
        let (crystal, second) = (Crystal::default(), Duration::from_secs(1));
        assert_eq!(crystal.local(1_000 * second), 1_000 * second);
        crystal.set_drift(1_000 * second, 500);
        assert_eq!(crystal.local(1_000 * second), 1_000 * second);
        assert_eq!(crystal.local(2_000 * second), 2_000 * second + second / 2);
        crystal.set_drift(2_000 * second, -500);
        assert_eq!(crystal.local(2_000 * second), 2_000 * second + second / 2);
        assert_eq!(crystal.local(4_000 * second), 4_000 * second - second / 2);
        crystal.set_drift(4_000 * second, 0);
        assert_eq!(crystal.local(5_000 * second), 5_000 * second - second / 2);
    }

    #[test]
    fn a_sleep_is_long_enough_by_the_clock_that_asked_for_it() {
        let crystal = Crystal::default();
        for ppm in [-500, -3, 0, 7, 500] {
            crystal.set_drift(Duration::ZERO, ppm);
            for ms in [1, 10, 999, 86_400_000] {
                let asked = Duration::from_millis(ms);
                let takes = crystal.in_world(asked);
                let counted = crystal.local(takes);
                assert!(counted + Duration::from_nanos(1) >= asked, "{ppm} ppm, {ms} ms: {counted:?}");
                assert!(counted <= asked + Duration::from_nanos(2), "{ppm} ppm, {ms} ms: {counted:?}");
            }
        }
    }
}
