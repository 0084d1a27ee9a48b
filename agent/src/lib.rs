//! The agent of one node: it enrols once, keeps a session with the leader, and makes the node run what it was given.
//!
//! ```text
//!   servers <--- connect, session ---> ledger ---> reconcile: observe, plan, execute ---> runtime (Docker, memory)
//!                 heartbeats            on disk                    |
//!                 reports <----------------------------------------+
//! ```
//!
//! The session and the reconciling are separate tasks that share two values: the last desired set, and the last report.
//! So an engine that hangs never delays a heartbeat, and servers that are away never stop a container: the ledger on
//! disk is what the node runs, with or without anyone to talk to.
//!
//! Invariants: what carries no label of this cluster and node is never touched; a desired set older than the last one
//! is never acted on; [`plan`] is pure and decides everything that [`run`] does to the engine.
//! What is absent: any judgement about the node's health or placement. Those are the leader's.

mod backoff;
mod config;
mod connect;
mod enrol;
mod error;
mod execute;
mod facts;
mod health;
mod identity;
mod instance;
mod keeper;
pub mod labels;
pub mod ledger;
mod logs;
pub mod mode;
pub mod observed;
mod permit;
pub mod plan;
mod preflight;
mod probe;
mod readings;
mod reconcile;
mod reenrol;
mod renew;
mod run;
pub mod runtime;
mod session;
mod sizes;
mod staged;
mod status;
#[cfg(test)]
mod testing;
pub mod tracker;
mod transfer;
mod witness;

pub use config::{Config, VOLUME_LISTEN_DEFAULT};
pub use error::{EnrolError, RunError};
pub use identity::{Identity, IdentityError};
pub use preflight::{Findings, preflight};
pub use readings::{DiskProbe, DiskSpace};
pub use reenrol::reenroll;
pub use run::run;
pub use runtime::ContainerRuntime;
pub use witness::Witness;
