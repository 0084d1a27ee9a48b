//! `caractrl`, the operator's command line.
//!
//! ```text
//!   main -> cli (words) -> access (flag > env > context file) -> cmd/<verb> -> client (HTTPS, failover)
//!                                                                   |-> view (rows) -> out (table, json, yaml)
//! ```
//!
//! Two parts are for other programs as well: [`client`], the REST client with failover, and [`dev::cluster`], which
//! starts, kills and restarts the real binaries on loopback.
//!
//! Invariant: stdout carries the data, stderr the talk; every failure becomes a [`failure::Failure`] with an exit code.

pub mod access;
pub mod cli;
pub mod client;
mod cmd;
pub mod config;
pub mod dev;
pub mod failure;
mod follow;
pub mod kind;
pub mod manifest;
pub mod out;
mod suggest;
mod view;
mod wait;

pub use cmd::run;
