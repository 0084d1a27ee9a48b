//! A clock that stands still until a test moves it, for tests that must not wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_env::{Clock, Env};

/// Time as the test says. Sleeping lasts for ever unless [`ManualClock::hurried`] was asked for.
pub(crate) struct ManualClock {
    now: Mutex<Duration>,
    hurried: bool,
}

impl ManualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { now: Mutex::new(Duration::from_secs(1)), hurried: false })
    }

    /// Every sleep ends after 20 real milliseconds, for deadlines that must pass.
    pub(crate) fn hurried() -> Arc<Self> {
        Arc::new(Self { now: Mutex::new(Duration::from_secs(1)), hurried: true })
    }

    pub(crate) fn advance(&self, by: Duration) {
        *self.now.lock().expect("no panic while locked") += by;
    }
}

#[async_trait::async_trait]
impl Clock for ManualClock {
    fn monotonic(&self) -> Duration {
        *self.now.lock().expect("no panic while locked")
    }

    fn wall_ms(&self) -> u64 {
        u64::try_from(self.monotonic().as_millis()).expect("short") + 1_700_000_000_000
    }

    async fn sleep(&self, _: Duration) {
        if self.hurried {
            tokio::time::sleep(Duration::from_millis(20)).await;
        } else {
            std::future::pending::<()>().await;
        }
    }
}

/// The real world with this clock.
pub(crate) fn env(clock: Arc<ManualClock>) -> Env {
    Env { clock, ..Env::real() }
}
