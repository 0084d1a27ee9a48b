//! For tests: a small machine that proves replication without a domain, and an engine that stops at a chosen write.

mod journal;
mod registers;
mod wire;

pub use journal::JournalEngine;
pub use registers::{Command, Registers, reply};
pub use wire::read_as_every_message;
