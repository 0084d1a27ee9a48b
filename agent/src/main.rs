//! `cara-agent`: reads its options, takes the data folder for itself, and runs the agent until a signal ends it.

use std::fs::{File, TryLockError};
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cara_agent::runtime::docker::{DockerRuntime, HOST_DEFAULT};
use cara_agent::runtime::memory::MemoryRuntime;
use cara_agent::{Config, ContainerRuntime, DiskProbe, DiskSpace, VOLUME_LISTEN_DEFAULT};
use cara_env::Env;
use cara_transport::JoinToken;
use clap::{Parser, Subcommand, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

const EXAMPLES: &str = "\
Examples:
  Enrol this machine and run (the token comes from `caractrl nodes join-token`):
    cara-agent --token cara-join.eyJz... --name web-1 --advertise 10.0.0.21
  Run again later; the identity is in the data folder:
    cara-agent
  See first whether it would work; nothing is spent:
    cara-agent --preflight --token cara-join.eyJz... --name web-1 --advertise 10.0.0.21
  Bring a node back whose identity is lost, expired or revoked, beside a running agent or not (the whole command comes from
  `caractrl nodes reenroll NODE`):
    cara-agent reenroll --token cara-join.eyJz...
  Try it without Docker:
    cara-agent --data-dir ./n1 --name n1 --runtime memory --token cara-join.eyJz...

Containers keep running when the agent ends.";

/// The agent of a Caravanserai node: runs what the cluster gives to this machine.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: RunArgs,
    /// How log lines look; RUST_LOG chooses which
    #[arg(long, env = "CARA_LOG_FORMAT", value_enum, default_value_t = LogFormat::Pretty, global = true)]
    log_format: LogFormat,
}

#[derive(Subcommand)]
enum Verb {
    /// Get this node a new identity; a running agent takes it up by itself, another one at its next start
    Reenroll(ReenrollArgs),
}

#[derive(clap::Args)]
struct ReenrollArgs {
    /// Token from `caractrl nodes reenroll`
    #[arg(long, env = "CARA_JOIN_TOKEN", hide_env_values = true)]
    token: JoinToken,
    /// The node's data folder
    #[arg(long, env = "CARA_DATA_DIR", default_value = "/var/lib/cara-agent")]
    data_dir: PathBuf,
}

