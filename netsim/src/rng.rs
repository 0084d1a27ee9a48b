//! Randomness from the seed, in named streams.
//!
//! Every use has its own stream, `hash(seed, path)`: one more draw in one place moves no other place, so that a small
//! change of the code changes a small part of the history.

use std::sync::{Mutex, PoisonError};

use cara_env::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// One named stream of random bytes.
#[derive(Debug)]
pub struct SimRng(Mutex<ChaCha8Rng>);

impl SimRng {
    /// The stream `path` of `seed`.
    pub fn new(seed: u64, path: &str) -> Self {
        Self(Mutex::new(stream(seed, path)))
    }

    /// Starts over as the stream `path` of `seed`.
    pub(crate) fn reseed(&self, seed: u64, path: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stream(seed, path);
    }

    /// A number in `from..=to`, in steps of one.
    ///
    /// # Panics
    /// Panics when `from > to`.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        assert!(from <= to, "an empty range {from}..={to}");
        from + self.below(to - from + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `items`; none when there are none.
    pub fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        let index = self.below(items.len() as u64);
        items.get(usize::try_from(index).unwrap_or(0))
    }
}

impl Rng for SimRng {
    fn fill(&self, into: &mut [u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(into);
    }
}

fn stream(seed: u64, path: &str) -> ChaCha8Rng {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    for byte in path.bytes() {
        state = splitmix(state ^ u64::from(byte));
    }
    let mut key = [0; 32];
    for part in key.chunks_mut(8) {
        state = splitmix(state);
        part.copy_from_slice(&state.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// One round of the splitmix64 generator: spreads every input bit over the whole output.
pub(crate) fn splitmix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_is_one_stream_and_another_path_another() {
        let a = SimRng::new(7, "host/a");
        let again = SimRng::new(7, "host/a");
        let b = SimRng::new(7, "host/b");
        let other_seed = SimRng::new(8, "host/a");
        let first: Vec<u64> = (0..4).map(|_| a.next_u64()).collect();
        assert_eq!(first, (0..4).map(|_| again.next_u64()).collect::<Vec<_>>());
        assert_ne!(first, (0..4).map(|_| b.next_u64()).collect::<Vec<_>>());
        assert_ne!(first, (0..4).map(|_| other_seed.next_u64()).collect::<Vec<_>>());
    }

    #[test]
    fn between_reaches_both_ends_and_nothing_else() {
        let rng = SimRng::new(1, "ends");
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| rng.between(3, 6)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
    }
}
