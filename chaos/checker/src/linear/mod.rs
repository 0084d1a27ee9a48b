//! Are the calls on each key linearizable: is there one order of them that respects real time and in which a plain
//! register would have given every answer?
//!
//! Keys are judged one by one. Reads and writes of values that are each written once take no search at all (`zones`).
//! Other histories are searched as Wing and Gong did it, with Lowe's memo (`search`); the work is
//! bounded: a history that takes more is [`Judged::TooHard`], which is a reason for the verdict *unknown*, never a pass.

mod need;
mod search;
#[cfg(test)]
mod tests;
mod told;
mod zones;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Finding, rules};

/// States that the search of one key may visit: a second or two of work, and about 100 MB for a long history.
pub const BUDGET: u64 = 1_000_000;

/// One call of a client on one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Who.
    pub client: String,
    /// On which key.
    pub key: String,
    /// What was asked, and what the answer said.
    pub act: Act,
    /// When it was first sent. Calls that end and start in the same instant count as overlapping.
    pub start: Duration,
    /// When the answer came. None: unknown outcome, it may take effect at any time after its start, or never.
    pub end: Option<Duration>,
    /// Which server answered, for the report; empty if not known.
    pub answered_by: String,
}

/// An operation on a register that holds a number or is absent (as it is in the beginning). What an answer said is
/// ignored in calls without an end. Leave out calls that were refused without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Sets the value.
    Write(u64),
    /// The value that was read; none when absent.
    Read(Option<u64>),
    /// Makes it absent. `found`: did the answer say that there was a value? None when it doesn't tell.
    Delete {
        /// Was there something to delete?
        found: Option<bool>,
    },
    /// Sets `new` if the value is `expected` (none: absent), atomically.
    CompareAndSet {
        /// What the value had to be.
        expected: Option<u64>,
        /// What it was set to.
        new: u64,
        /// Did the answer say that it was done?
        done: bool,
    },
}

/// What the search found out about a key. Numbers are places in the list of calls that was given to [`check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// An order that explains every answer. Calls without an outcome that need not have happened aren't in it.
    Linearizable {
        /// The order.
        order: Vec<usize>,
    },
    /// There is no order.
    Broken {
        /// The longest start of an order that was found.
        longest: Vec<usize>,
        /// The first call, by its end, that can't follow it.
        stuck: usize,
    },
    /// The budget is spent: not known.
    TooHard {
        /// States that were visited.
        states: u64,
    },
}

/// What is known about the calls on one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub key: String,
    /// Its calls, places in the list that was given to [`check`], by start.
    pub calls: Vec<usize>,
    /// The result.
    pub judged: Judged,
}

/// Judges each key; `budget` as [`BUDGET`], for each key. Keys come sorted.
pub fn check(calls: &[Call], budget: u64) -> Vec<Key> {
    let mut keys: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, call) in calls.iter().enumerate() {
        keys.entry(&call.key).or_default().push(i);
    }
    let judge = |(key, mut of_key): (&str, Vec<usize>)| {
        of_key.sort_by_key(|i| calls[*i].start);
        let judged = search::judge(calls, &of_key, budget);
        Key { key: key.to_owned(), calls: of_key, judged }
    };
    keys.into_iter().map(judge).collect()
}

impl Key {
    /// The finding if it is not linearizable; the text tells the calls around the one that can't be placed.
    pub fn finding(&self, calls: &[Call]) -> Option<Finding> {
        let Judged::Broken { longest, stuck } = &self.judged else { return None };
        let call = &calls[*stuck];
        let at = call.end.unwrap_or(call.start);
        let text = told::broken(&self.key, calls, &self.calls, longest, *stuck);
        Some(Finding::new(at, rules::LINEARIZABLE, &call.answered_by, text))
    }

    /// The reason for the verdict *unknown* if it was too hard to judge.
    pub fn unknown(&self) -> Option<String> {
        let Judged::TooHard { states } = self.judged else { return None };
        Some(format!(
            "the {} calls on {} are too hard to judge: no order found in {states} states; use more keys or fewer clients",
            self.calls.len(),
            self.key
        ))
    }

    /// The place of a call in the order that was found (0 = first), whole or partial; none when it is not in it.
    pub fn place(&self, call: usize) -> Option<usize> {
        let order = match &self.judged {
            Judged::Linearizable { order } => order,
            Judged::Broken { longest, .. } => longest,
            Judged::TooHard { .. } => return None,
        };
        order.iter().position(|placed| *placed == call)
    }
}
