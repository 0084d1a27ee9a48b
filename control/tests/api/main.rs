//! The API of one server in this process: real TLS, real HTTP, real replication, memory behind the engine seam.

mod bad_input;
mod enrolment;
mod folders;
mod harness;
mod nodes;
mod tokens;
mod watch;
mod workloads;
