//! What `sim` and `run` share: many seeds, a line for each, a bundle for each failure, and the sum.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cara_checker::Verdict;
use indicatif::ProgressBar;

use super::seeds::Seeds;
use super::shape::Shape;
use crate::bundle::Bundle;
use crate::child::Job;
use crate::outcome::Outcome;
use crate::pool::{Done, Pool};

/// Findings shown of one seed; the bundle has all.
const FINDINGS_SHOWN: usize = 8;

/// How to run many seeds.
#[derive(Debug, Clone, clap::Args)]
pub struct Many {
    /// Run each seed in two processes and compare them to the byte.
    #[arg(long)]
    twice: bool,
    /// Processes at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// Begin no more seeds after this long, for example 90s, 10m, 1h.
    #[arg(long, value_parser = parse_budget)]
    budget: Option<std::time::Duration>,
    /// One JSON object per seed, and one with the totals at the end.
    #[arg(long)]
    json: bool,
    /// Where bundles of failures go.
    #[arg(long, default_value = "chaos-failures")]
    out: PathBuf,
    #[command(flatten)]
    shape: Shape,
}

fn parse_budget(text: &str) -> Result<std::time::Duration, String> {
    cara_scenario::parse_duration(text).map_err(|error| format!("{error}; write for example 90s, 10m or 1h"))
}

impl Many {
    /// Changes to the world.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Runs all seeds; the exit code is that of the worst.
    pub fn run(&self, scenario: Option<&str>, seeds: &Seeds) -> anyhow::Result<ExitCode> {
        // What can't be understood is said once, before any process starts.
        let plan = super::one::plan(scenario, *seeds.0.start(), &self.shape)?;
        drop(plan);
        let jobs = seeds.0.clone().map(|seed| self.job(scenario, seed));
        let pool = Pool { jobs: usize::try_from(self.jobs)?, twice: self.twice, budget: self.budget, bar: !self.json };
        if !self.json && seeds.0.start() != seeds.0.end() {
            println!("seeds from {}", seeds.0.start());
        }
        let totals = pool.run(jobs, |done, bar| self.told(scenario, done, bar).map(|()| true))?;
        if self.json {
            println!("{}", serde_json::to_string(&totals)?);
        } else if totals.seeds != 1 {
            println!("{totals}");
        }
        Ok(ExitCode::from(totals.exit_code()))
    }

    fn job(&self, scenario: Option<&str>, seed: u64) -> Job {
        Job { seed, scenario: scenario.map(str::to_owned), args: self.shape.to_args(), ..Job::default() }
    }

    fn told(&self, scenario: Option<&str>, done: &Done, bar: &ProgressBar) -> anyhow::Result<()> {
        let say = |line: String| bar.suspend(|| println!("{line}"));
        if self.json {
            println!("{}", serde_json::to_string(&done.outcome)?);
        } else {
            say(done.outcome.to_string());
            let findings = &done.outcome.findings;
            findings.iter().take(FINDINGS_SHOWN).for_each(|finding| say(format!("  {finding}")));
            if findings.len() > FINDINGS_SHOWN {
                say(format!("  and {} more", findings.len() - FINDINGS_SHOWN));
            }
            done.outcome.unmet.iter().for_each(|reason| say(format!("  unknown: {reason}")));
        }
        let told = |line: String| if self.json { eprintln!("{line}") } else { say(line) };
        if let Some(second) = done.diverged {
            let (a, b) = self.two_traces(scenario, &done.outcome)?;
            told(format!("  seed {} DIFFERS from itself in simulated second {second}", done.outcome.seed));
            told(format!("  again: cara-chaos diff {} {}", a.display(), b.display()));
        } else if done.outcome.verdict == Verdict::Fail {
            let folder = self.bundle(scenario, &done.outcome)?;
            told(format!("  again: cara-chaos replay {}", folder.display()));
        }
        Ok(())
    }

    /// Runs a failed seed once more, with everything written down.
    fn bundle(&self, scenario: Option<&str>, outcome: &Outcome) -> anyhow::Result<PathBuf> {
        let plan = super::one::plan(scenario, outcome.seed, &self.shape)?;
        let bundle = Bundle::at(self.out.join(format!("{}-{}.bundle", plan.name, outcome.seed)));
        bundle.create()?;
        std::fs::write(bundle.scenario_file(), plan.to_scenario().to_toml())?;
        record(&bundle, outcome.seed, &self.shape.to_args())?;
        Ok(bundle.folder().to_owned())
    }

    fn two_traces(&self, scenario: Option<&str>, outcome: &Outcome) -> anyhow::Result<(PathBuf, PathBuf)> {
        std::fs::create_dir_all(&self.out)?;
        let trace = |which: &str| -> anyhow::Result<PathBuf> {
            let file = self.out.join(format!("seed-{}.{which}.trace", outcome.seed));
            let mut job = self.job(scenario, outcome.seed);
            job.args.extend(["--trace".to_owned(), file.display().to_string()]);
            job.run()?;
            Ok(file)
        };
        Ok((trace("a")?, trace("b")?))
    }
}

/// Runs the scenario in a bundle's folder and fills the bundle.
pub fn record(bundle: &Bundle, seed: u64, args: &[String]) -> anyhow::Result<Outcome> {
    let mut args: Vec<String> = args.to_vec();
    args.extend(["--bundle".to_owned(), bundle.folder().display().to_string()]);
    Job { seed, scenario: Some(text(&bundle.scenario_file())), args, ..Job::default() }.run()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
