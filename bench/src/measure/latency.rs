//! Many times, kept as counts with three digits, and what can be asked of them.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest time that is told from longer ones: ten minutes.
const MICROS_MAX: u64 = 600_000_000;
/// Three digits: 12.3 ms is told from 12.4 ms.
const DIGITS: u8 = 3;
/// Points of a curve; more can't be seen.
const CURVE_POINTS: u32 = 200;

/// Times of one kind.
#[derive(Clone)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        let made = Histogram::new_with_bounds(1, MICROS_MAX, DIGITS);
        Self(made.expect("the bounds are constants that fit each other"))
    }
}

impl Latency {
    /// Adds one.
    pub fn record(&mut self, took: Duration) {
        self.add(u64::try_from(took.as_micros()).unwrap_or(MICROS_MAX), 1);
    }

    /// Adds `count` of the same.
    pub fn add(&mut self, micros: u64, count: u64) {
        self.0.saturating_record_n(micros.max(1), count);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Milliseconds that `percent` of 100 don't exceed; none when there are no times.
    pub fn ms(&self, percent: f64) -> Option<f64> {
        (self.count() > 0).then(|| to_ms(self.0.value_at_percentile(percent)))
    }

    /// The longest, in milliseconds.
    pub fn longest_ms(&self) -> Option<f64> {
        (self.count() > 0).then(|| to_ms(self.0.max()))
    }

    /// Microseconds and how often, for another process.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect()
    }

    /// From pairs.
    pub fn of_pairs(pairs: &[(u64, u64)]) -> Self {
        let mut all = Self::default();
        pairs.iter().for_each(|(micros, count)| all.add(*micros, *count));
        all
    }

    /// The share of times (0 to 1) below each number of milliseconds, for a plot.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        if self.count() == 0 {
            return Vec::new();
        }
        let at = |step: u32| f64::from(step) / f64::from(CURVE_POINTS);
        (0..=CURVE_POINTS).map(|step| (to_ms(self.0.value_at_quantile(at(step))), at(step))).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of minutes fit into 52 bits")]
fn to_ms(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut all = Latency::default();
        values.into_iter().for_each(|ms| all.record(Duration::from_millis(ms)));
        all
    }

    fn about(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() <= expected * 0.001)
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred = of(1..=100);
        assert!(about(hundred.ms(50.0), 50.0), "{:?}", hundred.ms(50.0));
        assert!(about(hundred.ms(99.0), 99.0), "{:?}", hundred.ms(99.0));
        assert!(about(of([7]).ms(99.9), 7.0));
        assert!(about(hundred.longest_ms(), 100.0));
        assert_eq!(Latency::default().ms(50.0), None, "of nothing there is no percentile");
    }

    #[test]
    fn what_goes_to_another_process_comes_back_the_same() {
        let sent = of((1..=500).map(|n| n * n));
        let mut there = Latency::of_pairs(&sent.pairs());
        assert_eq!(there.count(), sent.count());
        assert_eq!(there.ms(99.0), sent.ms(99.0));
        there.merge(&sent);
        assert_eq!(there.count(), 2 * sent.count());
        assert_eq!(there.ms(50.0), sent.ms(50.0));
    }

    #[test]
    fn a_curve_rises_to_one() {
        let curve = of(1..=1000).curve();
        assert!(curve.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
        assert_eq!(curve.last().map(|point| point.1), Some(1.0));
        assert!(Latency::default().curve().is_empty());
    }

    #[test]
    fn what_takes_longer_than_can_be_told_is_counted_all_the_same() {
        let all = of([1, 10_000_000]);
        assert_eq!(all.count(), 2);
        assert!(about(all.longest_ms(), 600_000.0), "{:?}", all.longest_ms());
    }
}
