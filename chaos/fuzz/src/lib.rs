//! Readers of bytes that others wrote, each with the property that it must keep whatever the bytes are.
//!
//! | module | reads |
//! |---|---|
//! | [`log`] | entries and outcomes of the log, stored objects, and the replies to them |
//! | [`wire`] | frames of agents and servers, replication between servers |
//! | [`bodies`] | JSON bodies of the API, as far as a command and back to what is shown |
//! | [`manifest`] | YAML files of people |
//! | [`files`] | identities and ledgers on disk, join tokens, certificates |
//!
//! A property is a function that panics when it is broken. `tests/fuzz.rs` runs each over random bytes and over all that was
//! ever found (`tests/__fuzz__`); `make fuzz` runs the same with libFuzzer, which finds its way by coverage.

pub mod bodies;
pub mod files;
pub mod log;
pub mod manifest;
pub mod wire;

// Under libFuzzer's instrumentation the empty test binary of this crate needs libFuzzer too, or it can't be linked.
#[cfg(test)]
use bolero as _;
