//! What a service's answers to its health check say about it. Pure; the asking is in [`crate::probe`].
//!
//! ```text
//!   Unknown ── answers well ──────────────► Healthy
//!      │                                     │   ▲
//!      └─ fails too often, after its start ─►Unhealthy (fails too often / answers well)
//! ```
//!
//! Results live in memory only: after a restart of the agent every service is asked again.

use std::collections::BTreeMap;
use std::time::Duration;

use cara_proto::workload::HealthCheck;

/// From one answer to the next question when the check doesn't say: as often as people expect from other tools.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(10);
/// How long an answer may take when the check doesn't say.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// Failures in a row when the check doesn't say: one lost answer is nothing, three are something.
const FAILURES_MAX_DEFAULT: u32 = 3;

/// Verdicts by container id.
pub(crate) type Verdicts = BTreeMap<String, Verdict>;

/// What is known of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has not answered well yet, and not failed too often.
    #[default]
    Unknown,
    /// It answers well.
    Healthy,
    /// It has failed too often: why, the last time.
    Unhealthy(String),
}

/// The answers of one run of a container.
#[derive(Debug)]
pub(crate) struct Answers {
    failures_max: u32,
    start_period: Duration,
    started_at: Duration,
    failures: u32,
    verdict: Verdict,
}

impl Answers {
    /// Of a container that was first seen running at this moment of the monotonic clock.
    pub(crate) fn new(check: &HealthCheck, started_at: Duration) -> Self {
        Self {
            failures_max: if check.failures_max == 0 { FAILURES_MAX_DEFAULT } else { check.failures_max },
            start_period: Duration::from_millis(check.start_period_ms),
            started_at,
            failures: 0,
            verdict: Verdict::Unknown,
        }
    }

    /// Takes an answer and gives the verdict.
    pub(crate) fn take(&mut self, answer: Result<(), String>, now: Duration) -> Verdict {
        match answer {
            Ok(()) => {
                self.failures = 0;
                self.verdict = Verdict::Healthy;
            }
            // Starting takes its time, and only the first good answer says that it is over early.
            Err(_) if self.verdict == Verdict::Unknown && now.saturating_sub(self.started_at) < self.start_period => {}
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures == self.failures_max {
                    self.verdict = Verdict::Unhealthy(why); // The first reason stays: a report must not change each time.
                }
            }
        }
        self.verdict.clone()
    }
}

/// From one answer to the next question.
pub(crate) fn interval(check: &HealthCheck) -> Duration {
    or(check.interval_ms, INTERVAL_DEFAULT)
}

/// How long an answer may take.
pub(crate) fn timeout(check: &HealthCheck) -> Duration {
    or(check.timeout_ms, TIMEOUT_DEFAULT)
}

fn or(ms: u64, default: Duration) -> Duration {
    if ms == 0 { default } else { Duration::from_millis(ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(100);

    fn at(seconds: u64) -> Duration {
        START + Duration::from_secs(seconds)
    }

    fn answers(failures_max: u32, start_period_ms: u64) -> Answers {
        Answers::new(&HealthCheck { failures_max, start_period_ms, ..HealthCheck::default() }, START)
    }

    fn bad() -> Result<(), String> {
        Err("refused".to_owned())
    }

    #[test]
    fn one_good_answer_is_enough_and_as_many_bad_ones_as_the_check_says_are_too_many() {
        let mut answers = answers(2, 0);
        assert_eq!(answers.take(Ok(()), at(1)), Verdict::Healthy);
        assert_eq!(answers.take(bad(), at(2)), Verdict::Healthy, "one is nothing");
        assert_eq!(answers.take(bad(), at(3)), Verdict::Unhealthy("refused".into()));
        assert_eq!(answers.take(Err("else".into()), at(4)), Verdict::Unhealthy("refused".into()));
        assert_eq!(answers.take(Ok(()), at(5)), Verdict::Healthy);
        assert_eq!(answers.take(bad(), at(6)), Verdict::Healthy, "it counts anew");
    }

    #[test]
    fn while_it_starts_failures_don_t_count_unless_it_has_answered_well() {
        let mut slow = answers(1, 10_000);
        assert_eq!(slow.take(bad(), at(9)), Verdict::Unknown);
        assert_eq!(slow.take(bad(), at(10)), Verdict::Unhealthy("refused".into()));
        let mut quick = answers(1, 10_000);
        assert_eq!(quick.take(Ok(()), at(1)), Verdict::Healthy);
        assert_eq!(quick.take(bad(), at(2)), Verdict::Unhealthy("refused".into()));
    }
}
