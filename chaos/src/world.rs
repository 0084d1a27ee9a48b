//! The cluster in a simulated world: servers, agents with the memory runtime, clients and watchers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_agent::runtime::memory::{MemoryHandle, MemoryRuntime};
use cara_control::identity::ServerIdentity;
use cara_core::State;
use cara_env::Cf;
use cara_netsim::{Settings, SimRng, Spread, World};
use cara_scenario::Plan;
use cara_transport::JoinToken;

use crate::order::Order;
use crate::process::{SERVER_DIR, run_agent, serve};
use crate::rocks_lane::RocksLane;
pub use crate::shared::{Newcomer, Shared};
use crate::workload;

/// Where an agent keeps its identity and ledger.
pub const AGENT_DIR: &str = "/var/lib/cara-agent";
/// The port of every server.
const PORT: u16 = 7443;
/// A service manager's pause before it starts a process again.
const RESTART: Duration = Duration::from_millis(500);
/// Machines that join while the world runs; more cost time and show nothing new.
const NEWCOMERS_MAX: usize = 6;
/// Between two heartbeats of an agent: short, so that a simulated minute holds many of them.
pub const HEARTBEAT: Duration = Duration::from_secs(2);
/// How long a node may wait for its first session: some heartbeats, so that a run sees it.
pub const PENDING_STALE: Duration = Duration::from_secs(15);

/// The servers' storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum EngineKind {
    /// The simulated disk: repeatable, and with every fault.
    #[default]
    Sim,
    /// RocksDB in temporary folders beside the simulated disk, under the same faults, and each answer compared.
    Rocksdb,
}

/// A cluster in its world.
pub struct Cluster {
    /// The simulated world.
    pub world: World,
    /// What is shared with the machines.
    pub shared: Arc<Shared>,
    /// Names of the servers that are or shall be members.
    pub servers: Vec<String>,
    /// Names of servers that may join later.
    pub spares: Vec<String>,
    /// Names of the nodes.
    pub agents: Vec<String>,
    /// Nodes that need not come online in the end: they lost a race for a token, or their identity is a copy.
    pub excused: BTreeSet<String>,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// The container engine of each node.
    pub engines: BTreeMap<String, MemoryHandle>,
    /// Those of machines that are off for good.
    former_engines: BTreeMap<String, MemoryHandle>,
    /// How wrong each machine's clocks run from birth, in parts per million.
    drifts: BTreeMap<String, i64>,
    /// Servers with an empty disk, which join anew once an operator has taken the old one out.
    anew: BTreeSet<String>,
    /// Machines that run with a copy of a node's identity, by node.
    clones: BTreeMap<String, String>,
    clock_offset_ms: u64,
    clock_drift_ppm: u64,
    node_certificate_life: Duration,
    /// What has passed on every machine beside the time of the world.
    passed_ms: i64,
    rng: SimRng,
    rocks: Option<RocksLane>,
}

/// The distribution that a scenario means.
fn spread(latency: &cara_scenario::Latency) -> Spread {
    let ms = Duration::from_millis;
    match latency.mean_ms {
        Some(mean) => Spread::Exponential { min: ms(latency.min_ms), mean: ms(mean), max: ms(latency.max_ms) },
        None => Spread::uniform_ms(latency.min_ms, latency.max_ms),
    }
}

/// `host:port` of a server.
pub fn address(server: &str) -> String {
    format!("{server}:{PORT}")
}

