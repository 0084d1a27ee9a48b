//! The API of one server in this process: real TLS, real HTTP, real replication, memory behind the engine seam.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod agent;
mod bad_input;
mod databases;
mod drains;
mod enrolment;
mod folders;
mod harness;
mod leaders;
mod levels;
mod lost;
mod moves;
mod nodes;
mod placement;
mod projects;
mod quarantine;
mod relay;
mod returns;
mod tokens;
mod volume_moves;
mod watch;
mod workloads;
