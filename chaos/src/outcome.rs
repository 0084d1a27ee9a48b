//! How a run ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How one seed's run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// What was wrong; nothing when the run passed.
    pub violations: Vec<String>,
    /// Simulated seconds.
    pub sim_seconds: f64,
    /// Events in the trace.
    pub events: u64,
    /// Bytes that went over the wire.
    pub wire_bytes: u64,
    /// The trace's hash, hex: equal exactly if two runs were the same.
    pub hash: String,
    /// The hash at each simulated second, to find where two runs part.
    pub seconds: Vec<String>,
    /// Terms with a leader after the first.
    pub leader_changes: u64,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Reads and writes on registers that were judged.
    pub calls: u64,
    /// Faults by kind.
    pub faults: Vec<(String, u64)>,
}

impl Outcome {
    /// Did it pass?
    pub fn passed(&self) -> bool {
        self.violations.is_empty()
    }

    /// The first simulated second in which two runs of one seed differ; none when they are the same.
    pub fn parts_from(&self, other: &Self) -> Option<usize> {
        if self.hash == other.hash && self.events == other.events {
            return None;
        }
        let equal = self.seconds.iter().zip(&other.seconds).take_while(|(a, b)| a == b).count();
        Some(equal)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed() { "ok  " } else { "FAIL" };
        let faults: u64 = self.faults.iter().map(|(_, count)| count).sum();
        write!(
            f,
            "seed {:<6} {verdict}  {:>6.1} sim-s  events {:>6}  hash {}  leader changes {}  faults {faults}  \
             acknowledged {}  calls {}",
            self.seed, self.sim_seconds, self.events, self.hash, self.leader_changes, self.acknowledged, self.calls
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(hash: &str, seconds: &[&str]) -> Outcome {
        Outcome {
            seed: 1,
            violations: Vec::new(),
            sim_seconds: 1.0,
            events: 1,
            wire_bytes: 0,
            hash: hash.into(),
            seconds: seconds.iter().map(|s| (*s).to_owned()).collect(),
            leader_changes: 0,
            acknowledged: 0,
            calls: 0,
            faults: Vec::new(),
        }
    }

    #[test]
    fn the_second_in_which_two_runs_part_is_named() {
        let one = outcome("a", &["1", "2", "3"]);
        assert_eq!(one.parts_from(&one.clone()), None);
        assert_eq!(one.parts_from(&outcome("b", &["1", "2", "9"])), Some(2));
    }
}
