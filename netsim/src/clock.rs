//! A host's clocks in the simulated world.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use cara_env::Clock;
use tokio::time::Instant;

/// When every simulated world begins: 2026-01-01 00:00:00 UTC, in milliseconds since 1970.
pub const EPOCH_MS: u64 = 1_767_225_600_000;

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

/// The clock of one host since its last start. Monotonic time follows the world and never stops or steps, also while
/// the host is frozen; wall time has an offset that a fault may move in both directions.
#[derive(Debug)]
pub struct SimClock {
    /// The world's time when the host started.
    started: Duration,
    /// The runtime's time at that moment.
    base: Instant,
    now: Now,
    wall_offset_ms: Arc<AtomicI64>,
}

impl SimClock {
    /// Must be called in the host's runtime, at its start.
    #[allow(clippy::disallowed_methods)] // This is the seam: the paused clock of the host's own runtime.
    pub(crate) fn new(now: Now, wall_offset_ms: Arc<AtomicI64>) -> Self {
        Self { started: now.get(), base: Instant::now(), now, wall_offset_ms }
    }
}

/// The clock of a machine as a whole, for what outlives its processes (a container engine). Exact to the tick.
#[derive(Debug)]
pub(crate) struct MachineClock {
    pub(crate) now: Now,
    pub(crate) wall_offset_ms: Arc<AtomicI64>,
}

#[async_trait::async_trait]
impl Clock for MachineClock {
    fn monotonic(&self) -> Duration {
        self.now.get()
    }

    fn wall_ms(&self) -> u64 {
        let since = u64::try_from(self.now.get().as_millis()).unwrap_or(u64::MAX);
        (EPOCH_MS + since).saturating_add_signed(self.wall_offset_ms.load(Ordering::Relaxed))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[async_trait::async_trait]
impl Clock for SimClock {
    #[allow(clippy::disallowed_methods)] // This is the seam: the paused clock of the host's own runtime.
    fn monotonic(&self) -> Duration {
        // Destructors may run while no runtime is entered; tokio would answer with the kernel's time then.
        match tokio::runtime::Handle::try_current() {
            Ok(_) => self.started + Instant::now().saturating_duration_since(self.base),
            Err(_) => self.now.get(),
        }
    }

    fn wall_ms(&self) -> u64 {
        let since = u64::try_from(self.monotonic().as_millis()).unwrap_or(u64::MAX);
        (EPOCH_MS + since).saturating_add_signed(self.wall_offset_ms.load(Ordering::Relaxed))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
