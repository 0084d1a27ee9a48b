//! One member: replication over plain TCP, and a writer that counts.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_env::{Env, Executor};
use cara_netsim::{Boot, World};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use raft_store::testing::{Command, Registers};
use raft_store::{Config, Dial, ProposeError, RaftStore, Role};
use tonic::transport::{Channel, Endpoint};

pub const NAMES: [&str; 3] = ["m1", "m2", "m3"];
const PORT: u16 = 7000;
const KEEPALIVE: Duration = Duration::from_secs(3);

/// What the writers were told, and what the members have.
#[derive(Default)]
pub struct Counted {
    stopped: AtomicBool,
    /// Per register: acknowledged additions, and those without an answer.
    additions: Mutex<BTreeMap<String, (i64, i64)>>,
    states: Mutex<BTreeMap<String, Registers>>,
    leader: Mutex<Option<(u64, String)>>,
    /// Reads on followers that were answered.
    followed: AtomicU64,
    /// Those that lacked something acknowledged before.
    stale: Mutex<Vec<String>>,
    /// The leader is to propose once more, beside the writer.
    asked: AtomicBool,
    /// What came of that.
    answers: Mutex<Vec<Result<(), ProposeError>>>,
}

impl Counted {
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Lets the leader propose once, whatever its writer waits for.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    pub fn answers(&self) -> Vec<Result<(), ProposeError>> {
        self.answers.lock().unwrap().clone()
    }

    /// The newest term in which somebody led, and who.
    pub fn led(&self) -> Option<(u64, String)> {
        self.leader.lock().unwrap().clone()
    }

    pub fn leader(&self) -> Option<String> {
        self.led().map(|(_, name)| name)
    }

    pub fn states(&self) -> BTreeMap<String, Registers> {
        self.states.lock().unwrap().clone()
    }

    pub fn acknowledged(&self) -> i64 {
        self.additions.lock().unwrap().values().map(|(acknowledged, _)| acknowledged).sum()
    }

    /// All three have the same, and nothing acknowledged is missing.
    pub fn all_agree(&self) -> bool {
        let states = self.states.lock().unwrap();
        let first = states.values().next().cloned().unwrap_or_default();
        let additions = self.additions.lock().unwrap();
        let complete = additions.iter().all(|(name, (acknowledged, _))| first.get(name) >= *acknowledged);
        states.len() == NAMES.len() && states.values().all(|state| *state == first) && complete
    }

    /// Per register, what every read that begins now must see.
    fn acknowledged_now(&self) -> BTreeMap<String, i64> {
        self.additions.lock().unwrap().iter().map(|(name, (acknowledged, _))| (name.clone(), *acknowledged)).collect()
    }

    pub fn nothing_lost(&self, seed: u64) {
        assert_eq!(*self.stale.lock().unwrap(), Vec::<String>::new(), "seed {seed}: reads from the past");
        assert!(self.followed.load(Ordering::Relaxed) > 50, "seed {seed}: too few reads on followers");
        let state = self.states.lock().unwrap().values().next().cloned().unwrap();
        let additions = self.additions.lock().unwrap();
        assert!(additions.values().map(|(acknowledged, _)| acknowledged).sum::<i64>() > 100, "seed {seed}: too little");
        for (name, (acknowledged, unknown)) in additions.iter() {
            let value = state.get(name);
            let expected = *acknowledged..=*acknowledged + *unknown;
            assert!(expected.contains(&value), "seed {seed}: {name} is {value}, expected {expected:?}");
        }
    }
}

struct Plain(Env);

#[async_trait::async_trait]
impl Dial for Plain {
    async fn dial(&self, address: &str) -> io::Result<Channel> {
        let (env, to) = (self.0.clone(), address.to_owned());
        let connect = move |_: http::Uri| {
            let (env, to) = (env.clone(), to.clone());
            async move { env.net.connect(&to).await.map(TokioIo::new) }
        };
        Endpoint::from_static("http://member")
            .executor(Executor)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .keep_alive_while_idle(true)
            .connect_with_connector(tower::service_fn(connect))
            .await
            .map_err(io::Error::other)
    }
}

/// Sets up the three members.
pub fn host_all(world: &mut World, counted: &Arc<Counted>) {
    for name in NAMES {
        let counted = counted.clone();
        world.host(name, Some(Duration::from_millis(300)), move |boot| run(boot, counted.clone()));
    }
}

