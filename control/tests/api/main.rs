//! The API of one server in this process: real TLS, real HTTP, real replication, memory behind the engine seam.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod agent;
mod api_tokens;
mod audit;
mod bad_input;
mod certificates;
mod contract;
mod databases;
mod drains;
mod enrolment;
mod folders;
mod harness;
mod health;
mod leaders;
mod levels;
mod limits;
mod lost;
mod moves;
mod nodes;
mod openapi;
mod placement;
mod projects;
mod quarantine;
mod recover;
mod relay;
mod returns;
mod scopes;
mod sealing;
mod secrets;
mod tokens;
mod volume_moves;
mod watch;
mod workloads;
