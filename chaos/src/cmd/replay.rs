//! `cara-chaos replay BUNDLE`: runs a failure again.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::bundle::{self, Bundle};
use crate::child::Job;

/// Which failure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The bundle's folder.
    bundle: PathBuf,
}

/// Runs it, and says whether it is the same history. The exit code is that of the run.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let bundle = Bundle::at(&args.bundle);
    let facts = bundle.facts()?;
    let scenario = Some(bundle.scenario_file().display().to_string());
    let job = Job { seed: facts.seed, scenario, args: facts.args.clone(), ..Job::default() };
    let outcome = job.run()?;
    println!("{outcome}");
    outcome.findings.iter().for_each(|finding| println!("  {finding}"));
    let now = bundle::revision();
    match facts.outcome.parts_from(&outcome) {
        None => println!("the same history as in the bundle"),
        Some(second) if now == facts.revision => {
            println!("NOT the same history: it parts in simulated second {second}, with the same code ({now})");
        }
        Some(second) => println!(
            "another history from simulated second {second} on: the bundle was made with {}, this is {now}. That it \
             passes now does not prove that the fault is gone",
            facts.revision
        ),
    }
    Ok(ExitCode::from(outcome.verdict.exit_code()))
}
