//! The cluster in a simulated world: servers, agents with the memory runtime, clients and watchers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_agent::runtime::memory::{MemoryHandle, MemoryRuntime};
use cara_control::setup::Founded;
use cara_core::State;
use cara_env::Cf;
use cara_netsim::{Settings, SimRng, Spread, World};
use cara_scenario::Plan;
use cara_transport::JoinToken;
use tokio::runtime::Handle;

use crate::order::Order;
use crate::process::{run_agent, serve};
use crate::rocks_lane::RocksLane;
use crate::workload::history::History;
use crate::workload::{self, Phase};

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

/// A machine that joins while the world runs.
#[derive(Debug, Clone)]
pub struct Newcomer {
    /// Its name.
    pub name: String,
    /// The token that it was given.
    pub token: JoinToken,
}

/// What is handed between the machines and the driver.
#[derive(Default)]
struct Desk {
    founded: Option<Founded>,
    phase: Phase,
    nodes: Vec<String>,
    reserved: usize,
    newcomers_max: usize,
    newcomers: Vec<Newcomer>,
    renewals: Vec<u64>,
    orders: Vec<Order>,
    /// Given and not carried out.
    open_orders: usize,
    /// What orders are about that a client works on.
    in_hand: Vec<String>,
    /// Tokens with which machines shall get a new identity.
    returns: BTreeMap<String, JoinToken>,
    carried_out: Vec<Order>,
    /// Machines that run the release before this one.
    old: BTreeSet<String>,
    runtimes: BTreeMap<String, Handle>,
    /// How long servers' certificates live; none = as usual.
    certificate_life: Option<Duration>,
    /// How often the CA was replaced, or may have been.
    rotations: usize,
}

/// What the machines, the driver and the checkers share.
#[derive(Default)]
pub struct Shared {
    history: Mutex<History>,
    desk: Mutex<Desk>,
    stale_reads: AtomicBool,
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What init told the operator; none before.
    pub fn founded(&self) -> Option<Founded> {
        self.desk().founded.clone()
    }

    /// The first server has made the cluster.
    pub(crate) fn note_founded(&self, founded: Founded) {
        self.desk().founded = Some(founded);
    }

    /// A server's process has begun on this runtime.
    pub(crate) fn note_runtime(&self, server: &str, runtime: Handle) {
        self.desk().runtimes.insert(server.to_owned(), runtime);
    }

    /// The history so far.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime of a server's last process, to compare what it polls with what its gate admits.
    pub fn runtime(&self, server: &str) -> Option<Handle> {
        self.desk().runtimes.get(server).cloned()
    }

    /// Does the machine run the release before this one?
    pub fn is_old(&self, host: &str) -> bool {
        self.desk().old.contains(host)
    }

    /// How long servers' certificates live; none = as usual.
    pub fn certificate_life(&self) -> Option<Duration> {
        self.desk().certificate_life
    }

    /// What clients shall do now.
    pub fn phase(&self) -> Phase {
        self.desk().phase
    }

    /// Tells clients what to do from now on.
    pub fn set_phase(&self, phase: Phase) {
        self.desk().phase = phase;
    }

    /// Do clients read with `consistency=stale`?
    pub fn stale_reads(&self) -> bool {
        self.stale_reads.load(Ordering::Relaxed)
    }

    /// Lets clients read with `consistency=stale`: a planted fault for the checkers.
    pub fn set_stale_reads(&self, on: bool) {
        self.stale_reads.store(on, Ordering::Relaxed);
    }

    /// The nodes that were there from the begin.
    pub fn nodes(&self) -> Vec<String> {
        self.desk().nodes.clone()
    }

    /// Names for so many machines that shall join; none when enough have joined.
    pub fn reserve_newcomers(&self, count: usize) -> Option<Vec<String>> {
        let mut desk = self.desk();
        let first = desk.reserved + 1;
        let most = desk.newcomers_max;
        (desk.reserved + count <= most).then(|| {
            desk.reserved += count;
            (first..first + count).map(|i| format!("x{i}")).collect()
        })
    }

    /// Machines for the driver to switch on.
    pub fn add_newcomers(&self, newcomers: impl Iterator<Item = Newcomer>) {
        self.desk().newcomers.extend(newcomers);
    }

    fn take_newcomers(&self) -> Vec<Newcomer> {
        std::mem::take(&mut self.desk().newcomers)
    }

    /// May the CA be replaced once more? Clients follow the CA that they began with only so far.
    pub fn may_rotate(&self) -> bool {
        self.desk().rotations < cara_core::limits::FORMER_CAS_MAX
    }

    /// The CA is being replaced, or may be.
    pub fn note_rotation(&self) {
        self.desk().rotations += 1;
    }

    /// Asks the driver to let a node's certificate come of age.
    pub fn ask_for_renewal(&self, node: u64) {
        self.desk().renewals.push(node);
    }

    /// Nodes, by number, whose certificates shall come of age.
    pub fn take_renewals(&self) -> Vec<u64> {
        std::mem::take(&mut self.desk().renewals)
    }

    /// Asks the clients to do an operator's work.
    pub fn order(&self, order: Order) {
        let mut desk = self.desk();
        desk.open_orders += 1;
        desk.orders.push(order);
    }

    /// Could not be carried out yet.
    pub fn order_again(&self, order: Order) {
        let mut desk = self.desk();
        desk.in_hand.retain(|subject| subject != order.subject());
        desk.orders.insert(0, order);
    }

    /// The next work of an operator, for a client that has time.
    pub fn take_order(&self) -> Option<Order> {
        let mut desk = self.desk();
        let is_free = |order: &Order| !desk.in_hand.iter().any(|subject| subject == order.subject());
        let next = desk.orders.iter().position(is_free)?;
        let order = desk.orders.remove(next);
        desk.in_hand.push(order.subject().to_owned());
        Some(order)
    }

    /// A machine shall get a new identity with this token.
    pub fn give_return(&self, machine: &str, token: JoinToken) {
        self.desk().returns.insert(machine.to_owned(), token);
    }

    /// The token with which this machine shall get a new identity.
    pub fn return_of(&self, machine: &str) -> Option<JoinToken> {
        self.desk().returns.get(machine).cloned()
    }

    /// The machine has its new identity, or this token does not help.
    pub fn end_return(&self, machine: &str) {
        self.desk().returns.remove(machine);
    }

    /// Is all of an operator's work done?
    pub fn has_no_orders(&self) -> bool {
        let desk = self.desk();
        desk.open_orders == 0 && desk.returns.is_empty()
    }

    /// An order was carried out.
    pub fn carried_out(&self, order: Order) {
        let mut desk = self.desk();
        desk.open_orders -= 1;
        desk.in_hand.retain(|subject| subject != order.subject());
        desk.carried_out.push(order);
    }

    /// The orders carried out since the last call.
    pub fn take_carried_out(&self) -> Vec<Order> {
        std::mem::take(&mut self.desk().carried_out)
    }
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
        }
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

    /// The file in which an agent keeps its ledger.
    pub fn ledger_file() -> PathBuf {
        Path::new(AGENT_DIR).join("ledger")
    }
}
