//! The default cluster in a simulated world: servers, agents with the memory runtime, clients and an observer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_agent::runtime::memory::{MemoryHandle, MemoryRuntime};
use cara_control::setup::{self, Founded, Place};
use cara_core::State;
use cara_env::{Cf, Env};
use cara_netsim::{Boot, Settings, World};
use cara_transport::JoinToken;
use http::Method;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::observer::{self, Observed};
use crate::rest::{Ask, Rest};
use crate::workload::{self, History, Phase};

/// Where a server keeps its identity.
const SERVER_DIR: &str = "/var/lib/cara-server";
/// Where an agent keeps its identity and ledger.
const AGENT_DIR: &str = "/var/lib/cara-agent";
/// The port of every server.
const PORT: u16 = 7443;
/// A service manager's pause before it starts a process again.
const RESTART: Duration = Duration::from_millis(500);
/// Between two attempts of a machine that is being set up.
const SETUP_RETRY: Duration = Duration::from_millis(200);

/// How large the world is.
#[derive(Debug, Clone)]
pub struct Size {
    /// Servers; odd.
    pub servers: usize,
    /// Nodes.
    pub agents: usize,
    /// Clients that write and read at the same time.
    pub clients: usize,
    /// The step of time.
    pub tick: Duration,
}

impl Default for Size {
    fn default() -> Self {
        Self { servers: 3, agents: 3, clients: 3, tick: Duration::from_millis(1) }
    }
}

/// What the machines, the driver and the checkers share.
#[derive(Default)]
pub struct Shared {
    founded: Mutex<Option<Founded>>,
    /// What clients did and were told.
    pub history: Mutex<History>,
    /// Who leads, as the servers themselves say.
    pub observed: Mutex<Observed>,
    phase: Mutex<Phase>,
    stale_reads: AtomicBool,
    runtimes: Mutex<BTreeMap<String, Handle>>,
}

