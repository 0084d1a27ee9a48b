//! Chaos: builds a cluster, breaks it on purpose, and judges what happened.
//!
//! ```text
//!   cmd::sim ── run (one seed) ── world     servers, agents, clients: the production code on simulated machines
//!                   │          ├─ workload  what clients do, and the history of it
//!                   │          ├─ nemesis   faults drawn from the seed, always healed
//!                   │          └─ checker   judges: one file per question
//!                   └─ outcome: one line, and the trace's hash
//! ```
//!
//! A checker only reads. It judges by what ran and by what clients were told, not by what a server believes.

pub mod checker;
pub mod cmd;
pub mod log;
pub mod nemesis;
pub mod observer;
pub mod outcome;
pub mod rest;
pub mod run;
pub mod workload;
pub mod world;
