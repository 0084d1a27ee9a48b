//! Named streams of chance: one for each thing that is drawn, so that leaving out a fault or an operation moves no other.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// One stream.
#[derive(Debug, Clone)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of this name under a seed.
    pub(crate) fn new(seed: u64, path: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        for (i, byte) in path.bytes().enumerate() {
            let at = 8 + i % 24;
            key[at] = key[at].rotate_left(3) ^ byte.wrapping_add((i / 24) as u8);
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.0.next_u64() % bound }
    }

    /// A number in `from..=to`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from).saturating_add(1))
    }

    /// True in so many of a hundred draws.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A whole number of milliseconds between the two.
    pub(crate) fn duration(&mut self, (from, to): (Duration, Duration)) -> Duration {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.between(ms(from), ms(to)))
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(index)
    }

    /// `count` of them, in their own order.
    pub(crate) fn choose<T: Clone>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left = count.min(from.len());
        let mut chosen = Vec::new();
        for (i, item) in from.iter().enumerate() {
            if self.below((from.len() - i) as u64) < left as u64 {
                chosen.push(item.clone());
                left -= 1;
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_other_names_differ_and_the_same_one_repeats() {
        let draw = |path: &str| Stream::new(7, path).0.next_u64();
        assert_eq!(draw("fault/a"), draw("fault/a"));
        assert_ne!(draw("fault/a"), draw("fault/b"));
        assert_ne!(draw("fault/aaaaaaaaaaaaaaaaaaaaaaaa1"), draw("fault/aaaaaaaaaaaaaaaaaaaaaaaa2"));
        assert_eq!(Stream::new(1, "x").choose(&[1, 2, 3, 4], 2).len(), 2);
    }
}
