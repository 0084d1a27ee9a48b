//! `cara-chaos schema`: the scenario format for editors.

use std::process::ExitCode;

/// Nothing to choose.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints the JSON Schema.
pub fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    println!("{}", serde_json::to_string_pretty(&cara_scenario::schema())?);
    Ok(ExitCode::SUCCESS)
}
