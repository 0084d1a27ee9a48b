//! Many runs on a few processes at a time, with a bar for people, and what they sum up to.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use cara_checker::Verdict;
use cara_env::{Clock, RealClock};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::child::Job;
use crate::outcome::Outcome;

/// What came of one job.
#[derive(Debug)]
pub struct Done {
    /// The job.
    pub job: Job,
    /// How its run ended; of a doubled run the second.
    pub outcome: Outcome,
    /// The first simulated second in which a doubled run differed from itself.
    pub diverged: Option<usize>,
}

/// How to work through the jobs.
#[derive(Debug, Clone, Copy)]
pub struct Pool {
    /// Processes at the same time.
    pub jobs: usize,
    /// Run each twice and compare.
    pub twice: bool,
    /// Begin nothing new after this.
    pub budget: Option<Duration>,
    /// Show a bar, if somebody looks.
    pub bar: bool,
}

/// What all runs sum up to; the last line of `--json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Seeds that ran.
    pub seeds: u64,
    /// Of these passed.
    pub passed: u64,
    /// A checker found something, or the run differed from itself.
    pub failed: u64,
    /// Something that should have happened did not, so that the run proves nothing.
    pub unknown: u64,
    /// Of the failed ones: the same seed was not the same history.
    pub diverged: u64,
    /// Simulated seconds; doubled runs count twice.
    pub sim_seconds: f64,
    /// Processor seconds of all runs.
    pub cpu_seconds: f64,
    /// Seconds on the wall.
    pub wall_seconds: f64,
}

impl Totals {
    fn add(&mut self, done: &Done, times: u32) {
        self.seeds += 1;
        self.sim_seconds += done.outcome.sim_seconds * f64::from(times);
        match (done.diverged, done.outcome.verdict) {
            (Some(_), _) => {
                self.diverged += 1;
                self.failed += 1;
            }
            (None, Verdict::Pass) => self.passed += 1,
            (None, Verdict::Fail) => self.failed += 1,
            (None, Verdict::Unknown) => self.unknown += 1,
        }
    }

    /// 0 when all passed, 1 when one failed, 2 when one proved nothing.
    pub fn exit_code(&self) -> u8 {
        match (self.failed, self.unknown) {
            (0, 0) => 0,
            (0, _) => 2,
            _ => 1,
        }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let per_cpu = if self.cpu_seconds > 0.0 { self.sim_seconds / self.cpu_seconds } else { 0.0 };
        let per_minute = if self.wall_seconds > 0.0 { self.seeds as f64 * 60.0 / self.wall_seconds } else { 0.0 };
        write!(f, "{} seeds passed, {} failed", self.passed, self.failed)?;
        if self.diverged > 0 {
            write!(f, " ({} differ from themselves)", self.diverged)?;
        }
        if self.unknown > 0 {
            write!(f, ", {} proved nothing", self.unknown)?;
        }
        write!(
            f,
            "; {:.2} simulated hours, {per_minute:.0} seeds/min, {per_cpu:.1} simulated s per CPU s",
            self.sim_seconds / 3600.0
        )
    }
}

impl Pool {
    /// Runs all jobs, tells of each one as it ends, and sums up. Stops early when `told` says so.
    ///
    /// # Errors
    /// When a run can't be started, or its scenario can't be read.
    pub fn run(
        &self,
        jobs: impl Iterator<Item = Job> + Send,
        mut told: impl FnMut(&Done, &ProgressBar) -> anyhow::Result<bool>,
    ) -> anyhow::Result<Totals> {
        let clock = RealClock::new();
        let (began, cpu_before) = (clock.monotonic(), children_cpu_seconds());
        let count = jobs.size_hint().1.filter(|count| *count < 1_000_000);
        let bar = self.bar(count);
        let waiting = Mutex::new(jobs);
        let over = std::sync::atomic::AtomicBool::new(false);
        let mut totals = Totals::default();
        let times = if self.twice { 2 } else { 1 };
        let ended: anyhow::Result<()> = std::thread::scope(|scope| {
            let (send, results) = mpsc::channel();
            for _ in 0..self.jobs.max(1) {
                let (send, waiting, over, clock) = (send.clone(), &waiting, &over, &clock);
                scope.spawn(move || {
                    loop {
                        let late = self.budget.is_some_and(|budget| clock.monotonic() - began >= budget);
                        if late || over.load(std::sync::atomic::Ordering::Relaxed) {
                            return;
                        }
                        let Some(job) = waiting.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
                        if send.send(self.once_or_twice(job)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(send);
            let mut result = Ok(());
            for done in results {
                let going_on = done.and_then(|done| {
                    totals.add(&done, times);
                    bar.inc(1);
                    bar.set_message(message(&totals, clock.monotonic() - began));
                    told(&done, &bar)
                });
                if !matches!(going_on, Ok(true)) {
                    over.store(true, std::sync::atomic::Ordering::Relaxed);
                    result = result.and(going_on.map(|_| ()));
                }
            }
            result
        });
        bar.finish_and_clear();
        ended?;
        totals.cpu_seconds = children_cpu_seconds() - cpu_before;
        totals.wall_seconds = (clock.monotonic() - began).as_secs_f64();
        Ok(totals)
    }

    fn once_or_twice(&self, job: Job) -> anyhow::Result<Done> {
        let first = job.run()?;
        if !self.twice {
            return Ok(Done { job, outcome: first, diverged: None });
        }
        let outcome = job.run()?;
        let diverged = first.parts_from(&outcome);
        Ok(Done { job, outcome, diverged })
    }

    fn bar(&self, count: Option<usize>) -> ProgressBar {
        if !self.bar || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = count.map_or_else(ProgressBar::new_spinner, |count| ProgressBar::new(count as u64));
        let form = if count.is_some() { "{bar:30} {pos}/{len} seeds  {msg}" } else { "{spinner} {pos} seeds  {msg}" };
        bar.set_style(ProgressStyle::with_template(form).expect("the template is a constant that parses"));
        bar
    }
}

fn message(totals: &Totals, passed: Duration) -> String {
    let minutes = passed.as_secs_f64() / 60.0;
    let rate = if minutes > 0.0 { totals.seeds as f64 / minutes } else { 0.0 };
    format!("{rate:.0}/min  {:.2} simulated hours  {} failed", totals.sim_seconds / 3600.0, totals.failed)
}

/// Processor time of all ended children, as the kernel counts it; 0 where it can't be read.
fn children_cpu_seconds() -> f64 {
    /// The kernel's unit in this file, on every Linux that Rust supports.
    const TICKS_PER_SECOND: f64 = 100.0;
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return 0.0 };
    // The second field is the program's name in parentheses and may hold blanks.
    let fields: VecDeque<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |n: usize| fields.get(n - 3).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (field(16) + field(17)) / TICKS_PER_SECOND
}
