//! cara-server: one of three or five servers that share the state of a cluster through raft.
//!
//! Read `server` first: it starts everything. Then `machine` (the domain behind the replication), `leader` (what only
//! the leader does) and `api` (what can be asked). The rules themselves are in `cara_core`; nothing here decides one.

pub mod config;
pub mod error;
pub mod identity;
pub mod pki;
pub mod recover;
pub mod sealing_keys;
pub mod server;
pub mod setup;
pub mod version;

mod api;
mod certificates;
mod claims;
mod dispatch;
mod engines;
mod keeper;
mod leader;
mod level;
mod machine;
mod membership;
mod metrics;
mod relay;
mod sealing;
mod sessions;
mod token_uses;
mod transfers;
pub mod wire;

pub use config::Config;
pub use machine::Machine;
pub use server::{RunError, run};
