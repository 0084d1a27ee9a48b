//! Replication: a state machine that several servers apply in the same order, and that survives the loss of a minority
//! of them. Generic; what the commands mean is up to the [`StateMachine`].
//!
//! ```text
//!   RaftStore::propose ─► openraft ─► log ──────┐ append, group commit
//!                            │                  ▼
//!       peers ◄─ network ────┤               Engine (RocksDB, or the simulator's disk)
//!       peers ─► service ────┤                  ▲
//!                            ▼                  │ now and then, one batch: state + last applied
//!   with_state ◄── Shared ◄─ Machine ───────────┘
//! ```
//!
//! | file | part |
//! |---|---|
//! | [`machine`](StateMachine) | what the domain brings |
//! | `handle`, `members`, `read` | what the server calls: propose, change members, linearizable reads |
//! | `log`, `meta`, `state` (written by `behind`), `snapshot` | what is stored, in the four column families |
//! | `network`, `connection`, `pace`, `service` | what goes to and comes from the peers |
//! | `status`, `standing` | what a member knows of itself, and whom its changes wake |
//! | `suspect` | a leader that is known to be dead is replaced before its lease runs out |
//! | `rt` | openraft's tasks and randomness through the seams |
//! | [`rocks`], [`memory`] | engines; [`engine_contract`] is what both must keep |
//! | [`inspect`] | what a write says, for checkers outside |
//! | [`testing`] | a small machine that proves replication without a domain |
//!
//! Invariants: a vote or an entry is durable before anyone is told; state and its position change in one batch; no read
//! is served on the word of a leader alone. What is absent: TLS and the proof of who a peer is (the caller's [`Dial`]
//! and its server do that), forwarding to the leader, retries, idempotency.

mod behind;
mod codec;
mod config;
mod connection;
mod disk;
pub mod engine_contract;
mod error;
mod handle;
pub mod inspect;
mod log;
mod machine;
mod members;
pub mod memory;
mod meta;
mod network;
mod pace;
mod read;
mod recent;
pub mod rocks;
mod rt;
mod service;
mod snapshot;
mod standing;
mod state;
mod status;
mod suspect;
pub mod testing;
mod types;

pub use config::{COMMAND_MAX, Config, LowSpace, WRITE_BEHIND};
pub use connection::Dial;
pub use error::{ChangeError, Leader, OpenError, ProposeError, ReadError};
pub use handle::{Proposed, RaftStore};
pub use machine::{Applied, Damaged, Position, StateMachine};
pub use members::members;
pub use service::RaftService;
pub use standing::Standing;
pub use status::{Role, Status};

#[cfg(test)]
mod storage_tests;
