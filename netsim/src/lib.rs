//! The simulated world: the same production code on simulated machines, links, clocks and disks, decided by one seed.
//!
//! ```text
//!   World ── Machine ── Gate   (which tasks may be polled: freeze, slow CPU)
//!     │         ├────── SimClock, SimRng, SimFiles, SimNet   (the seams of cara_env)
//!     │         └────── Disk   (cara_env::Engine that forgets what was not synced)
//!     ├── Links            (who can reach whom, composed from overlapping faults)
//!     ├── Pipes, Conns     (how long bytes take between two hosts; open connections, which can be reset)
//!     ├── trace            (everything observable, hashed as it happens)
//!     └── turmoil::Sim     (TCP between hosts, one paused tokio runtime a host)
//! ```
//!
//! A run is a function of its seed. For that to hold to the byte: one seed per process, the whole run on one thread,
//! and [`override_libc!`] in the binary, so that libraries which ask the kernel for time or randomness get the world's.
//!
//! Three faults are three different things: **crash** (the process dies, the kernel lives: connections get a FIN,
//! written data stays), **power loss** (the machine falls silent, unsynced writes are gone) and **freeze** (nothing is
//! polled, connections stay open, the clock goes on).
//!
//! Invariant: nothing here knows a word of the domain. What is absent: judging. Checkers live in `chaos`.

#![allow(unexpected_cfgs)] // tokio's own flag, checked just below.

#[cfg(not(any(tokio_unstable, doc, doctest)))]
compile_error!(
    "netsim needs `--cfg tokio_unstable`: without it tokio's own random choices are not seeded and no run can be \
     repeated. The flag is set in .cargo/config.toml; an environment variable RUSTFLAGS replaces that file, so add the \
     flag there too."
);

mod clock;
mod conn;
mod disk;
mod faults;
mod files;
mod gate;
pub mod libc;
mod link;
mod machine;
mod net;
mod open_disk;
mod pipe;
mod points;
mod rng;
mod snapshot;
mod spread;
mod tap;
pub mod trace;
mod wire;
mod world;

pub use clock::{DRIFT_MAX_PPM, EPOCH_MS, SimClock};
pub use disk::{Disk, Fate, Latency};
pub use files::SimFiles;
pub use gate::{Counters, Gate};
pub use machine::Boot;
pub use points::Reached;
pub use rng::SimRng;
pub use snapshot::Snapshot;
pub use spread::Spread;
pub use tap::Change;
pub use world::{Settings, World, WorldError};
