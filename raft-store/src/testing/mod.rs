//! For tests: a small machine that proves replication without a domain, and an engine that stops at a chosen write.

mod journal;
mod registers;

pub use journal::JournalEngine;
pub use registers::{Command, Registers, reply};
