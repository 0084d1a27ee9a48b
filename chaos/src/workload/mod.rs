//! What clients do, as the plan says: they write and read registers (an annotation of an app), create, change and delete
//! workloads, cordon and label nodes, let machines join, and race for tokens. And what they were told: the history.

mod bodies;
mod client;
pub mod history;
pub mod rest;
mod watcher;

use cara_env::Rng;

pub use bodies::declared_labels;
pub use client::{Part, client};
pub use watcher::{SEEN_MAX, watch};

/// What clients shall do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing yet: the cluster is being set up.
    #[default]
    Setup,
    /// Carry out the plan.
    Work,
    /// End what has begun, begin nothing.
    Rest,
    /// Read everything once more.
    Final,
}

/// One of several names.
pub(crate) fn pick(rng: &dyn Rng, names: &[String]) -> String {
    let index = usize::try_from(rng.below(names.len() as u64)).unwrap_or(0);
    names.get(index).cloned().unwrap_or_default()
}
