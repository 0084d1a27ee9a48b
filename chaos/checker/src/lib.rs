//! Judges over plain histories: linearizability, watch order, raft's promises, what ran where.
//!
//! Everything here is pure: strings, numbers and durations go in, [`Finding`]s come out. Nothing knows what a server or
//! a simulator is, so the same judges serve simulated and real runs.
//!
//! Times are simulated time since the world began, except where a comment says otherwise.

pub mod audit;
pub mod converged;
pub mod copies;
pub mod durable;
pub mod fence;
mod finding;
pub mod linear;
pub mod offline;
pub mod orphans;
pub mod raft;
pub mod rules;
pub mod sometimes;
pub mod tokens;
mod verdict;
pub mod volumes;
pub mod watch;

pub use finding::Finding;
pub use rules::RULES;
pub use verdict::{HARNESS_ERROR, Judgement, Verdict};
