//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use caractrl::client::Access;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::agents::{Options, Size};
use crate::kv::{self, Pace, Wire};
use crate::load::Loads;
use crate::measure::require::Requirement;

/// Agents of one process; several processes where one's share of a core is not enough.
const AGENTS_PER_PROCESS: usize = 2_500;
/// Nodes of a growth curve: a hundred times what a cluster lets in.
const NODES_MAX: usize = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  A thousand agents on three servers that are started for it, and what a leader's death does to them:
    cara-bench agents --agents 1000 --servers 3 --failover
  The same as a test, with a page to look at:
    cara-bench agents --agents 1000 --failover --require false_offline=0 --require all_back_s=20 --html report.html
  How far from etcd and from the disk; then with etcd over TLS, as ours always is:
    cara-bench kv --vs etcd --require write_1000=4 --require recovery=0.5
    cara-bench kv --vs etcd-tls
  How long a server with many entries needs to come back, and whether an hour of full load makes anybody call an election:
    cara-bench kv --clients 1 --readers 0 --paced 0 --entries 350000 --kills 3
    cara-bench kv --clients 1000 --readers 0 --paced 0 --seconds 3600 --rounds 1 --kills 0 --require spurious_elections=0

Exit status: 0 all that was required was reached; 1 it was not; 2 it could not be measured.";

/// Measures a Caravanserai cluster.
#[derive(Debug, Parser)]
#[command(name = "cara-bench", version, after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Thousands of agents: enrolment, heartbeats, memory, and a failover.
    Agents(AgentsArgs),
    /// Durable writes and linearizable reads, and the time from a leader's death to the next write; beside etcd if wanted.
    Kv(KvArgs),
    /// What a server's work and memory cost as the fleet grows, and in which order.
    Growth(GrowthArgs),
    /// One size of `growth`, in a process of its own.
    #[command(hide = true)]
    GrowthOne { nodes: usize },
    /// One process with many agents, for `agents`.
    #[command(hide = true)]
    AgentsWorker,
}

/// What every measurement takes.
#[derive(Debug, Args)]
pub struct Common {
    /// NAME=VALUE: the run fails when this figure is worse. Can be repeated; a wrong name lists all.
    #[arg(long)]
    pub require: Vec<Requirement>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Write a page with plots to this file.
    #[arg(long)]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// How many agents.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub agents: u32,
    /// How many servers to start.
    #[arg(long, default_value_t = 3, conflicts_with = "server", value_parser = clap::value_parser!(u8).range(1..=7))]
    pub servers: u8,
    /// Use the cluster of these servers, host:port, instead of starting one. Can be repeated, or a comma list.
    #[arg(long, value_delimiter = ',', requires = "token", requires = "ca_fingerprint", conflicts_with = "failover")]
    pub server: Vec<String>,
    /// API token with all abilities, for --server.
    #[arg(long, env = "CARA_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// SHA-256 of the cluster's CA certificate, hex, for --server.
    #[arg(long, env = "CARA_CA_FINGERPRINT")]
    pub ca_fingerprint: Option<String>,
    /// Seconds between two heartbeats of an agent, for servers that are started.
    #[arg(long, default_value_t = 10)]
    pub heartbeat: u64,
    /// Seconds to look on while nothing happens.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// Then restart so many agents a second.
    #[arg(long, default_value_t = 0)]
    pub churn: u32,
    /// Then apply so many manifests a second.
    #[arg(long, default_value_t = 0)]
    pub apply_rate: u32,
    /// Then let so many watchers see a change.
    #[arg(long, default_value_t = 0)]
    pub watchers: u32,
    /// Then create and place so many workloads, as fast as they are taken.
    #[arg(long, default_value_t = 0)]
    pub placements: u32,
    /// Then move so many workloads from node to node.
    #[arg(long, default_value_t = 0)]
    pub moves: u32,
    /// At last kill the leader with SIGKILL and see how all come back.
    #[arg(long)]
    pub failover: bool,
    /// Processes that the agents are spread over [default: one for each 2,500].
    #[arg(long)]
    pub processes: Option<usize>,
    /// Agents that enrol at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub at_once: u32,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct GrowthArgs {
    /// Numbers of nodes.
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000,100000", value_parser = nodes)]
    pub nodes: Vec<usize>,
    #[command(flatten)]
    pub common: Common,
}

