//! `cara-chaos matrix`: every step of a machine's and a cluster's life, under every fault, on every role.

use std::process::ExitCode;

/// Nothing yet.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// x
pub fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
