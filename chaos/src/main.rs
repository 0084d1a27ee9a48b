//! cara-chaos: breaks a cluster on purpose and judges what happened.

use clap::{Parser, Subcommand};

// Libraries that ask the kernel for time or randomness get the simulated world's while one runs. This binary simulates;
// no production binary may have this.
cara_netsim::override_libc!();

#[derive(Debug, Parser)]
#[command(name = "cara-chaos", version, about = "Breaks a Caravanserai cluster on purpose and judges what happened")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run seeds in the simulator: servers, agents and clients under faults, then checkers. Exit 1 on a violation.
    Sim(cara_chaos::cmd::sim::Args),
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    match Cli::parse().command {
        Command::Sim(args) => cara_chaos::cmd::sim::run(&args),
    }
}