impl Cluster {
    /// A world with machines that set themselves up from nothing.
    pub fn new(plan: &Plan, engine: EngineKind) -> Self {
        let shape = &plan.cluster;
        let settings = Settings { tick: plan.grain, latency: spread(&shape.latency) };
        let world = World::with_settings(plan.seed, &settings);
        let names = |prefix: &str, from: usize, count: usize| {
            (from..from + count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>()
        };
        let servers = names("s", 1, shape.servers);
        let mut cluster = Self {
            world,
            shared: Arc::default(),
            spares: names("s", shape.servers + 1, shape.spares),
            agents: Vec::new(),
            excused: BTreeSet::new(),
            clients: names("client", 1, shape.clients),
            engines: BTreeMap::new(),
            former_engines: BTreeMap::new(),
            drifts: BTreeMap::new(),
            anew: BTreeSet::new(),
            clones: BTreeMap::new(),
            clock_offset_ms: shape.clock_offset_ms,
            clock_drift_ppm: shape.clock_drift_ppm,
            node_certificate_life: shape.node_certificate_life.0,
            passed_ms: 0,
            rng: SimRng::new(plan.seed, "births"),
            rocks: (engine == EngineKind::Rocksdb).then(RocksLane::new),
            servers,
        };
        let nodes = names("n", 1, shape.agents);
        let old = cluster.servers.iter().take(shape.old_servers).chain(nodes.iter().take(shape.old_agents));
        cluster.shared.desk().old = old.cloned().collect();
        cluster.shared.desk().certificate_life = shape.certificate_life.map(|life| life.0);
        for server in cluster.servers.clone() {
            cluster.add_server(&server);
        }
        cluster.shared.desk().nodes = nodes.clone();
        cluster.shared.desk().newcomers_max = NEWCOMERS_MAX.max(plan.racers);
        for node in &nodes {
            cluster.add_agent(node, None);
        }
        let addresses = cluster.servers.clone();
        for client in cluster.clients.clone() {
            let (shared, servers) = (cluster.shared.clone(), addresses.clone());
            let ops = plan.ops.iter().filter(|op| op.client == client).cloned().collect();
            let part = workload::Part { ops, patience: plan.patience, racers: plan.racers };
            cluster
                .world
                .client(&client, move |boot| workload::client(boot, shared.clone(), servers.clone(), part.clone()));
        }
        for watcher in names("watcher", 1, plan.watchers) {
            let (shared, servers) = (cluster.shared.clone(), addresses.clone());
            cluster.world.client(&watcher, move |boot| workload::watch(boot, shared.clone(), servers.clone()));
        }
        cluster
    }

    /// Switches on a server that sets itself up.
    pub fn add_server(&mut self, server: &str) {
        let (shared, rocks) = (self.shared.clone(), self.rocks.clone());
        let life = self.node_certificate_life;
        let first = self.servers.clone();
        self.world
            .host(server, Some(RESTART), move |boot| serve(boot, shared.clone(), rocks.clone(), first.clone(), life));
        self.world.disk(server).tap();
        self.set_clocks(server);
    }

    /// A machine's clocks are as wrong from birth as the world allows.
    fn set_clocks(&mut self, host: &str) {
        let draw = |most: u64| {
            let drawn = i64::try_from(self.rng.between(0, 2 * most)).unwrap_or_default();
            drawn - i64::try_from(most).unwrap_or_default()
        };
        let (offset, drift) = (draw(self.clock_offset_ms) + self.passed_ms, draw(self.clock_drift_ppm));
        if offset != 0 {
            self.world.step_wall_clock(host, offset);
        }
        if drift != 0 {
            self.world.drift(host, drift);
        }
        self.drifts.insert(host.to_owned(), drift);
    }

    /// How wrong the machine's clocks run when no fault drives them, in parts per million.
    pub fn drift_of(&self, host: &str) -> i64 {
        self.drifts.get(host).copied().unwrap_or_default()
    }

    /// So much time passes at once, on every machine.
    pub fn pass_time(&mut self, by_ms: i64) {
        self.passed_ms += by_ms;
        for host in self.world.names() {
            self.world.step_wall_clock(&host, by_ms);
        }
    }

    /// Switches on a node that enrols itself, with a token of its own unless it is given one.
    pub fn add_agent(&mut self, agent: &str, token: Option<JoinToken>) {
        // The engine outlives the agent's process, as a real one does; it appears with its machine.
        let slot: Arc<Mutex<Option<MemoryRuntime>>> = Arc::default();
        let (shared, of_node, servers) = (self.shared.clone(), slot.clone(), self.servers.clone());
        self.world.host(agent, Some(RESTART), move |boot| {
            run_agent(boot, shared.clone(), of_node.clone(), token.clone(), servers.clone())
        });
        let engine = MemoryRuntime::new(self.world.clock(agent));
        // Machines' clocks may be wrong; what ran when is judged by one that isn't.
        engine.handle().record_by(self.world.true_clock());
        self.engines.insert(agent.to_owned(), engine.handle());
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
        self.agents.push(agent.to_owned());
        self.set_clocks(agent);
    }

    /// Switches on a second machine with a copy of a node's data folder, and an engine of its own.
    pub fn add_clone(&mut self, of: &str, name: &str) {
        let copy = self.world.snapshot(of);
        self.add_agent(name, None);
        self.excused.insert(name.to_owned());
        // Its first process has not run yet: it starts with the copy.
        self.world.crash(name);
        self.world.restore(name, &copy);
        self.world.restart(name);
        self.clones.insert(of.to_owned(), name.to_owned());
    }

    /// Switches the copy off for good, and what it ran with it.
    pub fn switch_off_clone_of(&mut self, of: &str) {
        let Some(name) = self.clones.remove(of) else { return };
        self.world.power_loss(&name);
        self.agents.retain(|agent| *agent != name);
        if let Some(engine) = self.engines.remove(&name) {
            engine.exit_all();
            self.former_engines.insert(name, engine);
        }
    }

    /// Every engine that there was, by machine: what a machine ran that is off for good, it ran.
    pub fn every_engine(&self) -> impl Iterator<Item = (&String, &MemoryHandle)> {
        self.engines.iter().chain(&self.former_engines)
    }

    /// From its next start on the machine runs today's release.
    pub fn upgrade(&mut self, host: &str) {
        self.shared.desk().old.remove(host);
    }

    /// Servers that run the release before this one.
    pub fn old_servers(&self) -> Vec<String> {
        self.servers.iter().filter(|server| self.shared.is_old(server)).cloned().collect()
    }

    /// A server has lost its disk: an operator takes it out of the cluster, so that the machine can join as a new one, with
    /// today's release: the others may have outgrown the one before meanwhile.
    pub fn replace_server(&mut self, host: &str) {
        self.upgrade(host);
        if self.servers.iter().any(|server| server == host) && self.anew.insert(host.to_owned()) {
            self.shared.order(Order::RemoveServer(host.to_owned()));
        }
    }

    /// Takes servers that an operator has removed out of the books, and off.
    ///
    /// The machine of a node that was deleted is installed anew; those are returned.
    pub fn take_removed(&mut self) -> Vec<String> {
        let mut anew = Vec::new();
        for order in self.shared.take_carried_out() {
            match order {
                Order::RemoveServer(server) if !self.anew.remove(&server) => {
                    self.servers.retain(|known| *known != server);
                    self.world.crash(&server);
                }
                Order::DeleteNode(node) => {
                    self.world.crash(&node);
                    self.world.wipe(&node);
                    self.world.restart(&node);
                    anew.push(node);
                }
                Order::RemoveServer(_) | Order::UncordonAll | Order::Revoke(_) | Order::Reenrol(_) => {}
            }
        }
        anew
    }

    /// Switches on the machines that clients asked for.
    pub fn add_newcomers(&mut self) {
        for newcomer in self.shared.take_newcomers() {
            self.add_agent(&newcomer.name, Some(newcomer.token));
        }
    }

    /// Every machine that is or was a server.
    pub fn server_machines(&self) -> Vec<String> {
        let all = self.world.names();
        all.into_iter().filter(|name| name.strip_prefix('s').is_some_and(|rest| rest.parse::<u32>().is_ok())).collect()
    }

    /// Counts the lives of a server's process; a machine without one is in its next life already, in which what was not
    /// on disk is gone.
    pub fn life(&self, server: &str) -> u64 {
        self.world.incarnation(server) + u64::from(!self.world.is_running(server))
    }

    /// Where RocksDB and the model of a disk differed, if both are used.
    pub fn disagreements(&self) -> Vec<String> {
        self.rocks.as_ref().map(RocksLane::disagreements).unwrap_or_default()
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

    /// What a server's `server.json` says now; none before it has one.
    pub fn server_identity(&self, server: &str) -> Option<ServerIdentity> {
        let bytes = self.world.files(server).read(&Path::new(SERVER_DIR).join("server.json")).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The file in which an agent keeps its ledger.
    pub fn ledger_file() -> PathBuf {
        Path::new(AGENT_DIR).join("ledger")
    }
}
