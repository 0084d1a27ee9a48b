//! The words of the command line.

mod access;
mod cluster;
mod identity;
mod moves;
mod nouns;
mod volumes;
mod workloads;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::out::{Color, Format};

pub use access::{AbilityName, Audit, AuditCommand, Since, Tokens, TokensCommand, Which};
pub use cluster::{Cluster, ClusterCommand, RotateCa, RotateSealingKey};
pub use identity::{Reenroll, RevokeCert};
pub use moves::{Drain, Lost, Move, Moves, Placement};
pub use nouns::{Ctx, CtxCommand, Nodes, NodesAdd, NodesCommand, NodesList, Servers, ServersCommand};
pub use volumes::Volumes;
pub use workloads::{Apps, AppsCommand, Databases, DatabasesCommand, Workloads, WorkloadsCommand};

/// Operates a Caravanserai cluster. Any server answers; give several with --server and it goes on when one is down.
#[derive(Debug, Parser)]
#[command(name = "caractrl", version, propagate_version = true, disable_help_subcommand = true)]
#[command(after_help = AFTER)]
pub struct Cli {
    /// Valid before and after the command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER: &str = "\
Try it with nothing installed: caractrl dev

Access, first found wins: flags, then CARA_SERVERS, CARA_TOKEN, CARA_TOKEN_FILE, CARA_CA_FINGERPRINT, CARA_CONTEXT,
then the current context (caractrl ctx).

Exit codes: 0 ok, 1 other, 2 usage or bad input, 3 not found, 4 conflict, 5 not allowed, 6 unreachable or no quorum,
7 the operation failed (a move that was rolled back, a drain that leaves something behind), 8 time is over and the
operation goes on, 130 detached.";

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Addresses of servers (https://HOST:PORT); repeat it or give a comma list [env: CARA_SERVERS].
    #[arg(long, global = true, value_name = "URL", help_heading = "Access")]
    pub server: Vec<String>,
    /// API token [env: CARA_TOKEN, CARA_TOKEN_FILE].
    #[arg(long, global = true, help_heading = "Access", hide_env_values = true)]
    pub token: Option<String>,
    /// SHA-256 of the cluster's CA certificate, hex; only servers of that CA are trusted [env: CARA_CA_FINGERPRINT].
    #[arg(long, global = true, value_name = "HEX", help_heading = "Access")]
    pub ca_fingerprint: Option<String>,
    /// A saved cluster instead of the current one [env: CARA_CONTEXT].
    #[arg(long, global = true, value_name = "NAME", help_heading = "Access")]
    pub context: Option<String>,
    /// Read from one server's memory, also without a quorum; the answer may be old and says how old.
    #[arg(long, global = true, help_heading = "Access")]
    pub stale: bool,
    /// How long to wait: for an answer (default 20s), and where a command waits for a result (default 5m).
    #[arg(long, global = true, value_name = "TIME", value_parser = duration, help_heading = "Access")]
    pub timeout: Option<Duration>,
    /// Output format.
    #[arg(short, long, global = true, value_enum, default_value_t, help_heading = "Output")]
    pub output: Format,
    /// When to use colour; NO_COLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = "Output")]
    pub color: Color,
    /// Tables without their header.
    #[arg(long, global = true, help_heading = "Output")]
    pub no_headers: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create or change objects from YAML or JSON files.
    Apply(Apply),
    /// List objects, or show one: nodes, apps, projects, databases, workloads, servers, tokens, join-tokens.
    Get(Get),
    /// Show everything about one object.
    Describe(Target),
    /// Delete objects, and wait until they are gone.
    Delete(Delete),
    /// Print what a workload's container writes.
    Logs(Logs),
    /// Nodes: the machines that run containers.
    #[command(visible_alias = "node")]
    Nodes(Nodes),
    /// Apps: workloads of one container.
    #[command(visible_alias = "app")]
    Apps(Apps),
    /// Databases.
    #[command(visible_aliases = ["database", "db"])]
    Databases(Databases),
    /// Projects: workloads of several containers on one node.
    #[command(visible_aliases = ["project", "pj"])]
    Projects(Workloads),
    /// Servers: the members of the cluster, and what it can still lose.
    #[command(visible_alias = "server")]
    Servers(Servers),
    /// API tokens: who may call the API, and what they may touch.
    #[command(visible_alias = "token")]
    Tokens(Tokens),
    /// The audit: who changed what, when and from where.
    Audit(Audit),
    /// What concerns the whole cluster: its CA and its sealing key.
    Cluster(Cluster),
    /// Saved clusters.
    Ctx(Ctx),
    /// Print a completion script for a shell.
    Completion(Completion),
    /// Print the version.
    Version,
    /// Explain an error code, or what a manifest of a kind looks like.
    Explain(Explain),
    /// A whole cluster on this machine: three servers, two agents, no root, no Docker.
    Dev(Dev),
}

/// `apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// File, folder (its *.yaml, *.yml, *.json), or - for stdin; repeatable.
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Wait until the workloads run.
    #[arg(long)]
    pub wait: bool,
    /// `client`: check the files and send nothing.
    #[arg(long, value_enum, value_name = "WHERE")]
    pub dry_run: Option<DryRun>,
}