async fn run(boot: Boot, counted: Arc<Counted>) -> Result<(), String> {
    let id = NAMES.iter().position(|name| *name == boot.name).unwrap() as u64 + 1;
    let mut config = Config::new(id, "registers");
    config.expect_empty = boot.incarnation == 1;
    config.snapshot_after = 200;
    config.keep_logs = 50;
    // Written at once, after every few entries, and only with a snapshot.
    config.write_behind = [0, 500, usize::MAX][id as usize % 3];
    let env = boot.env.clone();
    let listener = env.net.listen(&format!("0.0.0.0:{PORT}")).await.map_err(|error| error.to_string())?;
    let dial = Arc::new(Plain(env.clone()));
    let opened = RaftStore::open(config, env.clone(), boot.engine.clone(), dial, Registers::default()).await;
    let store = opened.map_err(|error| error.to_string())?;
    if boot.incarnation == 1 && id == 1 {
        let members = NAMES.iter().zip(1..).map(|(name, id)| (id, format!("{name}:{PORT}"))).collect();
        store.initialize(members).await.map_err(|error| error.to_string())?;
    }
    drop(cara_env::spawn(write_when_asked(env.clone(), store.clone(), counted.clone())));
    drop(cara_env::spawn(write(boot.name.clone(), env.clone(), store.clone(), counted)));
    let routes = tonic::service::Routes::new(store.service()).prepare();
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let service = TowerToHyperService::new(routes.clone());
        drop(cara_env::spawn(async move {
            let mut builder = auto::Builder::new(Executor);
            builder.http2().timer(TokioTimer::new()).keep_alive_interval(KEEPALIVE).keep_alive_timeout(KEEPALIVE);
            let _ended = builder.serve_connection(TokioIo::new(stream), service).await;
        }));
    }
}

/// Adds one to a register whenever this member leads, and reports its state.
async fn write(name: String, env: Env, store: RaftStore<Registers>, counted: Arc<Counted>) {
    loop {
        env.clock.sleep(Duration::from_millis(5 + env.rng.below(40))).await;
        counted.states.lock().unwrap().insert(name.clone(), store.with_state(Registers::clone));
        let status = store.status();
        if status.role == Role::Follower {
            read(&name, &store, &counted).await;
        }
        if status.role != Role::Leader || counted.stopped.load(Ordering::Relaxed) {
            continue;
        }
        {
            let mut leader = counted.leader.lock().unwrap();
            if leader.as_ref().is_none_or(|(term, _)| *term <= status.term) {
                *leader = Some((status.term, name.clone()));
            }
        }
        let register = format!("r{}", env.rng.below(4));
        // Until the answer is there, it is one without an answer: the process may die here.
        counted.additions.lock().unwrap().entry(register.clone()).or_default().1 += 1;
        let done = store.propose(Command::Add(register.clone(), 1).encode()).await;
        let mut additions = counted.additions.lock().unwrap();
        let entry = additions.entry(register).or_default();
        match done {
            Ok(_) => {
                entry.0 += 1;
                entry.1 -= 1;
            }
            Err(ProposeError::Unknown { .. }) => {}
            Err(_) => entry.1 -= 1,
        }
    }
}

/// Proposes to a register of its own.
async fn write_when_asked(env: Env, store: RaftStore<Registers>, counted: Arc<Counted>) {
    loop {
        env.clock.sleep(Duration::from_millis(10)).await;
        if store.status().role == Role::Leader && counted.asked.swap(false, Ordering::Relaxed) {
            let answer = store.propose(Command::Add("asked".into(), 1).encode()).await;
            counted.answers.lock().unwrap().push(answer.map(drop));
        }
    }
}

/// Reads on a follower: what was acknowledged before must be there.
async fn read(name: &str, store: &RaftStore<Registers>, counted: &Counted) {
    let least = counted.acknowledged_now();
    if store.follower_barrier().await.is_err() {
        return;
    }
    counted.followed.fetch_add(1, Ordering::Relaxed);
    let state = store.with_state(Registers::clone);
    let missing = least.into_iter().filter(|(register, least)| state.get(register) < *least);
    counted.stale.lock().unwrap().extend(missing.map(|(register, least)| format!("{name}: {register} below {least}")));
}
