//! Members in this process, each with its own engine and its own port on loopback, without TLS.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use cara_env::{Engine, Env, Executor, Task};
use raft_store::testing::{Command, Registers, reply};
use raft_store::{Config, Dial, OpenError, Position, ProposeError, RaftStore, Role};
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint, Server};

/// No wait in these tests takes longer than this, however busy the machine is.
pub const LIMIT: Duration = Duration::from_secs(60);

pub type Store = RaftStore<Registers>;

pub struct Plain;

#[async_trait::async_trait]
impl Dial for Plain {
    async fn dial(&self, address: &str) -> io::Result<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(io::Error::other)?;
        endpoint.executor(Executor).connect().await.map_err(io::Error::other)
    }
}

pub fn config(id: u64) -> Config {
    Config {
        heartbeat: Duration::from_millis(100),
        election_min: Duration::from_millis(500),
        election_max: Duration::from_millis(1_000),
        propose_timeout: Duration::from_secs(10),
        read_timeout: Duration::from_secs(5),
        expect_empty: true,
        ..Config::new(id, "test")
    }
}

/// One member: its listener and engine outlive restarts.
pub struct Member {
    pub id: u64,
    pub address: String,
    listener: TcpListener,
    pub running: Option<Running>,
}

pub struct Running {
    pub store: Store,
    stop: oneshot::Sender<()>,
    serving: Task<()>,
}

impl Member {
    pub fn new(id: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("nonblocking");
        let address = listener.local_addr().expect("bound").to_string();
        Self { id, address, listener, running: None }
    }

    pub async fn start(&mut self, config: Config, engine: Arc<dyn Engine>) -> Result<(), OpenError> {
        let store = Store::open(config, Env::real(), engine, Arc::new(Plain), Registers::default()).await?;
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone().expect("clone")).expect("listener");
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        let (stop, stopped) = oneshot::channel::<()>();
        let server = Server::builder().add_service(store.service());
        let serving = cara_env::spawn(async move {
            let served = async { server.serve_with_incoming(incoming).await.expect("serves") };
            tokio::select! {
                biased;
                _ = stopped => {}
                () = served => {}
            }
        });
        self.running = Some(Running { store, stop, serving });
        Ok(())
    }

    pub fn store(&self) -> &Store {
        &self.running.as_ref().expect("this member runs").store
    }

    /// Ends the member. Its engine is dropped by the tasks that held it a moment later.
    pub async fn stop(&mut self) {
        let running = self.running.take().expect("this member runs");
        running.store.shutdown().await;
        running.stop.send(()).expect("the server runs");
        running.serving.await;
    }
}

/// A cluster of voters.
pub struct Cluster(pub BTreeMap<u64, Member>);

impl Cluster {
    /// Starts members 1 to `n`, each with what `setup` gives. `RUST_LOG` shows what they do.
    pub async fn start(n: u64, setup: impl Fn(u64) -> (Config, Arc<dyn Engine>)) -> Self {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        drop(tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init()); // The first test's stays.
        let mut members = BTreeMap::new();
        for id in 1..=n {
            let mut member = Member::new(id);
            let (config, engine) = setup(id);
            member.start(config, engine).await.expect("opens");
            members.insert(id, member);
        }
        let cluster = Self(members);
        let addresses = cluster.0.iter().map(|(id, member)| (*id, member.address.clone())).collect();
        cluster.0[&1].store().initialize(addresses).await.expect("initializes");
        cluster
    }

    pub fn running(&self) -> impl Iterator<Item = &Member> {
        self.0.values().filter(|member| member.running.is_some())
    }

    /// The id of the member that leads and that a majority has confirmed.
    pub async fn leader(&self) -> u64 {
        within(async {
            loop {
                for member in self.running() {
                    let store = member.store();
                    if store.status().role == Role::Leader && store.read_barrier().await.is_ok() {
                        return member.id;
                    }
                }
                tick().await;
            }
        })
        .await
    }

    /// Proposes until somebody acknowledges it. A command whose outcome was unknown may be applied twice.
    pub async fn write(&self, command: &Command) -> (Position, i64) {
        within(async {
            loop {
                let leader = self.leader().await;
                match self.0[&leader].store().propose(command.encode()).await {
                    Ok(done) => return (done.position, reply(&done.reply).expect("a number")),
                    Err(ProposeError::NotLeader { .. } | ProposeError::NoQuorum | ProposeError::Unknown { .. }) => {
                        tick().await;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        })
        .await
    }

    /// Waits until all that run have applied `index`, and gives their common state.
    pub async fn agree(&self, index: u64) -> Registers {
        let mut states = Vec::new();
        for member in self.running() {
            applied(member.store(), index).await;
        }
        // They may be at different later positions while elections write entries; the registers don't change any more.
        for member in self.running() {
            states.push(member.store().with_state(Clone::clone));
        }
        assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "members differ: {states:?}");
        states.remove(0)
    }
}

pub async fn applied(store: &Store, index: u64) {
    let reached = |at: Option<Position>| at.is_some_and(|at| at.index >= index);
    store.wait(LIMIT, "entry not applied", |status| reached(status.applied)).await.expect("applies");
}

/// A short pause between two looks at something that has no signal of its own.
pub async fn tick() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("this takes far too long")
}

/// Waits until nobody holds the engine any more.
pub async fn released<T: ?Sized>(engine: std::sync::Weak<T>) {
    within(async {
        while engine.strong_count() > 0 {
            tick().await;
        }
    })
    .await;
}
