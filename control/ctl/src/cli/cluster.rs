//! `cluster`: what concerns all of it.

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  caractrl cluster rotate-ca              # replace the CA, and wait until everybody has followed
  caractrl cluster rotate-ca --status     # how far it is, and who holds it back
  caractrl cluster rotate-ca --force      # go on without nodes that are away; they must enrol again

Nobody is shut out on the way: the next CA is told to every server and node before it signs, and the one before is trusted
until nobody uses a certificate of it. A context that pins the CA before goes on working (for the last three CAs).";

const SEALING_EXAMPLES: &str = "\
Examples:
  caractrl cluster rotate-sealing-key            # replace the sealing key, and wait until every server has the next one
  caractrl cluster rotate-sealing-key --status   # how far it is, and which servers hold it back
  caractrl cluster rotate-sealing-key --anew     # begin again: the server that made the next key is gone for good

The sealing key opens the CA's private key, and lies on the disk of each server. When a disk may have come into other hands:
remove that server (and let it join again), then rotate-sealing-key, then rotate-ca, because whoever has the disk could open
the CA's key of before.";

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
    /// Replace the key under which the servers keep the cluster's secrets.
    #[command(after_help = SEALING_EXAMPLES)]
    RotateSealingKey(RotateSealingKey),
}

/// `cluster rotate-sealing-key`.
#[derive(Debug, Args)]
pub struct RotateSealingKey {
    /// Only show how far a replacement is, and which servers hold it back.
    #[arg(long, conflicts_with_all = ["anew", "yes", "detach"])]
    pub status: bool,
    /// Begin again with another key, while it is being replaced.
    #[arg(long)]
    pub anew: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Do not wait until it is over.
    #[arg(long)]
    pub detach: bool,
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
