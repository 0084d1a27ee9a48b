//! `tokens` and `audit`: who may call the API, and who changed what.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

const TOKENS: &str = "\
Examples:
  caractrl tokens create ci --ability write --scope workload:shop- --ttl 90d   # prints the token once
  caractrl tokens list
  caractrl tokens revoke ci

A token with scopes touches nothing else: node:NAME is one node with all that can be asked of it, workload:PREFIX the
workloads whose names begin so. Lists and watches show it what it may touch. No token can make one that may do more than
itself, or lasts longer. If the last root token is lost: cara-server recover-token, on a server's machine.";

/// `tokens`.
#[derive(Debug, Args)]
#[command(after_help = TOKENS)]
pub struct Tokens {
    /// List when nothing is said.
    #[command(subcommand)]
    pub command: Option<TokensCommand>,
}

/// `tokens ...`.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// List API tokens, with when each was used last.
    List,
    /// Make an API token and print it, this once.
    Create {
        /// What people call it.
        name: String,
        /// What it may do; each includes the ones before.
        #[arg(long, value_enum, default_value_t)]
        ability: AbilityName,
        /// What it may touch: node:NAME or workload:PREFIX; repeatable. Without one: everything.
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// How long it is valid, for example 12h or 90d. Without one: until it is revoked.
        #[arg(long, value_name = "TIME", value_parser = days)]
        ttl: Option<Duration>,
    },
    /// Take an API token back. It is refused from then on, and what it follows ends.
    Revoke {
        /// Id, or name if only one has it.
        // Not called "token": that is the caller's own, of every command.
        #[arg(value_name = "TOKEN")]
        which: String,
        /// Forget one that is revoked or expired, so that it is not listed any more.
        #[arg(long)]
        forget: bool,
    },
}

/// What a token may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum AbilityName {
    /// See everything but secrets.
    #[default]
    Read,
    /// Change workloads, cordon and label nodes.
    Write,
    /// Make tokens, admit and remove machines, change the cluster.
    Root,
}

const AUDIT: &str = "\
Examples:
  caractrl audit --since 24h --actor ci
  caractrl audit --subject node/w1 -o json
  caractrl audit export --since 2026-01-01T00:00:00Z > audit.ndjson
  caractrl audit export --after 123456 >> audit.ndjson        # goes on behind the last revision of the file

The cluster keeps the newest 10000 records; export them in time to keep more.";

/// `audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT, args_conflicts_with_subcommands = true)]
pub struct Audit {
    /// Print when nothing is said.
    #[command(subcommand)]
    pub command: Option<AuditCommand>,
    /// Which records.
    #[command(flatten)]
    pub which: Which,
    /// At most so many, the newest.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Only records before this revision.
    #[arg(long, value_name = "REVISION")]
    pub before: Option<u64>,
}

/// Which records of the audit.
#[derive(Debug, Clone, Default, Args)]
pub struct Which {
    /// By whom: a token's id or name, server:ID, leader.
    #[arg(long, default_value_t, value_name = "WHO", hide_default_value = true)]
    pub actor: String,
    /// About what: node/NAME, workload/NAME, a kind, a name or an id.
    #[arg(long, default_value_t, value_name = "WHAT", hide_default_value = true)]
    pub subject: String,
    /// Since when: a time like 2026-01-31T12:00:00Z, or how long ago, like 24h or 7d.
    #[arg(long, value_name = "WHEN", value_parser = Since::parse)]
    pub since: Option<Since>,
}

/// `audit ...`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Print all records, oldest first, one JSON object a line.
    Export {
        /// Which records.
        #[command(flatten)]
        which: Which,
        /// Only records after this revision.
        #[arg(long, value_name = "REVISION", default_value_t = 0)]
        after: u64,
    },
}

/// A point in time, as people say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// This time.
    At(jiff::Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl Since {
    fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(at) => Ok(Self::At(at)),
            Err(_) => {
                days(text).map(Self::Ago).map_err(|_| "write a time like 2026-01-31T12:00:00Z, or 24h".to_owned())
            }
        }
    }
}

/// As other durations, and days: `90d`.
fn days(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) if days > 0 => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        Some(_) => Err("write how many days, for example 90d".to_owned()),
        None => super::duration(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans_are_read() {
        assert_eq!(days("90d"), Ok(Duration::from_secs(7_776_000)));
        assert_eq!(days("12h"), Ok(Duration::from_secs(43_200)));
        assert!(days("0d").is_err() && days("d").is_err() && days("soon").is_err());
        assert_eq!(Since::parse("24h"), Ok(Since::Ago(Duration::from_secs(86_400))));
        assert!(matches!(Since::parse("2026-01-31T12:00:00Z"), Ok(Since::At(_))));
        assert!(Since::parse("yesterday").is_err());
    }
}
