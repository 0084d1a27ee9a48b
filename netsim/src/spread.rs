//! How long a message takes: a range and a shape.

use std::time::Duration;

use cara_env::Rng;

use crate::SimRng;

/// A distribution of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Every duration between the two is as likely as any other.
    Uniform {
        /// At least.
        min: Duration,
        /// At most; what is below `min` counts as `min`.
        max: Duration,
    },
    /// Most are short, few are long, as on a network that is sometimes busy.
    Exponential {
        /// At least.
        min: Duration,
        /// The average before `max` cuts off the tail; more than `min`.
        mean: Duration,
        /// At most.
        max: Duration,
    },
}

impl Default for Spread {
    /// A data centre with some noise: 1 to 10 ms, 2.8 ms on average.
    fn default() -> Self {
        Self::Exponential {
            min: Duration::from_millis(1),
            mean: Duration::from_micros(2_800),
            max: Duration::from_millis(10),
        }
    }
}

impl Spread {
    /// Uniform between two numbers of milliseconds.
    pub fn uniform_ms(min: u64, max: u64) -> Self {
        Self::Uniform { min: Duration::from_millis(min), max: Duration::from_millis(max.max(min)) }
    }

    /// The least duration.
    pub fn min(&self) -> Duration {
        match *self {
            Self::Uniform { min, .. } | Self::Exponential { min, .. } => min,
        }
    }

    /// The greatest duration; never below the least.
    pub fn max(&self) -> Duration {
        match *self {
            Self::Uniform { min, max } | Self::Exponential { min, max, .. } => max.max(min),
        }
    }

    /// One duration.
    pub(crate) fn draw(&self, rng: &SimRng) -> Duration {
        let (min, max) = (self.min(), self.max());
        match *self {
            Self::Uniform { .. } => {
                let range = u64::try_from((max - min).as_micros()).unwrap_or(u64::MAX - 1);
                min + Duration::from_micros(rng.between(0, range))
            }
            Self::Exponential { mean, .. } => {
                const STEPS: u64 = 1 << 32;
                #[allow(clippy::cast_precision_loss)] // Both are at most 2^32, which f64 holds exactly.
                let above_zero = (rng.below(STEPS) + 1) as f64 / STEPS as f64;
                let drawn = min + mean.saturating_sub(min).mul_f64(-above_zero.ln());
                drawn.min(max)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(spread: Spread) -> Vec<Duration> {
        let rng = SimRng::new(1, "spread");
        (0..5_000).map(|_| spread.draw(&rng)).collect()
    }

    fn mean_ms(draws: &[Duration]) -> u128 {
        draws.iter().map(Duration::as_millis).sum::<u128>() / draws.len() as u128
    }

    #[test]
    fn a_uniform_spread_fills_its_range() {
        let drawn = draws(Spread::uniform_ms(10, 110));
        assert!(drawn.iter().all(|d| (10..=110).contains(&d.as_millis())));
        assert!((55..=65).contains(&mean_ms(&drawn)), "{}", mean_ms(&drawn));
    }

    #[test]
    fn an_exponential_spread_has_its_mean_and_its_tail_is_cut_off() {
        let ms = Duration::from_millis;
        let drawn = draws(Spread::Exponential { min: ms(10), mean: ms(60), max: ms(1_000) });
        assert!(drawn.iter().all(|d| (10..=1_000).contains(&d.as_millis())));
        assert!((55..=65).contains(&mean_ms(&drawn)), "{}", mean_ms(&drawn));
        assert!(drawn.iter().filter(|d| d.as_millis() < 60).count() > drawn.len() * 55 / 100, "most are short");
    }
}
