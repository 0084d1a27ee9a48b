//! Chaos: builds a cluster, breaks it on purpose, and judges what happened.
//!
//! ```text
//!   cmd ── child, pool    one process a run, many at a time
//!    │
//!    └─ run (one plan) ── world     servers, agents, clients: the production code on simulated machines
//!               │      ├─ workload  what clients do, and the history of it
//!               │      ├─ nemesis   carries out the schedule of faults
//!               │      ├─ judge     hands what happened to the checkers
//!               │      └─ recorder  what a report draws
//!               └─ outcome, bundle: one line, and a folder for each failure
//!
//!   pure, in crates of their own: cara-scenario (what breaks when), cara-checker (the judges), cara-report (the page)
//! ```

pub mod bundle;
pub mod child;
pub mod cli;
pub mod cmd;
pub mod judge;
pub mod library;
pub mod log;
pub mod matrix;
pub mod museum;
pub mod nemesis;
pub mod order;
pub mod outcome;
pub mod pool;
mod process;
pub mod recorder;
pub mod rocks_lane;
pub mod run;
pub mod shared;
pub mod workload;
pub mod world;
