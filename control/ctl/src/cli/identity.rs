//! `nodes reenroll` and `nodes revoke-cert`: a node's identity.

use clap::Args;

const REENROLL: &str = "\
Examples:
  caractrl nodes reenroll w1                  # prints the one command to run on w1's machine
  caractrl nodes reenroll w1 -o json

For a node whose certificate has expired or is revoked, whose disk was replaced, or whose machine was. It keeps its id, labels,
workloads and history. The command works beside a running agent, which takes the new identity up by itself; on a new disk, start
the agent after it. What was that node before is refused from then on.";

const REVOKE: &str = "\
Examples:
  caractrl nodes revoke-cert w1
  caractrl nodes revoke-cert w1 --yes

The node's session ends on every server, and no certificate of it is accepted any more. Its workloads keep running, unmanaged.
caractrl nodes reenroll brings it back.";

/// `nodes reenroll`.
#[derive(Debug, Args)]
#[command(after_help = REENROLL)]
pub struct Reenroll {
    /// Name or id.
    pub node: String,
}

/// `nodes revoke-cert`.
#[derive(Debug, Args)]
#[command(after_help = REVOKE)]
pub struct RevokeCert {
    /// Name or id.
    pub node: String,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}