/// `--dry-run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Check the files here; no server is asked.
    Client,
}

/// `get`.
#[derive(Debug, Args)]
pub struct Get {
    /// Kind, singular, plural or short (no, app, pj, db); also KIND/NAME.
    pub kind: String,
    /// Only this object.
    pub name: Option<String>,
    /// Go on and print each change.
    #[arg(short, long)]
    pub watch: bool,
}

/// A kind and a name.
#[derive(Debug, Args)]
pub struct Target {
    /// Kind, or KIND/NAME.
    pub kind: String,
    /// Name.
    pub name: Option<String>,
}

/// `delete`.
#[derive(Debug, Args)]
pub struct Delete {
    /// Kind, or KIND/NAME.
    #[arg(required_unless_present = "filename")]
    pub kind: Option<String>,
    /// Names.
    pub names: Vec<String>,
    /// Delete what these files describe, last first.
    #[arg(short, long, value_name = "FILE", conflicts_with = "kind")]
    pub filename: Vec<PathBuf>,
    /// Forget a workload at once, without its node's proof that it stopped; for nodes that are lost.
    #[arg(long)]
    pub force: bool,
    /// Return as soon as the deletion is accepted.
    #[arg(long, conflicts_with = "wait")]
    pub detach: bool,
    /// Wait until the object is gone (the default).
    #[arg(long)]
    pub wait: bool,
    /// Do not ask before a node is deleted.
    #[arg(long)]
    pub yes: bool,
}

/// `logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// WORKLOAD, WORKLOAD/SERVICE, or with the kind in front: app/WORKLOAD.
    pub target: String,
    /// Go on as more is written.
    #[arg(short, long)]
    pub follow: bool,
    /// Begin with the last N lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tail: Option<u32>,
    /// Put the time in front of each line.
    #[arg(long)]
    pub timestamps: bool,
}

/// `completion`.
#[derive(Debug, Args)]
pub struct Completion {
    /// Which shell.
    #[arg(value_enum)]
    pub shell: ShellName,
}

/// Shells with completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// GNU bash.
    Bash,
    /// Z shell.
    Zsh,
    /// Fish.
    Fish,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The word in error[...], or a kind (app, project, database, node): an example of its manifest.
    pub code: String,
}

/// `dev`.
#[derive(Debug, Clone, Args)]
pub struct Dev {
    /// Keep data and logs in this folder; it must be empty or new. Otherwise a temporary one, removed at the end.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Servers: 1, 3 or 5.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub servers: u8,
    /// Agents.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=20))]
    pub agents: u8,
    /// Where the agents run containers.
    #[arg(long, default_value = "memory", value_parser = ["memory", "docker"])]
    pub runtime: String,
    /// End as soon as everything is ready (for tests).
    #[arg(long)]
    pub exit_after_ready: bool,
}

/// `500ms`, `10s`, `5m`, `1h`, `1h30m`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u32>().map(|s| Duration::from_secs(u64::from(s)));
    let parsed = seconds.ok().or_else(|| text.parse::<jiff::SignedDuration>().ok()?.try_into().ok());
    match parsed {
        Some(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("write a time such as 30s, 5m or 1h".to_owned()),
    }
}

/// Whole seconds, written as [`duration`]s.
fn seconds(text: &str) -> Result<u64, String> {
    let duration = duration(text)?;
    match duration.subsec_nanos() {
        0 => Ok(duration.as_secs()),
        _ => Err("write whole seconds, such as 3s or 5m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_words_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_as_people_write_them() {
        for (text, ms) in [("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("1h30m", 5_400_000), ("20", 20_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "-5s", "0s", "soon", "0"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!((seconds("5m"), seconds("3")), (Ok(300), Ok(3)));
        assert!(seconds("500ms").is_err() && seconds("1.5s").is_err());
    }
}
