//! The command line.

use std::process::ExitCode;

use cara_checker::HARNESS_ERROR;
use clap::{Parser, Subcommand};

use crate::cmd;

const EXAMPLES: &str = "Examples:
  cara-chaos sim --seeds 1..=100 --twice       a hundred worlds, each in two processes, compared to the byte
  cara-chaos sim --seeds random --budget 8m    as many as fit, other ones each time
  cara-chaos run leader-frozen-too-long        a scenario of the library; `list` shows all
  cara-chaos shrink seed-151.bundle            the few faults and operations that matter
  cara-chaos report seed-151.bundle --out r.html

Exit codes: 0 pass, 1 fail, 2 unknown (nothing wrong, but not everything happened that should), 3 the harness failed.";

#[derive(Debug, Parser)]
#[command(
    name = "cara-chaos",
    version,
    about = "Breaks a Caravanserai cluster on purpose and judges what happened",
    after_help = EXAMPLES
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run seeds in the simulator: each makes its own cluster, workload and faults
    Sim(cmd::sim::Args),
    /// Run a scenario: a file, or one of the library
    Run(cmd::run::Args),
    /// Run a failure's bundle again, and say whether it is the same
    Replay(cmd::replay::Args),
    /// Find the few faults and operations that a failure needs
    Shrink(cmd::shrink::Args),
    /// Show the first event in which two runs part
    Diff(cmd::diff::Args),
    /// Show what a seed makes of a scenario, before running it
    Explain(cmd::explain::Args),
    /// Visit every cell of lifecycle step x fault x role
    Matrix(cmd::matrix::Args),
    /// Find every bug that is planted on purpose
    Museum(cmd::museum::Args),
    /// Make one offline page of a run
    Report(cmd::report::Args),
    /// Print the scenario format as a JSON Schema
    Schema(cmd::schema::Args),
    /// Show the scenarios of the library
    List(cmd::list::Args),
    /// Check what this machine and this binary can do, and say what to put right
    Doctor(cmd::doctor::Args),
    /// Run one world in this process
    #[command(hide = true)]
    One(cmd::one::Args),
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let code = if error.use_stderr() { i32::from(HARNESS_ERROR) } else { 0 };
        // Nobody is left to tell when the terminal is gone.
        let _told = error.print();
        std::process::exit(code)
    });
    let done = match &cli.command {
        Command::Sim(args) => cmd::sim::run(args),
        Command::Run(args) => cmd::run::run(args),
        Command::Replay(args) => cmd::replay::run(args),
        Command::Shrink(args) => cmd::shrink::run(args),
        Command::Diff(args) => cmd::diff::run(args),
        Command::Explain(args) => cmd::explain::run(args),
        Command::Matrix(args) => cmd::matrix::run(args),
        Command::Museum(args) => cmd::museum::run(args),
        Command::Report(args) => cmd::report::run(args),
        Command::Schema(args) => cmd::schema::run(args),
        Command::List(args) => cmd::list::run(args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::One(args) => cmd::one::run(args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("cara-chaos: {error:#}");
        ExitCode::from(HARNESS_ERROR)
    })
}
