//! How a run ended.

use std::fmt;

use cara_checker::{Finding, Verdict};
use serde::{Deserialize, Serialize};

/// How one seed's run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// The scenario's name.
    pub scenario: String,
    /// Passed, failed, or proved nothing.
    pub verdict: Verdict,
    /// What was wrong; nothing unless the run failed.
    pub findings: Vec<Finding>,
    /// Why the run proves nothing: what should have happened at least once and did not.
    pub unmet: Vec<String>,
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
    /// Chaos points by name, with how often each was reached.
    pub points: Vec<(String, u64)>,
    /// Cells of the coverage matrix that were visited: step, fault, role.
    pub cells: Vec<(String, String, String)>,
    /// What the seed chose, one line each.
    pub choices: Vec<String>,
}

impl Outcome {
    /// A run that ended before it could say anything: the process died, with these last words.
    pub fn died(seed: u64, scenario: &str, words: &str) -> Self {
        let finding = Finding {
            at: std::time::Duration::ZERO,
            rule: "panic".into(),
            host: String::new(),
            text: format!("the run died: {words}"),
        };
        Self {
            seed,
            scenario: scenario.to_owned(),
            verdict: Verdict::Fail,
            findings: vec![finding],
            unmet: Vec::new(),
            sim_seconds: 0.0,
            events: 0,
            wire_bytes: 0,
            hash: "none".into(),
            seconds: Vec::new(),
            leader_changes: 0,
            acknowledged: 0,
            calls: 0,
            faults: Vec::new(),
            points: Vec::new(),
            cells: Vec::new(),
            choices: Vec::new(),
        }
    }

    /// Did it pass?
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Pass
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
        let verdict = match self.verdict {
            Verdict::Pass => "ok  ",
            Verdict::Fail => "FAIL",
            Verdict::Unknown => "??  ",
        };
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
        let seconds = seconds.iter().map(|s| (*s).to_owned()).collect();
        Outcome { hash: hash.into(), events: 1, seconds, ..Outcome::died(1, "x", "") }
    }

    #[test]
    fn the_second_in_which_two_runs_part_is_named() {
        let one = outcome("a", &["1", "2", "3"]);
        assert_eq!(one.parts_from(&one.clone()), None);
        assert_eq!(one.parts_from(&outcome("b", &["1", "2", "9"])), Some(2));
    }
}
