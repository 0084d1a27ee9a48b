//! `cluster`: what concerns all of it.

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  caractrl cluster rotate-ca              # replace the CA, and wait until everybody has followed
  caractrl cluster rotate-ca --status     # how far it is, and who holds it back
  caractrl cluster rotate-ca --force      # go on without nodes that are away; they must enrol again

Nobody is shut out on the way: the next CA is told to every server and node before it signs, and the one before is trusted
until nobody uses a certificate of it. A context that pins the CA before goes on working (for the last three CAs).";

/// `cluster`.
#[derive(Debug, Args)]
pub struct Cluster {
    /// What to do.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// `cluster ...`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Replace the cluster's CA, without locking anybody out.
    #[command(after_help = EXAMPLES)]
    RotateCa(RotateCa),
}

/// `cluster rotate-ca`.
#[derive(Debug, Args)]
pub struct RotateCa {
    /// Only show how far a replacement is, and who holds it back.
    #[arg(long, conflicts_with_all = ["force", "yes", "detach"])]
    pub status: bool,
    /// Go on without the nodes that hold it back: their certificates are revoked.
    #[arg(long)]
    pub force: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Do not wait until it is over.
    #[arg(long)]
    pub detach: bool,
}
