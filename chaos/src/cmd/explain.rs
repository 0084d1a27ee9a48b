//! `cara-chaos explain FILE`: what a seed makes of a scenario, before anything runs.

use std::process::ExitCode;

use crate::library;

/// Which scenario.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file, or a name from `cara-chaos list`.
    scenario: String,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Prints the timeline.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = cara_scenario::plan(&library::read(&args.scenario)?, args.seed);
    print!("{}", cara_scenario::explain(&plan));
    Ok(ExitCode::SUCCESS)
}
