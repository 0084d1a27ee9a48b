//! The API of one server in this process: real TLS, real HTTP, real replication, memory behind the engine seam.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod bad_input;
mod enrolment;
mod folders;
mod harness;
mod nodes;
mod tokens;
mod watch;
mod workloads;
