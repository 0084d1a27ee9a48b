//! `nodes volumes`: what nodes keep in quarantine.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  caractrl nodes volumes w1                                       # what it keeps, and how large that is
  caractrl nodes volumes w1 --remove cara-ledger-data-g4-1f0c9a2e

A volume gets there when its workload was moved away, deleted or given up, and stays until somebody removes it. It may hold
the only copy of something: look first. One that a workload or a running move still needs is not removed.";

/// `nodes volumes`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Volumes {
    /// Name or id.
    pub node: String,
    /// Remove this one with all that is on it, by its engine name as listed.
    #[arg(long, value_name = "NAME")]
    pub remove: Option<String>,
    /// Do not ask before it is removed.
    #[arg(long, requires = "remove")]
    pub yes: bool,
}
