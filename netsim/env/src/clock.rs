//! Time: a monotonic clock for intervals, a wall clock for what people and certificates read, and sleeping.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pin_project_lite::pin_project;

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

/// Runs `work` for at most `limit` of `clock`'s monotonic time, counted from the first poll. The work is dropped when the
/// limit passes first.
pub fn timeout<F: Future>(clock: &dyn Clock, limit: Duration, work: F) -> Timeout<'_, F> {
    Timeout { work, sleep: clock.sleep(limit) }
}

pin_project! {
    /// See [`timeout`]. Written out because an async function would have room for its work twice: as the argument, and
    /// pinned. Most of what a server keeps for a connection is such futures.
    #[must_use = "it does nothing unless it is awaited"]
    pub struct Timeout<'c, F> {
        #[pin]
        work: F,
        sleep: Pin<Box<dyn Future<Output = ()> + Send + 'c>>,
    }
}

impl<F: Future> Future for Timeout<'_, F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // The work goes first: what is done in time is never thrown away.
        if let Poll::Ready(value) = this.work.poll(cx) {
            return Poll::Ready(Ok(value));
        }
        this.sleep.as_mut().poll(cx).map(|()| Err(Elapsed))
    }
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