#[derive(clap::Args)]
struct RunArgs {
    /// Join token; needed once, as long as the data folder holds no identity
    #[arg(long, env = "CARA_JOIN_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Holds the node's identity, key and ledger
    #[arg(long, env = "CARA_DATA_DIR", default_value = "/var/lib/cara-agent")]
    data_dir: PathBuf,
    /// The node's name in the cluster [default: this machine's host name]
    #[arg(long, env = "CARA_NAME")]
    name: Option<String>,
    /// Host or IP address where other nodes reach this one [default: this machine's host name]
    #[arg(long, env = "CARA_ADVERTISE")]
    advertise: Option<String>,
    /// Where other agents are answered when volumes move from this node
    #[arg(long, env = "CARA_VOLUME_LISTEN", default_value = VOLUME_LISTEN_DEFAULT)]
    volume_listen: String,
    /// Where containers run; `auto` takes Docker if it answers, else memory
    #[arg(long, env = "CARA_RUNTIME", value_enum, default_value_t = Runtime::Auto)]
    runtime: Runtime,
    /// Docker's address
    #[arg(long, env = "DOCKER_HOST", default_value = HOST_DEFAULT)]
    docker_host: String,
    /// Longest wait between two attempts to reach a server, in seconds
    #[arg(long, env = "CARA_BACKOFF_MAX", default_value_t = 30)]
    backoff_max: u64,
    /// Try everything that joining needs, spend nothing, and end
    #[arg(long)]
    preflight: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Runtime {
    Docker,
    Memory,
    Auto,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Pretty,
    Json,
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let args = Args::parse();
    start_log(args.log_format);
    let ended = match args.verb {
        Some(Verb::Reenroll(args)) => reenroll(args).await,
        None => run(args.run).await,
    };
    match ended {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// What this machine calls itself.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

async fn reenroll(args: ReenrollArgs) -> anyhow::Result<()> {
    let env = Env::real();
    // Two of them would take turns with one key file. The running agent holds another lock and is not in the way.
    let _lock = lock(&args.data_dir, "reenrol.lock", "another `cara-agent reenroll` uses")?;
    let config = Config::new(&args.data_dir, host_name(), String::new());
    let node = cara_agent::reenroll(&config, &env, &args.token).await?;
    tracing::info!(%node, "this node has a new identity; a running agent takes it up within half a minute, else start it now");
    Ok(())
}

async fn run(args: RunArgs) -> anyhow::Result<()> {
    let env = Env::real();
    let name = args.name.clone().unwrap_or_else(host_name);
    let advertise = args.advertise.clone().unwrap_or_else(host_name);
    let mut config = Config::new(&args.data_dir, name, advertise);
    config.volume_listen.clone_from(&args.volume_listen);
    config.must_answer = args.advertise.is_some();
    config.disk = Some(disk_probe(&args.data_dir));
    config.backoff_max = Duration::from_secs(args.backoff_max.max(1));
    config.backoff_min = config.backoff_min.min(config.backoff_max);
    // An enrolled node needs none; one that is left in the environment must not stop it.
    if args.preflight || !config.identity_files().iter().any(|file| file.exists()) {
        config.token = args.token.as_deref().map(str::parse::<JoinToken>).transpose()?;
    }
    let _lock = lock(&args.data_dir, "lock", "another cara-agent uses")?;
    let runtime = choose_runtime(&env, &args).await;
    if args.preflight {
        return try_out(&config, &env, &*runtime).await;
    }
    let (stop, stopped) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate()).context("can't listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("can't listen for SIGINT")?;
    drop(cara_env::spawn(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to end");
        stop.send_replace(true);
        // Kept, so that the agent can tell "asked" from "can't be asked any more".
        std::future::pending::<()>().await;
    }));
    cara_agent::run(config, env, runtime, stopped).await?;
    Ok(())
}

/// Tells what was found, when nothing is wrong.
async fn try_out(config: &Config, env: &Env, runtime: &dyn ContainerRuntime) -> anyhow::Result<()> {
    let found = cara_agent::preflight(config, env, runtime).await?;
    println!("{} would let this machine in as node {}; nothing was spent", found.server, config.node_name);
    println!("engine:  {}", found.engine);
    match found.clock_ahead_ms {
        Some(ms) => {
            let (seconds, side) = (ms.unsigned_abs() / 1_000, if ms < 0 { "behind" } else { "ahead of" });
            println!("clock:   {seconds} s {side} the server's");
        }
        None => println!("clock:   the server does not say its time"),
    }
    match &found.reached_at {
        Some(address) => println!("address: the server reaches it at {address}"),
        None => println!("address: the server can't reach it; volumes will travel through the servers"),
    }
    println!("next: the same command without --preflight");
    Ok(())
}

/// Room on the device of the data folder.
fn disk_probe(folder: &Path) -> DiskProbe {
    let folder = folder.to_owned();
    Arc::new(move || {
        let stat = rustix::fs::statvfs(&folder).ok()?;
        Some(DiskSpace { total: stat.f_blocks * stat.f_frsize, free: stat.f_bavail * stat.f_frsize })
    })
}

/// One agent per data folder: two would undo each other's work. The lock goes with the process.
fn lock(folder: &Path, name: &str, taken: &str) -> anyhow::Result<File> {
    let what = || {
        let text =
            "the join token, if any, is unspent: fix the folder's owner, mode or space and start the agent again";
        format!("can't use the data folder {}; {text}", folder.display())
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(what)?;
    let path = folder.join(name);
    let file = File::options().create(true).truncate(false).write(true).open(&path).with_context(what)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "{taken} the data folder {}; stop it, or give this one a --data-dir of its own",
            folder.display()
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(what),
    }
}

async fn choose_runtime(env: &Env, args: &RunArgs) -> Arc<dyn ContainerRuntime> {
    let docker = DockerRuntime::with_spool(env.clock.clone(), &args.docker_host, &args.data_dir.join("spool"));
    let memory = || Arc::new(MemoryRuntime::new(env.clock.clone()));
    match args.runtime {
        Runtime::Memory => memory(),
        Runtime::Docker => {
            // An engine that is away now may come later: the agent starts, reports it, and waits for it.
            if let Err(error) = docker.info().await {
                tracing::error!("{error}");
            }
            Arc::new(docker)
        }
        Runtime::Auto => {
            let answer = docker.info().await;
            if let Err(error) = &answer {
                tracing::warn!("{error}");
            }
            if answer.is_ok() || remembers_docker(&args.data_dir) {
                remember_docker(&args.data_dir);
                tracing::info!("runtime: docker");
                Arc::new(docker)
            } else {
                tracing::warn!("runtime: memory: containers live in this process and run no program");
                memory()
            }
        }
    }
}

/// A node that has run containers in Docker never falls back to memory because Docker is away for a moment.
fn remembers_docker(folder: &Path) -> bool {
    folder.join("uses-docker").exists()
}

fn remember_docker(folder: &Path) {
    if let Err(error) = std::fs::write(folder.join("uses-docker"), "") {
        tracing::warn!("can't remember in {} that this node uses Docker: {error}", folder.display());
    }
}

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // No colour codes in files.
    let log = log.with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Pretty => log.with_target(false).init(),
        LogFormat::Json => log.json().init(),
    }
}