impl Shared {
    /// What init told the operator; none before.
    pub fn founded(&self) -> Option<Founded> {
        self.founded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The history so far.
    pub fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who leads.
    pub fn observed(&self) -> std::sync::MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime of a server's last process, to compare what it polls with what its gate admits.
    pub fn runtime(&self, server: &str) -> Option<Handle> {
        self.runtimes.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned()
    }

    /// What clients shall do now.
    pub fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Do clients read with `consistency=stale`?
    pub fn stale_reads(&self) -> bool {
        self.stale_reads.load(Ordering::Relaxed)
    }

    /// Lets clients read with `consistency=stale`: a planted fault for the checkers.
    pub fn set_stale_reads(&self, on: bool) {
        self.stale_reads.store(on, Ordering::Relaxed);
    }

    /// Tells clients what to do from now on.
    pub fn set_phase(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }
}

/// A cluster in its world.
pub struct Cluster {
    /// The simulated world.
    pub world: World,
    /// What is shared with the machines.
    pub shared: Arc<Shared>,
    /// Names of the servers.
    pub servers: Vec<String>,
    /// Names of the nodes.
    pub agents: Vec<String>,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// The container engine of each node, in the order of `agents`.
    pub engines: Vec<MemoryHandle>,
}

/// `host:port` of a server.
pub fn address(server: &str) -> String {
    format!("{server}:{PORT}")
}

impl Cluster {
    /// A world with machines that set themselves up from nothing.
    pub fn new(seed: u64, size: &Size) -> Self {
        let mut world = World::with_settings(seed, &Settings { tick: size.tick, ..Settings::default() });
        let shared = Arc::new(Shared::default());
        let names = |prefix: &str, count: usize| (1..=count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
        let (servers, agents, clients) =
            (names("s", size.servers), names("n", size.agents), names("client", size.clients));
        for server in &servers {
            let shared = shared.clone();
            world.host(server, Some(RESTART), move |boot| serve(boot, shared.clone()));
        }
        let mut engines = Vec::new();
        for agent in &agents {
            // The engine outlives the agent's process, as a real one does; it appears with its machine.
            let slot: Arc<Mutex<Option<MemoryRuntime>>> = Arc::default();
            let (inside, of_node) = (shared.clone(), slot.clone());
            world.host(agent, Some(RESTART), move |boot| run_agent(boot, inside.clone(), of_node.clone()));
            let engine = MemoryRuntime::new(world.clock(agent));
            engines.push(engine.handle());
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
        }
        let addresses: Vec<String> = servers.iter().map(|server| address(server)).collect();
        for client in &clients {
            let (shared, addresses) = (shared.clone(), addresses.clone());
            world.client(client, move |boot| workload::client(boot, shared.clone(), addresses.clone()));
        }
        let (inside, watched) = (shared.clone(), servers.clone());
        world.client("observer", move |boot| observer::watch(boot, inside.clone(), watched.clone()));
        Self { world, shared, servers, agents, clients, engines }
    }

    /// The state as a server has it on disk now; none before it has any.
    ///
    /// # Errors
    /// When what is on disk is no state.
    pub fn state_of(&self, server: &str) -> Result<Option<State>, String> {
        // Replication keeps the domain's keys behind this letter, beside its own.
        let pairs = self.world.disk(server).dump(Cf::State).into_iter();
        let pairs: Vec<_> = pairs.filter_map(|(key, value)| Some((key.strip_prefix(b"d")?.to_vec(), value))).collect();
        if pairs.is_empty() {
            return Ok(None);
        }
        State::load(pairs).map(Some).map_err(|error| format!("{server}: {error}"))
    }

    /// How many servers vote, as the last leader said.
    pub fn voters(&self) -> usize {
        self.shared.observed().voters
    }

    /// The file in which an agent keeps its ledger.
    pub fn ledger_file() -> PathBuf {
        Path::new(AGENT_DIR).join("ledger")
    }
}

/// A server's process: sets itself up if it must, then runs.
async fn serve(boot: Boot, shared: Arc<Shared>) -> Result<(), String> {
    shared.runtimes.lock().unwrap_or_else(PoisonError::into_inner).insert(boot.name.clone(), Handle::current());
    let folder = Path::new(SERVER_DIR);
    if boot.env.files.read(&folder.join("server.json")).is_err() {
        let own = address(&boot.name);
        let place = Place { name: boot.name.clone(), listen: own.clone(), advertise: own };
        if boot.name == "s1" {
            let founded = setup::init(&boot.env, folder, &place).map_err(|error| chain(&error))?;
            *shared.founded.lock().unwrap_or_else(PoisonError::into_inner) = Some(founded);
        } else {
            let token = mint(&boot.env, &shared, "servers").await;
            setup::join(&boot.env, folder, &place, &token).await.map_err(|error| chain(&error))?;
        }
    }
    let config = cara_control::Config {
        // Short, so that a simulated minute holds many of them.
        agent_heartbeat: Duration::from_secs(2),
        snapshot_after: 200,
        ..cara_control::Config::new(folder)
    };
    let (_running, shutdown) = watch::channel(false);
    cara_control::run(config, boot.env, boot.engine, shutdown).await.map_err(|error| chain(&error))
}

/// An agent's process.
async fn run_agent(boot: Boot, shared: Arc<Shared>, engine: Arc<Mutex<Option<MemoryRuntime>>>) -> Result<(), String> {
    let mut config = cara_agent::Config::new(AGENT_DIR, boot.name.clone(), boot.name.clone());
    config.backoff_min = Duration::from_millis(200);
    config.backoff_max = Duration::from_secs(3);
    if boot.env.files.read(&Path::new(AGENT_DIR).join("identity.json")).is_err() {
        config.token = Some(mint(&boot.env, &shared, "nodes").await);
    }
    let engine = engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let engine = engine.ok_or("the machine has no engine")?;
    let (_running, shutdown) = watch::channel(false);
    cara_agent::run(config, boot.env, Arc::new(engine), shutdown).await.map_err(|error| chain(&error))
}

/// Gets a join token from the first server, as an operator would, as soon as there is one.
async fn mint(env: &Env, shared: &Shared, what: &str) -> JoinToken {
    loop {
        env.clock.sleep(SETUP_RETRY).await;
        let Some(founded) = shared.founded() else { continue };
        let rest = Rest::new(env, &founded.ca_fingerprint, &founded.token);
        let ask = Ask {
            method: Method::POST,
            path: format!("/api/v1/{what}/join-tokens"),
            key: Some(cara_env::hex(&*env.rng, 8)),
            body: Some(serde_json::json!({})),
        };
        let Ok(told) = rest.ask(&address("s1"), &ask, Duration::from_secs(5)).await else { continue };
        let token = told.json()["token"].as_str().and_then(|token| token.parse().ok());
        if let Some(token) = token {
            return token;
        }
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
