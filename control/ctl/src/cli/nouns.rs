//! `nodes`, `servers`, `ctx`: nouns with verbs of their own.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{Drain, Lost, Move, Moves, Placement, Reenroll, RevokeCert, Volumes, duration};

/// `nodes`.
#[derive(Debug, Args)]
pub struct Nodes {
    /// List when nothing is said.
    #[command(subcommand)]
    pub command: Option<NodesCommand>,
}

/// `nodes ...`.
#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// List nodes.
    List(NodesList),
    /// Show one node.
    Get {
        /// Name or id.
        node: String,
    },
    /// Print the commands that add a node, with a join token inside.
    Add(NodesAdd),
    /// Print a join token alone.
    JoinToken {
        /// Only a node of this name may join with it.
        #[arg(long)]
        name: Option<String>,
        /// How long it is valid (1 minute to 1 day; default 15m).
        #[arg(long, value_name = "TIME", value_parser = duration)]
        ttl: Option<Duration>,
        /// Instead of making one, revoke this one.
        #[arg(long, value_name = "ID", conflicts_with_all = ["name", "ttl"])]
        revoke: Option<String>,
    },
    /// Take no new workloads; what runs goes on.
    Cordon {
        /// Name or id.
        node: String,
    },
    /// Take workloads again.
    Uncordon {
        /// Name or id.
        node: String,
    },
    /// Show labels, or change them: K=V sets, K- removes.
    Labels {
        /// Name or id.
        node: String,
        /// Changes.
        changes: Vec<String>,
    },
    /// Say which kinds of workloads a node takes; what isn't said stays.
    Workloads {
        /// Name or id.
        node: String,
        /// Apps and projects.
        #[arg(long, action = clap::ArgAction::Set, value_name = "BOOL")]
        accepts_app: Option<bool>,
        /// Databases.
        #[arg(long, action = clap::ArgAction::Set, value_name = "BOOL")]
        accepts_database: Option<bool>,
        /// Image builds.
        #[arg(long, action = clap::ArgAction::Set, value_name = "BOOL")]
        accepts_build: Option<bool>,
    },
    /// Remove a node from the cluster. It must be empty.
    Delete {
        /// Name or id.
        node: String,
        /// Do not ask for the name.
        #[arg(long)]
        yes: bool,
    },
    /// Take a workload to another node, each step checked before the next.
    Move(Move),
    /// List moves, or show one with its steps.
    Moves(Moves),
    /// Take a running move back: the workload stays where it was.
    CancelMove {
        /// Id of the move.
        id: String,
    },
    /// Empty a node: move everything away, one workload after the other.
    Drain(Drain),
    /// The newest 20 drains of a node.
    Drains {
        /// Name or id.
        node: String,
        /// Follow the one that runs to its end.
        #[arg(short, long)]
        follow: bool,
    },
    /// Stop a running drain after the move that is under way; the node stays cordoned.
    CancelDrain {
        /// Id of the drain.
        id: String,
    },
    /// Give up a node that never comes back, with the data that only it has.
    Lost(Lost),
    /// Show where a workload is and may be, or change the labels that it needs.
    Placement(Placement),
    /// Bring a node back whose identity is lost, expired or revoked: prints the one command to run on its machine.
    Reenroll(Reenroll),
    /// Shut a node out: its session ends, its certificate is not accepted any more.
    RevokeCert(RevokeCert),
    /// Volumes that the node keeps in quarantine: copies that no longer count. Lists them, or removes one.
    Volumes(Volumes),
    /// Whether it is heard and ready, since when, and what to do if not.
    #[command(after_help = "Example:\n  caractrl nodes health rack7-n2")]
    Health {
        /// Name or id.
        node: String,
    },
    /// Show or say where a node stands, in words of your own.
    #[command(
        after_help = "Examples:\n  caractrl nodes region rack7-n2 eu-west\n  caractrl nodes region rack7-n2 --clear"
    )]
    Region {
        /// Name or id.
        node: String,
        /// Its new region; shows the present one when it is left out.
        region: Option<String>,
        /// Remove it.
        #[arg(long, conflicts_with = "region")]
        clear: bool,
    },
    /// When it was online and offline, and why.
    Events {
        /// Name or id.
        node: String,
        /// At most this many, the newest.
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
}

/// `nodes list`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Example:\n  caractrl nodes list --q rack7 --limit 20 --offset 40")]
pub struct NodesList {
    /// Only nodes with this in their name.
    #[arg(long, value_name = "TEXT")]
    pub q: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// After so many.
    #[arg(long, value_name = "N")]
    pub offset: Option<u32>,
}

/// `nodes add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  caractrl nodes add --name rack7-n2
  caractrl nodes add --name rack7-n2 --advertise 10.0.0.21 --ttl 1h")]
pub struct NodesAdd {
    /// Only a node of this name may join with it; without one the machine's host name is asked for.
    #[arg(long)]
    pub name: Option<String>,
    /// Host or IP address where other nodes reach it; without one they must be able to resolve its host name.
    #[arg(long, value_name = "ADDRESS")]
    pub advertise: Option<String>,
    /// How long the token is valid (1 minute to 1 day; default 15m).
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub ttl: Option<Duration>,
    /// HOST:PORT under which the machine reaches a server, when that is not how the servers know themselves.
    #[arg(long, value_name = "HOST:PORT")]
    pub control_plane_addr: Option<String>,
}

/// `servers`.
#[derive(Debug, Args)]
pub struct Servers {
    /// List when nothing is said.
    #[command(subcommand)]
    pub command: Option<ServersCommand>,
}

/// `servers ...`.
#[derive(Debug, Subcommand)]
pub enum ServersCommand {
    /// Roles, terms, lag, and what can still be lost.
    List,
    /// Print the commands that add a server.
    JoinToken {
        /// How long the token is valid (1 minute to 1 day; default 15m).
        #[arg(long, value_name = "TIME", value_parser = duration)]
        ttl: Option<Duration>,
    },
    /// Remove a server from the cluster for good.
    Remove {
        /// Id or name.
        member: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// `ctx`.
#[derive(Debug, Args)]
pub struct Ctx {
    /// List when nothing is said.
    #[command(subcommand)]
    pub command: Option<CtxCommand>,
}

/// `ctx ...`.
#[derive(Debug, Subcommand)]
pub enum CtxCommand {
    /// List contexts; the current one has a star.
    List,
    /// Make a context the current one.
    Use {
        /// Its name.
        name: String,
    },
    /// Save or change a context from --server, --token and --ca-fingerprint (or their variables), and use it.
    Set {
        /// Its name.
        name: String,
    },
    /// Forget a context.
    Remove {
        /// Its name.
        name: String,
    },
}
