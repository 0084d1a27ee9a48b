//! Judges over plain histories: linearizability, watch order, raft's promises, what ran where.

mod finding;

pub use finding::Finding;
