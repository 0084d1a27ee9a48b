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
    List,
    /// Show one node.
    Get {
        /// Name or id.
        node: String,
    },
    /// Print the command that adds a node, with a join token inside.
    Add {
        /// Only a node of this name may join with it.
        #[arg(long)]
        name: Option<String>,
        /// How long the token is valid (1 minute to 1 day; default 15m).
        #[arg(long, value_name = "TIME", value_parser = duration)]
        ttl: Option<Duration>,
    },
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
    /// When it was online and offline, and why.
    Events {
        /// Name or id.
        node: String,
        /// At most this many, the newest.
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
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
