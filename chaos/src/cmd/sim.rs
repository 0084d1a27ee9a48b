//! `cara-chaos sim`: seeds in the simulator. Each makes its own cluster, workload and faults.

use std::path::PathBuf;
use std::process::ExitCode;

use super::many::Many;
use super::seeds::Seeds;
use crate::child::Job;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seeds: `1..=20`, `7`, `random` (with --budget) or `random:200`.
    #[arg(long, default_value = "1")]
    seeds: Seeds,
    /// One seed.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Write every event of the (one) seed to this file, log lines included.
    #[arg(long, conflicts_with = "twice")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    many: Many,
}

/// Runs them; the exit code is that of the worst.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let seeds = args.seed.map_or_else(|| args.seeds.clone(), |seed| Seeds(seed..=seed));
    if let Some(trace) = &args.trace {
        anyhow::ensure!(seeds.0.start() == seeds.0.end(), "--trace takes one seed: use --seed N");
        let mut extra = args.many.shape().to_args();
        extra.extend(["--trace".to_owned(), trace.display().to_string()]);
        let outcome = Job { seed: *seeds.0.start(), args: extra, ..Job::default() }.run()?;
        println!("{outcome}");
        outcome.findings.iter().for_each(|finding| println!("  {finding}"));
        return Ok(ExitCode::from(outcome.verdict.exit_code()));
    }
    args.many.run(None, &seeds)
}
