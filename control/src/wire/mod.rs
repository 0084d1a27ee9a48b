//! The only border with the wire: JSON and gRPC shapes on one side, the domain's types on the other.

mod agent;
mod certificate;
mod drains;
pub mod duration;
mod event;
mod host;
mod moves;
mod node;
mod node_conditions;
mod node_network;
mod quantity;
mod service;
mod time;
mod workload;
mod workload_view;

pub use agent::{assignment, facts, removal, status_report};
pub use certificate::{Warnings, certificate_view};
pub use drains::{drain_plan, drain_view};
pub use event::watch_event;
pub use host::reached_at;
pub use moves::{app_move_view, kind_of_word, kind_word, move_view, node_name, phases_of};
pub use node::{Around, node_manifest, node_view};
pub use time::{millis, parse_time, rfc3339};
pub use workload::{apply_workload, kind_of, kind_path};
pub use workload_view::workload_view;
