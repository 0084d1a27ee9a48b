//! Words about moving: `nodes move`, `moves`, `drain`, `drains`, `lost`, `placement`.

use clap::{ArgAction, Args};

use super::seconds;

const MOVE_EXAMPLES: &str = "\
Examples:
  caractrl nodes move app web                      # the scheduler chooses the node
  caractrl nodes move database ledger --to w2      # shows the plan, asks, follows it
  caractrl nodes move database ledger --dry-run    # the plan and nothing else
  caractrl nodes move app web --to w2 --yes --detach

It is followed to its end, however long that takes; --timeout and Ctrl-C end the following, never the move.
Exit codes: 0 moved, 7 rolled back or failed, 8 --timeout is over, 130 detached by Ctrl-C.";

/// `nodes move`.
#[derive(Debug, Args)]
#[command(after_help = MOVE_EXAMPLES)]
pub struct Move {
    /// app, database or project; also KIND/NAME.
    pub kind: String,
    /// Name of the workload.
    pub name: Option<String>,
    /// Node that shall have it, name or id; otherwise the scheduler chooses.
    #[arg(long, value_name = "NODE")]
    pub to: Option<String>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Return as soon as the move has begun.
    #[arg(long)]
    pub detach: bool,
    /// How long the old copy may take to stop, and the new one to become healthy (default 5m).
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub verify_timeout: Option<u64>,
    /// Attempts at a step that fails, until the move is rolled back (default 5).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempts: Option<u32>,
    /// Between two attempts (default 3s).
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub interval: Option<u64>,
    /// How long the old copy of what has no state goes on after the switch, so that clients can follow (default 5s).
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub shutdown_delay: Option<u64>,
    /// Show the plan and change nothing.
    #[arg(long, conflicts_with_all = ["detach", "yes"])]
    pub dry_run: bool,
}

const MOVES_EXAMPLES: &str = "\
Examples:
  caractrl nodes moves                             # the newest 50
  caractrl nodes moves --kind app --status failed
  caractrl nodes moves ID                          # every step of one move
  caractrl nodes moves ID --follow                 # look on again after Ctrl-C";

/// `nodes moves`.
#[derive(Debug, Args)]
#[command(after_help = MOVES_EXAMPLES)]
pub struct Moves {
    /// Only this move, with all its steps.
    #[arg(conflicts_with_all = ["kind", "resource", "status", "limit"])]
    pub id: Option<String>,
    /// Only moves of apps, databases or projects.
    #[arg(long)]
    pub kind: Option<String>,
    /// Only moves of the workload of this name.
    #[arg(long, value_name = "NAME")]
    pub resource: Option<String>,
    /// Only moves in this state.
    #[arg(long, value_parser = ["running", "succeeded", "failed", "rolled_back"])]
    pub status: Option<String>,
    /// At most this many, the newest (default 50).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: Option<u32>,
    /// Follow it to its end.
    #[arg(short, long, requires = "id")]
    pub follow: bool,
}

const DRAIN_EXAMPLES: &str = "\
Examples:
  caractrl nodes drain w1                          # each workload to the node that suits it
  caractrl nodes drain w1 --target w2 --yes
  caractrl nodes drain w1 --dry-run                # what would go where, and what is blocked

The node is cordoned at once and stays so. Workloads move one after the other, databases first; the first move that
fails ends the drain. --timeout and Ctrl-C end the following, never the drain.
Exit codes: 0 empty, 7 something stays, 8 --timeout is over, 130 detached by Ctrl-C.";

/// `nodes drain`.
#[derive(Debug, Args)]
#[command(after_help = DRAIN_EXAMPLES)]
pub struct Drain {
    /// Name or id.
    pub node: String,
    /// Everything goes to this node; otherwise each workload to the one that suits it.
    #[arg(long, value_name = "NODE")]
    pub target: Option<String>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Return as soon as the drain has begun.
    #[arg(long, conflicts_with = "wait")]
    pub detach: bool,
    /// Follow it to its end (the default).
    #[arg(long)]
    pub wait: bool,
    /// Show the plan and change nothing.
    #[arg(long, conflicts_with_all = ["detach", "yes", "wait"])]
    pub dry_run: bool,
}

const LOST_EXAMPLES: &str = "\
Examples:
  caractrl nodes lost w3                                   # says what would be given up, changes nothing
  caractrl nodes lost w3 --confirm --reason 'disk died'

Only for a machine that never comes back: its workloads with data begin anew elsewhere, with empty volumes. If it comes
back after all, what it has is put in quarantine: caractrl nodes volumes w3.";

/// `nodes lost`.
#[derive(Debug, Args)]
#[command(after_help = LOST_EXAMPLES)]
pub struct Lost {
    /// Name or id; it must be offline.
    pub node: String,
    /// Give up the data that only this node has.
    #[arg(long, action = ArgAction::SetTrue)]
    pub confirm: bool,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT", requires = "confirm")]
    pub reason: Option<String>,
}

const PLACEMENT_EXAMPLES: &str = "\
Examples:
  caractrl nodes placement app web                 # where it is, where it may be, and why not elsewhere
  caractrl nodes placement app web disk=ssd zone-  # needs disk=ssd, no longer any zone";

/// `nodes placement`.
#[derive(Debug, Args)]
#[command(after_help = PLACEMENT_EXAMPLES)]
pub struct Placement {
    /// app, database or project.
    pub kind: String,
    /// Name of the workload.
    pub name: String,
    /// Labels that its node must have: K=V sets, K- removes. This moves nothing.
    pub changes: Vec<String>,
}
