//! How often one caller may ask this server. Pure; the clock is an argument.
//!
//! A caller with a valid token is counted by its token, whatever address it has; everyone else by address, so that guessing
//! tokens and asking without one stay cheap for us and slow for them. Machines with a certificate of the cluster are not
//! counted here: what they may do is bounded by what they are. Each server counts what reaches it itself; what another
//! server hands over was counted there.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Callers that are told apart at a time. Those beyond share one bucket, so that many addresses can't fill the memory.
const CALLERS_MAX: usize = 8_192;
/// Between two searches for callers that are forgotten: no request of a flood pays for more than its share.
const SWEEP: Duration = Duration::from_secs(1);

/// So many requests a second, and so many at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// In the long run; 0 = as many as one likes.
    pub per_second: u32,
    /// At once, after a pause.
    pub burst: u32,
}

impl Rate {
    /// A rate that leaves room for four seconds' worth at once: scripts work in bursts.
    pub fn with_burst(per_second: u32) -> Self {
        Self { per_second, burst: per_second.saturating_mul(4) }
    }
}

/// One bucket for each caller, of a kind of callers.
#[derive(Debug)]
pub struct Buckets {
    rate: Rate,
    /// When each caller's bucket is full again; a caller that isn't here has a full one.
    full_at: BTreeMap<String, Duration>,
    swept_at: Duration,
}

impl Buckets {
    /// All full.
    pub fn new(rate: Rate) -> Self {
        Self { rate, full_at: BTreeMap::new(), swept_at: Duration::ZERO }
    }

    /// Takes one request from the caller's bucket.
    ///
    /// # Errors
    /// The time after which there is one again.
    pub fn take(&mut self, caller: &str, now: Duration) -> Result<(), Duration> {
        if self.rate.per_second == 0 {
            return Ok(());
        }
        let caller = self.known(caller, now);
        let each = Duration::from_secs(1) / self.rate.per_second;
        let full_at = self.full_at.get(caller).copied().unwrap_or_default().max(now) + each;
        let behind = full_at.saturating_sub(now);
        let most = each * self.rate.burst.max(1);
        if behind > most {
            return Err(behind - most);
        }
        self.full_at.insert(caller.to_owned(), full_at);
        Ok(())
    }

    /// The caller, or what stands for everyone whom there is no room for.
    fn known<'a>(&mut self, caller: &'a str, now: Duration) -> &'a str {
        if self.full_at.len() < CALLERS_MAX || self.full_at.contains_key(caller) {
            return caller;
        }
        if now >= self.swept_at + SWEEP {
            self.swept_at = now;
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        if self.full_at.len() < CALLERS_MAX { caller } else { "" }
    }
}

/// All that a server counts.
#[derive(Debug)]
pub struct Limiter {
    tokens: Mutex<Buckets>,
    addresses: Mutex<Buckets>,
}

impl Limiter {
    /// With full buckets.
    pub fn new(tokens: Rate, addresses: Rate) -> Self {
        Self { tokens: Mutex::new(Buckets::new(tokens)), addresses: Mutex::new(Buckets::new(addresses)) }
    }

    /// Takes a request of the holder of a token.
    ///
    /// # Errors
    /// The time to wait.
    pub fn of_token(&self, id: &str, now: Duration) -> Result<(), Duration> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).take(id, now)
    }

    /// Takes a request of someone without one.
    ///
    /// # Errors
    /// The time to wait.
    pub fn of_address(&self, address: &str, now: Duration) -> Result<(), Duration> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).take(address, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10, burst: 3 };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut buckets = Buckets::new(RATE);
        let taken: Vec<_> = (0..4).map(|_| buckets.take("a", at(5_000)).is_ok()).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert_eq!(buckets.take("a", at(5_000)), Err(at(100)));
        assert_eq!(buckets.take("b", at(5_000)), Ok(()), "another caller has a bucket of its own");
        assert_eq!(buckets.take("a", at(5_100)), Ok(()));
        assert_eq!(buckets.take("a", at(5_100)), Err(at(100)));
        let passed = (0..1_000).filter(|n| buckets.take("a", at(6_000 + n * 10)).is_ok()).count();
        assert!((100..=103).contains(&passed), "{passed} in ten seconds at ten a second, and a burst of three");
    }

    #[test]
    fn a_pause_gives_back_no_more_than_the_burst() {
        let mut buckets = Buckets::new(RATE);
        let passed = |buckets: &mut Buckets, now| (0..10).filter(|_| buckets.take("a", now).is_ok()).count();
        assert_eq!(passed(&mut buckets, at(0)), 3);
        assert_eq!(passed(&mut buckets, at(3_600_000)), 3);
    }

    #[test]
    fn zero_is_no_limit() {
        let mut buckets = Buckets::new(Rate::with_burst(0));
        assert!((0..10_000).all(|_| buckets.take("a", at(0)).is_ok()));
    }

    #[test]
    fn many_callers_share_a_bucket_until_others_are_forgotten() {
        let mut buckets = Buckets::new(RATE);
        for n in 0..CALLERS_MAX {
            assert_eq!(buckets.take(&n.to_string(), at(2_000)), Ok(()));
        }
        let strangers = (0..10).filter(|n| buckets.take(&format!("stranger{n}"), at(2_000)).is_ok()).count();
        assert_eq!(strangers, 3, "all of them have one bucket");
        assert_eq!(buckets.take("1", at(2_000)), Ok(()), "who was here has still its own");
        assert!(buckets.full_at.len() <= CALLERS_MAX + 1);
        assert_eq!(buckets.take("late", at(4_000)), Ok(()));
        assert_eq!(buckets.full_at.len(), 1, "who has a full bucket is forgotten");
    }
}
