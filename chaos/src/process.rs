//! The processes of the simulated machines: a server and an agent that set themselves up if they must, then run.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_agent::runtime::memory::MemoryRuntime;
use cara_agent::{EnrolError, RunError};
use cara_control::pki::LEAF_LIFE;
use cara_control::setup::{self, Place};
use cara_core::FEATURE_LEVEL;
use cara_env::Env;
use cara_netsim::Boot;
use cara_transport::JoinToken;
use tokio::runtime::Handle;

use crate::judge::versions::OLD_LEVEL;
use crate::order::Order;
use crate::rocks_lane::RocksLane;
use crate::workload::rest::{Ask, Rest};
use crate::workload::{self, Phase};
use crate::world::{AGENT_DIR, HEARTBEAT, PENDING_STALE, Shared, address};

/// Where a server keeps its identity.
pub(crate) const SERVER_DIR: &str = "/var/lib/cara-server";
/// Between two attempts of a machine that is being set up.
const SETUP_RETRY: Duration = Duration::from_millis(200);
/// Log entries between two snapshots: few, so that servers that fall behind get snapshots instead of entries.
const SNAPSHOT_AFTER: u64 = 60;

/// A server's process: sets itself up if it must, then runs.
pub(crate) async fn serve(
    boot: Boot,
    shared: Arc<Shared>,
    rocks: Option<RocksLane>,
    servers: Vec<String>,
    node_certificate_life: Duration,
) -> Result<(), String> {
    shared.note_runtime(&boot.name, Handle::current());
    let folder = Path::new(SERVER_DIR);
    let feature_level_max = if shared.is_old(&boot.name) { OLD_LEVEL } else { FEATURE_LEVEL };
    let certificate_life = shared.certificate_life().unwrap_or(LEAF_LIFE);
    if boot.env.files.read(&folder.join("server.json")).is_err() {
        let own = address(&boot.name);
        let place = Place { feature_level_max, certificate_life, ..Place::new(&boot.name, &own, &own) };
        if boot.name == "s1" {
            let founded = setup::init(&boot.env, folder, &place).map_err(|error| chain(&error))?;
            shared.note_founded(founded);
        } else {
            let token = mint(&boot.env, &shared, "servers/join-tokens", &servers).await;
            setup::join(&boot.env, folder, &place, &token).await.map_err(|error| chain(&error))?;
        }
    }
    let config = cara_control::Config {
        agent_heartbeat: HEARTBEAT,
        pending_stale_after: PENDING_STALE,
        snapshot_after: SNAPSHOT_AFTER,
        write_behind: 0, // The judges read on the disk what is applied.
        feature_level_max,
        server_certificate_life: certificate_life,
        node_certificate_life,
        ..cara_control::Config::new(folder)
    };
    let engine = match &rocks {
        Some(rocks) => rocks.open(&boot)?,
        None => boot.engine,
    };
    cara_control::run(config, boot.env, engine, boot.shutdown).await.map_err(|error| chain(&error))
}

/// An agent's process.
pub(crate) async fn run_agent(
    boot: Boot,
    shared: Arc<Shared>,
    engine: Arc<Mutex<Option<MemoryRuntime>>>,
    token: Option<JoinToken>,
    servers: Vec<String>,
) -> Result<(), String> {
    let mut config = cara_agent::Config::new(AGENT_DIR, boot.name.clone(), boot.name.clone());
    config.backoff_min = Duration::from_millis(200);
    config.backoff_max = Duration::from_secs(3);
    if shared.is_old(&boot.name) {
        config.feature_level = OLD_LEVEL;
    }
    if !config.identity_files().iter().any(|file| boot.env.files.read(file).is_ok()) {
        config.token = match token {
            Some(token) => Some(token),
            None => Some(mint(&boot.env, &shared, "nodes/join-tokens", &servers).await),
        };
    }
    let engine = engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let engine = engine.ok_or("the machine has no engine")?;
    let returning = cara_env::spawn(bring_back(boot.env.clone(), boot.name.clone(), config.clone(), shared.clone()));
    let run = |config| cara_agent::run(config, boot.env.clone(), Arc::new(engine.clone()), boot.shutdown.clone());
    let ended = match run(config.clone()).await {
        // A machine on a new disk, whose name is taken by what it was: the refusal says what to do.
        Err(RunError::Enrol(EnrolError::Refused { code, .. })) if code == "node-name-taken" => {
            let of_node = format!("nodes/{}/reenroll-token", boot.name);
            config.token = Some(mint(&boot.env, &shared, &of_node, &servers).await);
            run(config).await
        }
        ended => ended,
    };
    returning.abort();
    ended.map_err(|error| chain(&error))
}

/// Runs `cara-agent reenroll` on this machine when an operator has a token for it, again and again until it is done.
async fn bring_back(env: Env, name: String, config: cara_agent::Config, shared: Arc<Shared>) {
    loop {
        env.clock.sleep(SETUP_RETRY).await;
        let Some(token) = shared.return_of(&name) else { continue };
        match cara_agent::reenroll(&config, &env, &token).await {
            Ok(_) => shared.end_return(&name),
            // Too late, or somebody else has used it: another one.
            Err(RunError::Enrol(EnrolError::Refused { .. })) => {
                shared.end_return(&name);
                shared.order(Order::Reenrol(name.clone()));
            }
            Err(_) => {}
        }
    }
}

/// Gets a token from one of the servers, as an operator would, as soon as there is one.
async fn mint(env: &Env, shared: &Shared, what: &str, servers: &[String]) -> JoinToken {
    loop {
        env.clock.sleep(SETUP_RETRY).await;
        let Some(founded) = shared.founded() else { continue };
        let rest = Rest::new(env, &founded.ca_fingerprint, &founded.token);
        let mut ask = Ask::post(format!("/api/v1/{what}"), serde_json::json!({}));
        ask.key = Some(cara_env::hex(&*env.rng, 8));
        // Until the others have joined, only the first one answers.
        let server = if shared.phase() == Phase::Setup { "s1".to_owned() } else { workload::pick(&*env.rng, servers) };
        let Ok(told) = rest.ask(&address(&server), &ask, Duration::from_secs(5)).await else { continue };
        let token = told.json()["token"].as_str().and_then(|token| token.parse().ok());
        if let Some(token) = token {
            return token;
        }
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
