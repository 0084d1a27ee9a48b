//! Time: a monotonic clock for intervals, a wall clock for what people and certificates read, and sleeping.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The host's clocks. Monotonic and wall time are separate on purpose: a step of the wall clock must never decide
/// whether a node is alive.
#[async_trait::async_trait]
pub trait Clock: Send + Sync + 'static {
    /// Time since an arbitrary fixed moment of this process. Never goes back; the only source for intervals.
    fn monotonic(&self) -> Duration;

    /// Milliseconds since 1970-01-01 UTC. May step in both directions; only for what leaves the process.
    fn wall_ms(&self) -> u64;

    /// Returns once `duration` of monotonic time has passed.
    async fn sleep(&self, duration: Duration);
}

/// The deadline passed before the work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

impl std::fmt::Display for Elapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("deadline has passed")
    }
}
impl std::error::Error for Elapsed {}

/// Runs `work` for at most `limit` of `clock`'s monotonic time. The work is dropped when the limit passes first.
pub async fn timeout<T>(clock: &dyn Clock, limit: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut work = std::pin::pin!(work);
    let mut sleep: Pin<Box<dyn Future<Output = ()> + Send + '_>> = clock.sleep(limit);
    std::future::poll_fn(|cx| {
        // The work goes first: what is done in time is never thrown away.
        if let std::task::Poll::Ready(value) = work.as_mut().poll(cx) {
            return std::task::Poll::Ready(Ok(value));
        }
        sleep.as_mut().poll(cx).map(|()| Err(Elapsed))
    })
    .await
}

/// The kernel's clocks.
#[derive(Debug)]
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    /// Starts the monotonic clock at zero.
    #[allow(clippy::disallowed_methods)] // This is the seam.
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait::async_trait]
impl Clock for RealClock {
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    #[allow(clippy::disallowed_methods)] // This is the seam.
    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
