//! Thousands of agents: the agent crate's own sessions over mutual TLS, with the memory runtime, many in each process.
//!
//! ```text
//!   cara-bench agents ── starts ──► cara-server x3 (or the user's)
//!        │ stdin: tokens, orders          ▲ mutual TLS from 127.x.y.z
//!        ├── cara-bench agents-worker ────┤  agents 1..
//!        ├── cara-bench agents-worker ────┘  agents ..N
//!        │ stdout: what they counted, five times a second
//!        └── watches for nodes called offline, asks the API, kills the leader, writes the report
//! ```

mod beats;
mod failover;
mod fleet;
mod host;
mod offline;
mod run;
mod tick;
mod worker;

pub use fleet::{Fleet, Size};
pub use run::{Options, run};
pub use tick::Tick;
pub use worker::work;
