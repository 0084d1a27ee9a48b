//! One simulated machine: what survives its processes, and what each process gets when it starts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_env::{Engine, Env};
use tokio::sync::watch;

use crate::clock::{Crystal, Now, SimClock};
use crate::conn::Conns;
use crate::disk::Disk;
use crate::files::{FileStore, SimFiles};
use crate::gate::Gate;
use crate::link::Links;
use crate::net::SimNet;
use crate::open_disk::OpenDisk;
use crate::pipe::Pipes;
use crate::points::Points;
use crate::rng::SimRng;

/// What a process gets when its machine starts it.
#[derive(Clone)]
pub struct Boot {
    /// The machine's name in the world's network.
    pub name: String,
    /// The seams.
    pub env: Env,
    /// The database, open.
    pub engine: Arc<dyn Engine>,
    /// The medium below the database, for drivers that keep another database beside it.
    pub disk: Arc<Disk>,
    /// 1 for the first start of this machine, then 2, ...
    pub incarnation: u64,
    /// Becomes true when the process shall end by itself ([`crate::World::stop`]).
    pub shutdown: watch::Receiver<bool>,
}

/// How a process ended by itself.
pub(crate) type Exit = Result<(), String>;

/// The parts of the world that machines share.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) seed: u64,
    pub(crate) now: Now,
    pub(crate) links: Arc<Links>,
    pub(crate) pipes: Arc<Pipes>,
    pub(crate) conns: Arc<Conns>,
    pub(crate) points: Arc<Points>,
    pub(crate) connections: Arc<AtomicU64>,
}

/// A machine.
pub(crate) struct Machine {
    pub(crate) name: String,
    ground: Ground,
    pub(crate) gate: Arc<Gate>,
    pub(crate) disk: Arc<Disk>,
    pub(crate) files: Arc<FileStore>,
    pub(crate) crystal: Arc<Crystal>,
    /// Tells the process that runs now to end by itself.
    pub(crate) shutdown: watch::Sender<bool>,
    /// Starts so far.
    incarnations: AtomicU64,
    /// The incarnation that may touch disk and files; 0 while no process runs.
    pub(crate) alive: Arc<AtomicU64>,
    pub(crate) exit: Arc<Mutex<Option<Exit>>>,
    /// Restart this long after the process ended by itself, as a service manager does.
    pub(crate) restart_after: Option<Duration>,
}

impl Machine {
    pub(crate) fn new(name: &str, ground: Ground, restart_after: Option<Duration>) -> Self {
        let stream = |what: &str| SimRng::new(ground.seed, &format!("{what}/{name}"));
        Self {
            name: name.to_owned(),
            gate: Arc::new(Gate::new(name, ground.points.clone(), stream("libraries"), stream("kernel"))),
            disk: Arc::new(Disk::new(name, ground.now.clone(), ground.seed, ground.points.clone())),
            files: Arc::default(),
            crystal: Arc::default(),
            shutdown: watch::Sender::new(false),
            incarnations: AtomicU64::new(0),
            alive: Arc::default(),
            exit: Arc::default(),
            restart_after,
            ground,
        }
    }

    /// A process starts. Must be called in the machine's runtime.
    pub(crate) fn boot(&self) -> Boot {
        let incarnation = self.incarnations.fetch_add(1, Ordering::Relaxed) + 1;
        self.alive.store(incarnation, Ordering::Relaxed);
        self.gate.reset(self.ground.seed, &format!("libraries/{}/{incarnation}", self.name));
        self.shutdown.send_replace(false);
        *self.exit.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let clock = Arc::new(SimClock::new(self.ground.now.clone(), self.crystal.clone()));
        let net = SimNet {
            host: self.name.clone(),
            links: self.ground.links.clone(),
            pipes: self.ground.pipes.clone(),
            conns: self.ground.conns.clone(),
            clock: clock.clone(),
            connections: self.ground.connections.clone(),
        };
        let env = Env {
            clock: clock.clone(),
            net: Arc::new(net),
            rng: Arc::new(SimRng::new(self.ground.seed, &format!("host/{}/{incarnation}", self.name))),
            files: Arc::new(SimFiles::new(&self.name, self.files.clone(), self.alive.clone())),
        };
        let engine = Arc::new(OpenDisk::new(self.disk.clone(), clock, self.alive.clone()));
        let (name, disk, shutdown) = (self.name.clone(), self.disk.clone(), self.shutdown.subscribe());
        Boot { name, env, engine, disk, incarnation, shutdown }
    }

    /// Starts so far.
    pub(crate) fn incarnations(&self) -> u64 {
        self.incarnations.load(Ordering::Relaxed)
    }

    /// How the process ended by itself, if it did.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
