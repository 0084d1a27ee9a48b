//! Randomness.

use ring::rand::SecureRandom;

/// A source of random bytes.
pub trait Rng: Send + Sync + 'static {
    /// Fills `into` with random bytes.
    fn fill(&self, into: &mut [u8]);

    /// A random 64-bit number.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number in `0..bound`; 0 when `bound` is 0. The bias of the modulo is below 2^-32 for the bounds used here.
    fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }
}

/// `n` random bytes as lowercase hex.
pub fn hex(rng: &dyn Rng, n: usize) -> String {
    let mut bytes = vec![0; n];
    rng.fill(&mut bytes);
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The kernel's random source.
#[derive(Debug, Default)]
pub struct RealRng;

impl Rng for RealRng {
    fn fill(&self, into: &mut [u8]) {
        // The kernel's source fails only when it is missing, and then nothing here may go on: keys would be guessable.
        ring::rand::SystemRandom::new().fill(into).expect("the kernel has a random source");
    }
}
