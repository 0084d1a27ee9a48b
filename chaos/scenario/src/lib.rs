//! Fault scenarios as data: the file format, what a seed makes of it, when which fault hits whom, and how to shrink one.
//!
//! ```text
//!   scenario.toml ──parse──► Scenario ──plan(seed)──► Plan ──► Schedule ──due──► actions for the world
//!        ▲                      ▲                      │            ▲
//!        │                      └── swarm(seed)        │            └── chaos points that were reached
//!        └────────── shrink ◄── to_scenario ◄──────────┘
//! ```
//!
//! Pure: no world, no clock. Every draw comes from a stream of its own, named by what it is for, so that taking away one
//! fault or operation moves no other: that is what makes shrinking and hand-editing possible.

mod check;
mod explain;
mod kind;
mod plan;
mod problem;
mod rng;
mod scenario;
mod schedule;
mod shrink;
mod swarm;
mod target;
mod time;

pub use check::{EVENTS, RULES};
pub use explain::explain;
pub use kind::{Kind, OpKind, Role};
pub use plan::{Plan, PlannedFault, Sometimes, What, When, plan};
pub use scenario::{
    Budget, Cluster, Dir, Every, Expect, FORMAT, Fault, Invalid, Latency, On, PlannedOp, RunSpec, Scenario, Workload,
    schema,
};
pub use schedule::{Action, Installed, Schedule};
pub use shrink::{Shows, Shrunk, shrink};
pub use swarm::swarm;
pub use target::View;
pub use time::{Span, SpanRange, Step, duration_text, parse_duration};
