//! `apps`, `databases`, `projects`: what is done to one workload by name.

use clap::{Args, Subcommand};

/// `projects`.
#[derive(Debug, Args)]
pub struct Workloads {
    /// List when nothing is said.
    #[command(subcommand)]
    pub command: Option<WorkloadsCommand>,
}

/// `databases ...`, `projects ...`.
#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    /// List them.
    List,
    /// Show one.
    Get {
        /// Name.
        name: String,
    },
    /// Stop its containers and keep its volumes, until it is resumed.
    Suspend {
        /// Name.
        name: String,
    },
    /// Start it again after a suspension.
    Resume {
        /// Name.
        name: String,
    },
    /// Stop its containers and start them anew, on the same node.
    Restart {
        /// Name.
        name: String,
    },
}

/// `databases`.
#[derive(Debug, Args)]
pub struct Databases {
    /// List when nothing is said.
    #[command(subcommand)]
    pub command: Option<DatabasesCommand>,
}

const CONNECTION_EXAMPLES: &str = "\
Examples:
  caractrl databases connection ledger
  psql \"$(caractrl databases connection ledger --show-password -o name)\"

It needs a root token. `-o name` prints the URL alone.";

/// `databases ...`.
#[derive(Debug, Subcommand)]
pub enum DatabasesCommand {
    /// What all workloads have.
    #[command(flatten)]
    Common(WorkloadsCommand),
    /// Show where a database is reached: URL, host, port, user.
    #[command(after_help = CONNECTION_EXAMPLES)]
    Connection {
        /// Name of the database.
        name: String,
        /// Show the password too; otherwise *** stands for it.
        #[arg(long)]
        show_password: bool,
    },
}

/// `apps`.
#[derive(Debug, Args)]
pub struct Apps {
    /// List when nothing is said.
    #[command(subcommand)]
    pub command: Option<AppsCommand>,
}

const SET_NODE_EXAMPLES: &str = "\
Examples:
  caractrl apps set-node web w2
  caractrl apps set-node blog w2 --with-volumes --yes

`caractrl nodes move app NAME` does the same with a plan, live progress and downtime.";

/// `apps ...`.
#[derive(Debug, Subcommand)]
pub enum AppsCommand {
    /// What all workloads have.
    #[command(flatten)]
    Common(WorkloadsCommand),
    /// Put an app on a node.
    #[command(after_help = SET_NODE_EXAMPLES)]
    SetNode {
        /// Name of the app.
        name: String,
        /// Name or id of the node.
        node: String,
        /// Take its managed volumes along; the app stops for the last part of the copying.
        #[arg(long)]
        with_volumes: bool,
        /// Do not ask before an app with volumes is stopped.
        #[arg(long)]
        yes: bool,
    },
    /// Let the scheduler choose the app's node.
    ClearNode {
        /// Name of the app.
        name: String,
        /// Take its managed volumes along; the app stops for the last part of the copying.
        #[arg(long)]
        with_volumes: bool,
        /// Do not ask before an app with volumes is stopped.
        #[arg(long)]
        yes: bool,
    },
}
