//! `cara-bench`: what a cluster does per second, and how long it is without a leader when one dies.
//!
//! It measures real servers: those of an existing cluster (`writes --server ...`), or three that it starts on this
//! machine from the binaries beside it. There all share one machine's cores and disk with the load itself, so read those
//! numbers as a lower bound. Measure release builds (`make bench`): development builds check all invariants after each
//! entry.

mod connection;
mod failover;
mod writes;

use std::process::ExitCode;
use std::time::Duration;

use cara_env::Env;
use caractrl::client::Access;
use caractrl::dev::Binaries;
use caractrl::dev::cluster::{Cluster, Plan};
use clap::{Args, Parser, Subcommand};

/// Measures a Caravanserai cluster.
#[derive(Debug, Parser)]
#[command(name = "cara-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Acknowledged writes per second, through the API of an existing cluster.
    Writes(Writes),
    /// Time from the leader's death to the next acknowledged write, on three servers started for it.
    Failover {
        /// How often the leader dies.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        runs: u32,
    },
    /// Both, on three servers started for it: writes with 1 and 256 clients, then 10 failovers.
    All,
}

#[derive(Debug, Args)]
struct Writes {
    /// Servers, host:port; repeat it or give a comma list. Clients are spread over them.
    #[arg(long, required = true, value_delimiter = ',', env = "CARA_SERVERS")]
    server: Vec<String>,
    /// API token with the ability to write.
    #[arg(long, env = "CARA_TOKEN", hide_env_values = true)]
    token: String,
    /// SHA-256 of the cluster's CA certificate, hex.
    #[arg(long, env = "CARA_CA_FINGERPRINT")]
    ca_fingerprint: String,
    /// Clients that write at the same time, one connection and one node each.
    #[arg(long, default_value_t = 1)]
    clients: usize,
    /// How long to write.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cara-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    let env = Env::real();
    match command {
        Command::Writes(args) => {
            let access = Access { servers: args.server, token: args.token, ca_fingerprint: args.ca_fingerprint };
            println!("{}", writes::run(&env, &access, args.clients, Duration::from_secs(args.seconds)).await?);
        }
        Command::Failover { runs } => {
            let mut cluster = boot(&env).await?;
            println!("{}", failover::run(&env, &mut cluster, runs, |line| eprintln!("{line}")).await?);
            cluster.stop().await;
        }
        Command::All => {
            let mut cluster = boot(&env).await?;
            for clients in [1, 256] {
                println!("{}", writes::run(&env, cluster.access(), clients, Duration::from_secs(10)).await?);
            }
            println!("{}", failover::run(&env, &mut cluster, 10, |line| eprintln!("{line}")).await?);
            cluster.stop().await;
        }
    }
    Ok(())
}

/// Three servers and no agents, gone when the program ends.
async fn boot(env: &Env) -> anyhow::Result<Cluster> {
    let binaries = Binaries::beside_this_program().map_err(anyhow::Error::msg)?;
    let plan = Plan { binaries, servers: 3, agents: 0, runtime: "memory".to_owned(), folder: None };
    let mut cluster = Cluster::new(env, plan)?;
    cluster.boot(&|line| eprintln!("{line}")).await?;
    Ok(cluster)
}
