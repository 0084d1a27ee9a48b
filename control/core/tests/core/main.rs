//! The domain's tests: stories by noun, properties over random commands, and bytes that must stay readable.

#![allow(clippy::unwrap_used, reason = "a test may end by a panic")]

mod world;

mod access;
mod codec;
mod dependants;
mod drains;
mod enrolment;
mod entries;
mod golden;
mod health;
mod invariants;
mod levels;
mod move_exploration;
mod moves;
mod names;
mod nodes;
mod placement;
mod properties;
mod quarantine;
mod reconcile;
mod reconcile_moves;
mod returns;
mod rotation;
mod sealing;
mod sessions;
mod spec;
mod tokens;
mod workloads;