/// A number of nodes.
fn nodes(text: &str) -> Result<usize, String> {
    let number: usize = text.trim().parse().map_err(|_| format!("{text:?} is no number"))?;
    (1..=NODES_MAX).contains(&number).then_some(number).ok_or_else(|| format!("from 1 to {NODES_MAX}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// As many processes, on the same disk, in turns, over plain TCP. deploy/setup/etcd.sh installs it.
    Etcd,
    /// The same over TLS: with certificates for its clients, who bring none as ours do, and mutual TLS among its servers.
    EtcdTls,
}

#[derive(Debug, Args)]
pub struct KvArgs {
    /// Whom to measure beside us.
    #[arg(long)]
    pub vs: Option<Peer>,
    /// How many servers to start, on each side.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=7))]
    pub servers: u8,
    /// Numbers of clients that write at a time, one load for each.
    #[arg(long, value_delimiter = ',', default_value = "1,64,256,1000", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: Vec<u32>,
    /// Clients that read at a time; 0 = no reads.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub readers: u32,
    /// Seconds of each turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Turns that count, of each side. As many follow as it takes for the peer to vary by at most 20 % over them, three times
    /// as many at most.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Then let writes come at so many percent of the best rate of the peer (ours without one); 0 = don't.
    #[arg(long, default_value_t = 70, value_parser = clap::value_parser!(u32).range(0..=200))]
    pub paced: u32,
    /// Then write so many entries on each side, before its memory is read and its leaders are killed.
    #[arg(long, default_value_t = 0)]
    pub entries: u64,
    /// How often each side's leader is killed.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub kills: u32,
    #[command(flatten)]
    pub common: Common,
}

impl KvArgs {
    /// What to do.
    pub fn options(&self) -> kv::Options {
        kv::Options {
            etcd: self.vs.map(|peer| match peer {
                Peer::Etcd => Wire::Plain,
                Peer::EtcdTls => Wire::Tls,
            }),
            clients: self.clients.iter().map(|clients| *clients as usize).collect(),
            readers: self.readers as usize,
            pace: Pace { length: Duration::from_secs(self.seconds), rounds: self.rounds as usize },
            paced: self.paced,
            entries: self.entries,
            // Whoever is alone has nobody to vote for.
            kills: if self.servers < 3 { 0 } else { self.kills as usize },
        }
    }
}

impl AgentsArgs {
    /// The user's cluster, if it is to be used.
    pub fn access(&self) -> Option<Access> {
        (!self.server.is_empty()).then(|| Access {
            servers: self.server.clone(),
            token: self.token.clone().unwrap_or_default(),
            ca_fingerprint: self.ca_fingerprint.clone().unwrap_or_default(),
        })
    }

    /// What to do.
    pub fn options(&self) -> Options {
        let agents = self.agents as usize;
        let processes = self.processes.unwrap_or(agents.div_ceil(AGENTS_PER_PROCESS)).clamp(1, 250);
        let size = Size { agents, processes, at_once: self.at_once as usize };
        let Self { churn, apply_rate, watchers, placements, moves, failover, .. } = *self;
        let steady = Duration::from_secs(self.seconds);
        let loads = Loads { churn, apply_rate, watchers, placements, moves, length: steady };
        Options { size, steady, loads, failover }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(words: &str) -> Result<AgentsArgs, clap::Error> {
        let words = ["cara-bench", "agents"].into_iter().chain(words.split_whitespace());
        match Cli::try_parse_from(words)?.command {
            Command::Agents(args) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn agents_are_spread_over_processes() {
        let processes = |words: &str| agents(words).expect(words).options().size.processes;
        assert_eq!(processes("--agents 10"), 1);
        assert_eq!(processes("--agents 10000"), 4);
        assert_eq!(processes("--agents 10000 --processes 2"), 2);
    }

    #[test]
    fn a_users_cluster_is_never_killed() {
        assert!(agents("--server a:1 --token t --ca-fingerprint f --failover").is_err());
        let given = agents("--server a:1,b:1 --token t --ca-fingerprint f").expect("complete");
        assert_eq!(given.access().map(|access| access.servers), Some(vec!["a:1".to_owned(), "b:1".to_owned()]));
    }

    #[test]
    fn an_unknown_figure_is_refused_before_anything_is_measured() {
        let error = agents("--require speed=1").expect_err("there is none").to_string();
        assert!(error.contains("there is no figure \"speed\""), "{error}");
    }
}
