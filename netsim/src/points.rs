//! Chaos points that tasks have reached, and the names at which the driver wants hosts to be held.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::trace;

/// A driver that takes nothing for so long does not look at points at all; the rest is only in the trace.
const REACHED_MAX: usize = 100_000;

/// A chaos point that a host has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// The machine.
    pub host: String,
    /// The point's name.
    pub point: &'static str,
    /// What the code says of it.
    pub detail: String,
}

impl Reached {
    /// The value of a key in the detail, which is words of the form `key=value`.
    pub fn word(&self, key: &str) -> Option<&str> {
        self.detail.split_whitespace().find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
    }
}

#[derive(Debug, Default)]
struct State {
    watched: BTreeSet<String>,
    reached: Vec<Reached>,
}

/// All points of a world.
#[derive(Debug, Default)]
pub(crate) struct Points(Mutex<State>);

impl Points {
    /// From now on a host that reaches one of these points is held until the driver has had its turn.
    pub(crate) fn watch(&self, names: BTreeSet<String>) {
        self.lock().watched = names;
    }

    /// Does somebody wait for this point? For points so frequent that they are only told of when watched.
    pub(crate) fn is_watched(&self, point: &str) -> bool {
        let state = self.lock();
        !state.watched.is_empty() && state.watched.contains(point)
    }

    /// A task has reached a point; tells whether its host shall be held.
    pub(crate) fn reached(&self, host: &str, point: &'static str, detail: &str) -> bool {
        trace::note(host, point, detail);
        let mut state = self.lock();
        let watched = state.watched.contains(point);
        if state.reached.len() < REACHED_MAX {
            state.reached.push(Reached { host: host.to_owned(), point, detail: detail.to_owned() });
        }
        watched
    }

    /// What was reached since the last call, in order.
    pub(crate) fn take(&self) -> Vec<Reached> {
        std::mem::take(&mut self.lock().reached)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_a_detail_only_as_a_whole_word() {
        let reached = |detail: &str| Reached { host: "s1".into(), point: "raft.elected", detail: detail.into() };
        assert_eq!(reached("node=n1 term=7").word("term"), Some("7"));
        assert_eq!(reached("midterm=3").word("term"), None);
    }
}
