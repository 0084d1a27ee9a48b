//! What a run amounts to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Finding;

/// The exit code of a run that could not be judged because the harness itself failed.
pub const HARNESS_ERROR: u8 = 3;

/// Did the cluster keep its promises?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything that was to be shown was shown, and nothing is wrong.
    Pass,
    /// Something is wrong.
    Fail,
    /// Nothing is wrong, but something that was to be shown wasn't.
    Unknown,
}

impl Verdict {
    /// The exit code of a process with this verdict; [`HARNESS_ERROR`] is the fourth.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Unknown => 2,
        }
    }

    /// The verdict over two runs together: one failure fails both, and one unknown makes a pass unknown.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fail, _) | (_, Self::Fail) => Self::Fail,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Pass, Self::Pass) => Self::Pass,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
        })
    }
}

/// Everything that the checkers of a run said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Why a pass would say too much: expectations that never happened, histories too hard to judge.
    pub unknown: Vec<String>,
}

impl Judgement {
    /// Adds findings.
    pub fn found(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
    }

    /// Adds reasons for not knowing.
    pub fn unsure(&mut self, reasons: impl IntoIterator<Item = String>) {
        self.unknown.extend(reasons);
    }

    /// Findings in the order of time, each once.
    pub fn sort(&mut self) {
        self.findings.sort();
        self.findings.dedup();
    }

    /// What it amounts to: a finding outweighs any number of reasons for not knowing.
    pub fn verdict(&self) -> Verdict {
        match (self.findings.is_empty(), self.unknown.is_empty()) {
            (false, _) => Verdict::Fail,
            (true, false) => Verdict::Unknown,
            (true, true) => Verdict::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_finding_outweighs_not_knowing_and_not_knowing_outweighs_a_pass() {
        let mut judgement = Judgement::default();
        assert_eq!((judgement.verdict(), judgement.verdict().exit_code()), (Verdict::Pass, 0));
        judgement.unsure(["no leader ever changed".to_owned()]);
        assert_eq!((judgement.verdict(), judgement.verdict().exit_code()), (Verdict::Unknown, 2));
        let finding = |at| Finding::new(Duration::from_secs(at), crate::rules::FENCE, "n1", "went back");
        judgement.found([finding(2), finding(1), finding(2)]);
        judgement.sort();
        assert_eq!(judgement.findings, [finding(1), finding(2)]);
        assert_eq!((judgement.verdict(), judgement.verdict().exit_code()), (Verdict::Fail, 1));
    }

    #[test]
    fn verdicts_of_several_runs_fold_to_the_worst() {
        use Verdict::{Fail, Pass, Unknown};
        assert_eq!([Pass, Unknown, Pass].into_iter().fold(Pass, Verdict::and), Unknown);
        assert_eq!([Unknown, Fail, Pass].into_iter().fold(Pass, Verdict::and), Fail);
        assert_eq!([Pass, Pass].into_iter().fold(Pass, Verdict::and), Pass);
        assert_eq!(Unknown.to_string(), "unknown");
    }
}
