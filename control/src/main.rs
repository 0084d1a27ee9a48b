//! `cara-server`: flags to a `Config`, then `cara_control::run`; nothing else.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use cara_control::config::{Config, Rate};
use cara_control::error::chain;
use cara_control::recover::{Recovered, recover_token};
use cara_control::setup::{self, Place};
use cara_control::version::Version;
use cara_env::Env;
use cara_transport::JoinToken;
use clap::{Args, Parser, Subcommand, ValueEnum};
use tokio::sync::watch;

// Not in the libraries: the simulator replays allocations as it finds them. Agents and caractrl allocate little.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A server of a Caravanserai control plane: one of three or five.
#[derive(Parser)]
#[command(name = "cara-server", version, max_term_width = 100)]
#[command(after_help = "Examples:
  The first server of a new cluster:
    cara-server init --data-dir /var/lib/cara-server --name s1 --advertise 10.0.0.1:7443
    cara-server run  --data-dir /var/lib/cara-server
  Another server (make the token with: caractrl servers join-token):
    cara-server join --data-dir /var/lib/cara-server --name s2 --advertise 10.0.0.2:7443 --token cara-join.…
    cara-server run  --data-dir /var/lib/cara-server")]
struct Cli {
    #[command(subcommand)]
    command: Verb,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t = LogFormat::Pretty, global = true)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object per line.
    Json,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a new cluster, with this machine as its first server.
    Init {
        #[command(flatten)]
        place: PlaceArgs,
        /// `text` for people, `json` for programs.
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Make this machine a server of an existing cluster.
    Join {
        #[command(flatten)]
        place: PlaceArgs,
        /// The token from `caractrl servers join-token`.
        #[arg(long, env = "CARA_JOIN_TOKEN", hide_env_values = true)]
        token: JoinToken,
    },
    /// Run the server of a data folder that `init` or `join` has set up.
    Run(RunArgs),
    /// Make a new root token without having any, on the machine of a server that runs.
    #[command(after_help = "Example, as the user whose server it is:
  cara-server recover-token --data-dir /var/lib/cara-server")]
    RecoverToken {
        /// The folder of the server that runs here.
        #[arg(long, env = "CARA_DATA_DIR")]
        data_dir: PathBuf,
        /// host:port where it listens, when `run` was given another --listen.
        #[arg(long)]
        address: Option<String>,
        /// `text` for people, `json` for programs.
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

#[derive(Args)]
struct PlaceArgs {
    /// Folder for the identity and the database.
    #[arg(long, env = "CARA_DATA_DIR")]
    data_dir: PathBuf,
    /// Name of the server: lowercase letters, digits and dashes.
    #[arg(long)]
    name: String,
    /// host:port under which other servers, agents and people reach this server.
    #[arg(long)]
    advertise: String,
    /// host:port to listen on [default: 0.0.0.0 with the port of --advertise].
    #[arg(long)]
    listen: Option<String>,
}

impl PlaceArgs {
    fn place(&self) -> Place {
        let port = self.advertise.rsplit_once(':').map_or("7443", |(_, port)| port);
        let listen = self.listen.clone().unwrap_or_else(|| format!("0.0.0.0:{port}"));
        Place::new(&self.name, listen, &self.advertise)
    }
}

#[derive(Args)]
struct RunArgs {
    /// Folder that `init` or `join` has set up.
    #[arg(long, env = "CARA_DATA_DIR")]
    data_dir: PathBuf,
    /// Listen here, instead of where `init` or `join` said.
    #[arg(long)]
    listen: Option<String>,
    /// Milliseconds between two raft heartbeats.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..=10_000))]
    heartbeat_ms: u64,
    /// A follower that hears nothing for this long, up to 1.4 times as long, calls an election.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    election_ms: u64,
    /// Seconds between two heartbeats of an agent.
    #[arg(long, default_value_t = 15.0)]
    agent_heartbeat_s: f64,
    /// Seconds after which a node that was let in and has not connected is shown as never connected
    #[arg(long, env = "CARA_PENDING_STALE_AFTER_S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pending_stale_after_s: u64,
    /// Agents below this version are shown as outdated, such as 0.2.0 [default: none is]
    #[arg(long, env = "CARA_AGENT_MIN_VERSION")]
    agent_min_version: Option<Version>,
    /// Log entries between two snapshots.
    #[arg(long, default_value_t = 50_000)]
    snapshot_after: u64,
    /// Requests a second that one API token may make of this server; four times as many at once. 0 = any number.
    #[arg(long, default_value_t = 500)]
    rate_per_token: u32,
    /// The same for an address without a valid token; ten times as many at once. 0 = any number.
    #[arg(long, default_value_t = 100)]
    rate_per_address: u32,
    /// Open connections without a certificate from one address. 0 = any number.
    #[arg(long, default_value_t = 1024)]
    connections_per_address: usize,
    /// Days that a node's certificate lives.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=3650))]
    node_cert_days: u64,
    /// A node's certificate with so many days left is shown as expiring.
    #[arg(long, default_value_t = 21)]
    node_cert_warning_days: u64,
    /// With so many days left, as critical.
    #[arg(long, default_value_t = 7)]
    node_cert_critical_days: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_stderr(cli.log_format);
    use_small_pages();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: can't start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(act(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// The allocator asks the kernel for huge pages. To clear one takes as long as several requests, and under load there are
/// always new ones.
fn use_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay as they are");
    }
}

fn log_to_stderr(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("CARA_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,openraft=error"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Pretty => builder.with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

async fn act(verb: Verb) -> anyhow::Result<()> {
    let env = Env::real();
    match verb {
        Verb::Init { place, output } => {
            let founded = setup::init(&env, &place.data_dir, &place.place())?;
            print_founded(&founded, &place, output)
        }
        Verb::Join { place, token } => {
            setup::join(&env, &place.data_dir, &place.place(), &token).await?;
            println!("joined. next: cara-server run --data-dir {}", place.data_dir.display());
            Ok(())
        }
        Verb::Run(args) => run(env, args).await,
        Verb::RecoverToken { data_dir, address, output } => {
            print_recovered(&recover_token(&env, &data_dir, address).await?, output)
        }
    }
}

fn print_founded(founded: &setup::Founded, place: &PlaceArgs, output: Output) -> anyhow::Result<()> {
    if matches!(output, Output::Json) {
        println!("{}", serde_json::to_string(founded).context("can't write the result as JSON")?);
        return Ok(());
    }
    println!("cluster {} made; this is its only server until others join.", founded.cluster_id);
    println!();
    println!("The root token, shown only now:");
    println!("  {}", founded.token);
    println!();
    println!("next:");
    println!("  cara-server run --data-dir {}", place.data_dir.display());
    println!("then, where you work from:");
    println!("  export CARA_SERVERS={}", founded.server);
    println!("  export CARA_TOKEN={}", founded.token);
    println!("  export CARA_CA_FINGERPRINT={}", founded.ca_fingerprint);
    println!("  caractrl servers join-token     # for the second and third server");
    println!("  caractrl nodes add              # for machines that run containers");
    Ok(())
}

fn print_recovered(made: &Recovered, output: Output) -> anyhow::Result<()> {
    if matches!(output, Output::Json) {
        println!("{}", serde_json::to_string(made).context("can't write the result as JSON")?);
        return Ok(());
    }
    println!("A new root token, {} ({}), shown only now:", made.token_id, made.name);
    println!("  {}", made.token);
    println!();
    println!("next, where you work from:");
    println!("  export CARA_SERVERS={}", made.server);
    println!("  export CARA_TOKEN={}", made.token);
    println!("  export CARA_CA_FINGERPRINT={}", made.ca_fingerprint);
    println!("  caractrl tokens list            # and revoke the one that was lost: caractrl tokens revoke ID");
    Ok(())
}

async fn run(env: Env, args: RunArgs) -> anyhow::Result<()> {
    if args.election_ms < args.heartbeat_ms * 4 {
        anyhow::bail!(
            "--election-ms {} must be at least four times --heartbeat-ms {}, or a lost heartbeat costs the leader",
            args.election_ms,
            args.heartbeat_ms
        );
    }
    let beat =
        Duration::try_from_secs_f64(args.agent_heartbeat_s).ok().filter(|beat| *beat >= Duration::from_millis(50));
    let config = Config {
        listen: args.listen,
        raft_heartbeat: Duration::from_millis(args.heartbeat_ms),
        election_timeout: Duration::from_millis(args.election_ms),
        agent_heartbeat: beat.context("--agent-heartbeat-s must be at least 0.05")?,
        pending_stale_after: Duration::from_secs(args.pending_stale_after_s),
        agent_min_version: args.agent_min_version,
        snapshot_after: args.snapshot_after,
        rate_per_token: Rate::with_burst(args.rate_per_token),
        rate_per_address: Rate { per_second: args.rate_per_address, burst: args.rate_per_address.saturating_mul(10) },
        connections_per_address_max: args.connections_per_address,
        node_certificate_life: days(args.node_cert_days),
        certificate_warning: days(args.node_cert_warning_days),
        certificate_critical: days(args.node_cert_critical_days),
        ..Config::new(&args.data_dir)
    };
    // Before the database is touched: a folder without identity must stay as it is.
    cara_control::identity::ServerIdentity::load(&env, &args.data_dir)?;
    let engine = raft_store::rocks::RocksEngine::open(&args.data_dir.join("db"))?;
    let config = Config { low_space: Some(engine.low_space(env.clock.clone())), ..config };
    let (stop_in, stop) = watch::channel(false);
    let server = cara_control::run(config, env, std::sync::Arc::new(engine), stop);
    let signals = cara_env::spawn(async move {
        wait_for_signal().await;
        stop_in.send_replace(true);
        // A second signal doesn't wait for open requests.
        wait_for_signal().await;
        std::process::exit(130);
    });
    let ended = server.await;
    signals.abort();
    Ok(ended?)
}

async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days.saturating_mul(24 * 60 * 60))
}
