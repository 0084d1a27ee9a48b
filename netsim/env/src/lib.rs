//! The seams: everything through which this project touches the world outside its own memory.
//!
//! Servers and agents get an [`Env`] and never reach past it. Production hands them [`Env::real`]; the simulator hands
//! each simulated host its own, with a clock, a network, randomness and files that one seed decides. That is the whole
//! difference between the two worlds: the code under test is the code that ships.
//!
//! | seam | production | simulation |
//! |---|---|---|
//! | [`Clock`] | the kernel's clocks | the simulated host's clock, with offset, drift and steps |
//! | [`Net`] | TCP | turmoil's links, with partitions and delays |
//! | [`spawn`] | a tokio task | a tokio task behind the host's [`Host`] gate, so that it can be frozen |
//! | [`Rng`] | the kernel | one stream per host, from the seed |
//! | [`Files`] | small files with fsync and rename | files in memory with torn writes |
//! | [`Engine`] | RocksDB (in `raft-store`) | an ordered map that forgets what was not synced |
//!
//! Invariant: outside this crate nothing calls `Instant::now`, `tokio::spawn` or a random source; clippy holds it.
//! What is absent: policy. No retry, no timeout, no domain word lives here.

mod clock;
mod engine;
mod files;
mod net;
mod planted;
mod point;
mod rng;
mod task;

use std::sync::Arc;

pub use clock::{Clock, Elapsed, RealClock, Timeout, timeout};
pub use engine::{Batch, Cf, Engine, KeyValue, Op};
pub use files::{Files, RealFiles};
pub use net::{Io, IoStream, Listener, Net, RealNet};
pub use planted::planted;
pub use point::{mark, point};
pub use rng::{RealRng, Rng, hex};
pub use task::{Executor, Host, Task, blocking, current_host, on_host, spawn};

/// One host's view of the world. Cheap to clone; a clone is the same world.
#[derive(Clone)]
pub struct Env {
    /// Monotonic and wall time, and sleeping.
    pub clock: Arc<dyn Clock>,
    /// Outgoing and incoming connections.
    pub net: Arc<dyn Net>,
    /// Randomness fit for keys and tokens in production, reproducible in simulation.
    pub rng: Arc<dyn Rng>,
    /// Small durable files: identity, ledger, keys.
    pub files: Arc<dyn Files>,
}

impl Env {
    /// The world of this process: the kernel's clock, TCP, randomness and file system.
    pub fn real() -> Self {
        Self {
            clock: Arc::new(RealClock::new()),
            net: Arc::new(RealNet),
            rng: Arc::new(RealRng),
            files: Arc::new(RealFiles),
        }
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}
