//! Waiting longer after each failure, with jitter, so that many agents don't return at the same moment.

use std::time::Duration;

use cara_env::Rng;

/// Doubles from `min` to `max`; [`Backoff::reset`] starts over.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, failures: 0 }
    }

    /// The wait before the next attempt: between half and all of `min * 2^failures`, at most `max`.
    pub(crate) fn next(&mut self, rng: &dyn Rng) -> Duration {
        let full = doubled(self.min, self.max, self.failures);
        self.failures = self.failures.saturating_add(1);
        jittered(rng, full)
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// `min * 2^failures`, at most `max`.
pub(crate) fn doubled(min: Duration, max: Duration, failures: u32) -> Duration {
    min.saturating_mul(2_u32.saturating_pow(failures)).min(max)
}

/// Between half and all of `full`.
pub(crate) fn jittered(rng: &dyn Rng, full: Duration) -> Duration {
    let millis = u64::try_from(full.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis / 2 + rng.below(millis / 2 + 1))
}

/// A random part of `whole`.
pub(crate) fn part_of(rng: &dyn Rng, whole: Duration) -> Duration {
    let millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(rng.below(millis.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_the_maximum_and_starts_over() {
        let rng = cara_env::RealRng;
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
        for full in [1, 2, 4, 8, 16, 30, 30] {
            let wait = backoff.next(&rng);
            assert!(wait >= Duration::from_millis(full * 500) && wait <= Duration::from_secs(full), "{full}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next(&rng) <= Duration::from_secs(1));
        assert_eq!(doubled(Duration::from_secs(1), Duration::from_secs(30), u32::MAX), Duration::from_secs(30));
    }
}
