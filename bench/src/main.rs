//! `cara-bench`: sizes a cluster, and says how far it is from others and from the disk.
//!
//! ```text
//!   agents   thousands of agents over mutual TLS: enrolment, heartbeats, memory, a failover
//!   growth   what a server's work and memory cost from 100 to 100,000 nodes
//!   kv       durable writes and linearizable reads, beside etcd on the same disk
//! ```
//! It measures real processes: those of an existing cluster (`--server`), or servers that it starts from the binaries beside
//! it. All of them share one machine with the load itself, so ratios are worth more than figures. Measure release builds
//! (`make bench`): development builds check all invariants after each entry.

mod agents;
mod cli;
mod connection;
mod growth;
mod kv;
mod load;
mod measure;
mod progress;
mod report;
mod target;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{AgentsArgs, Cli, Command, Common, KvArgs};
use crate::report::Report;
use crate::target::Target;

// The load shares the machine with what it measures, of both sides.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// It could not be measured.
const BROKEN: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Whatever was started is killed when its handle goes, and on a signal all handles go.
    let ended = tokio::select! {
        biased;
        () = interrupted() => Err(anyhow::anyhow!("interrupted")),
        ended = run(command) => ended,
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cara-bench: {error:#}");
            ExitCode::from(BROKEN)
        }
    }
}

async fn interrupted() {
    let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = int.recv() => {}
        _ = term.recv() => {}
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let env = Env::real();
    match command {
        Command::Agents(args) => measure_agents(&env, &args).await,
        Command::Kv(args) => measure_kv(&env, &args).await,
        Command::Growth(args) => {
            let mut report = Report::begin();
            growth::run(&args.nodes, &mut report).await?;
            finish(report, &args.common)
        }
        Command::GrowthOne { nodes } => {
            println!("{}", serde_json::to_string(&growth::measure_one(&env, nodes))?);
            Ok(ExitCode::SUCCESS)
        }
        Command::AgentsWorker => agents::work().await.map(|()| ExitCode::SUCCESS),
    }
}

async fn measure_agents(env: &Env, args: &AgentsArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::begin();
    let target = match args.access() {
        Some(access) => Target::given(env, access),
        None => Target::start(env, args.servers, Duration::from_secs(args.heartbeat), progress::say).await?,
    };
    agents::run(env, target, &args.options(), &mut report).await?;
    finish(report, &args.common)
}

async fn measure_kv(env: &Env, args: &KvArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::begin();
    let target = Target::start(env, args.servers, Duration::from_secs(15), progress::say).await?;
    kv::run(env, target, &args.options(), &mut report).await?;
    finish(report, &args.common)
}

/// Shows the report, and says by the exit code whether all was reached.
fn finish(mut report: Report, common: &Common) -> anyhow::Result<ExitCode> {
    report.end(&common.require);
    if let Some(file) = &common.html {
        std::fs::write(file, report::page(&report)).with_context(|| format!("can't write {}", file.display()))?;
        progress::say(&format!("the page is in {}", file.display()));
    }
    if common.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report::text(&report));
    }
    Ok(if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
