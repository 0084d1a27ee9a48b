//! Which seeds: a range, or as many random ones as there is time for.

use std::ops::RangeInclusive;

use cara_env::{RealRng, Rng};

/// Random runs of seeds begin below this, so that people can read and type them.
const RANDOM_BELOW: u64 = 1_000_000_000;

/// Seeds as a user writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub RangeInclusive<u64>);

impl std::str::FromStr for Seeds {
    type Err = String;

    /// `1..=20`, `7`, `random` (until the budget is used up) or `random:200`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a range of seeds; write for example 1..=20, 7, random or random:200");
        if let Some(rest) = text.strip_prefix("random") {
            let count = match rest.strip_prefix(':') {
                Some(count) => count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?,
                None if rest.is_empty() => u64::from(u32::MAX),
                None => return Err(wrong()),
            };
            let from = RealRng.below(RANDOM_BELOW);
            return Ok(Self(from..=from + count - 1));
        }
        let Some((from, to)) = text.split_once("..=") else {
            let one = text.parse().map_err(|_| wrong())?;
            return Ok(Self(one..=one));
        };
        let (from, to) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
        if from > to { Err(wrong()) } else { Ok(Self(from..=to)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_a_range_or_a_random_run() {
        let seeds = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.0);
        assert_eq!(seeds("7"), Ok(7..=7));
        assert_eq!(seeds("3..=9"), Ok(3..=9));
        let random = seeds("random:5").expect("a random run");
        assert_eq!(random.end() - random.start(), 4);
        for wrong in ["9..=3", "x", "1..20", "random:0", "randomly", ""] {
            assert!(seeds(wrong).expect_err("refused").contains("1..=20"), "{wrong}");
        }
    }
}
