//! `apps`, `databases`, `projects`: what is done to one workload by name.

use clap::{Args, Subcommand};

/// `databases`, `projects`.
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
