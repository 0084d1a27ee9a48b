//! `cara-chaos run FILE`: a scenario under its own seeds, or others.

use std::process::ExitCode;

use super::many::Many;
use super::seeds::Seeds;
use crate::library;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file, or a name from `cara-chaos list`.
    scenario: String,
    /// Seeds instead of the scenario's own: `1..=20`, `7`, `random:200`.
    #[arg(long)]
    seeds: Option<Seeds>,
    #[command(flatten)]
    many: Many,
}

/// Runs it; the exit code is that of the worst seed.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let own = library::read(&args.scenario)?.seeds();
    let seeds = args.seeds.clone().unwrap_or(Seeds(own));
    args.many.run(Some(&args.scenario), &seeds)
}
