//! Volumes on their way between nodes: this node as the source, as the target, or neither.
//!
//! ```text
//!   source's agent                                   target's agent
//!   listen ─► source: Volumes (mTLS) ◄── dial ────── pull: one task per workload and round
//!      ▲                                                │
//!      └─── tunnel ─► leader: Relay ◄─── tunnel ────────┘   when the source can't be dialled
//! ```
//!
//! What is copied where stands in the desired set of both nodes, and in nothing else: the target's [`desk`] begins the wanted
//! round and ends it when something else is wanted, the source answers only what its own ledger tells it to. Both are nodes
//! of one cluster and prove it to each other ([`trust`]), also through the relay, which sees nothing but TLS.
//!
//! Invariants: the source changes nothing; the target writes into staged volumes only, never two rounds at a time; whatever
//! breaks, the round is begun again and finds what it has.

pub(crate) mod desk;
pub(crate) mod listen;
mod progress;
mod pull;
mod source;
mod trust;
mod tunnel;

use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use cara_proto::agent::Desired;
use tokio::sync::watch;

use crate::keeper::Keeper;
use crate::labels::Owner;
use crate::runtime::ContainerRuntime;

/// Steps of a scan or of a round made in one go on a thread that may block. Most are an entry that needs a few microseconds,
/// less than handing it over; of the longest, which read a MiB, this many take a second or two of a slow disk.
const STEPS_AT_A_TIME: usize = 256;

/// What both sides of a transfer need.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) env: Env,
    pub(crate) runtime: Arc<dyn ContainerRuntime>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) owner: Owner,
    /// What this node was told last, from the ledger.
    pub(crate) desired: watch::Receiver<Option<Arc<Desired>>>,
    /// `host:port` of the server with which there is a session.
    pub(crate) leader: watch::Receiver<Option<String>>,
    pub(crate) connect_deadline: Duration,
    pub(crate) call_deadline: Duration,
    pub(crate) backoff_min: Duration,
}

impl Ground {
    /// Nanoseconds since 1970, as the scans want it.
    fn now_ns(&self) -> i64 {
        i64::try_from(self.env.clock.wall_ms()).unwrap_or(i64::MAX).saturating_mul(1_000_000)
    }
}
