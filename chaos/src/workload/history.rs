//! What clients did and were told.

use std::collections::BTreeMap;
use std::time::Duration;

use cara_checker::audit::Asked;
use cara_checker::durable::Life;
use cara_checker::linear::Call;
use cara_checker::watch::Seen;
use http::StatusCode;

/// More strange answers of one run than these teach nothing.
const STRANGE_MAX: usize = 5;

/// Several machines that were given one join token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Race {
    /// The token's id.
    pub token: String,
    /// The machines.
    pub nodes: Vec<String>,
}

/// Everything that clients did and were told.
#[derive(Debug, Default, Clone)]
pub struct History {
    /// Calls on registers, in the order in which they ended.
    pub calls: Vec<Call>,
    /// Workloads by name, registers apart.
    pub lives: BTreeMap<String, Life>,
    /// Operations that have begun and not ended, by client.
    pub pending: BTreeMap<String, String>,
    /// Requests for changes.
    pub asked: Vec<Asked>,
    /// How many of them were acknowledged.
    pub acknowledged: u64,
    /// What each watcher saw, in its order.
    pub watched: BTreeMap<String, Vec<(Duration, Seen)>>,
    /// Token races.
    pub races: Vec<Race>,
    /// Nodes that were described before their machines came: labelled, and cordoned.
    pub declared: Vec<String>,
    /// Answers that a correct cluster never gives.
    pub strange: Vec<(Duration, String)>,
    /// All workloads as read at the very end: name and a register's value.
    pub at_the_end: Option<BTreeMap<String, Option<u64>>>,
    /// Next value to write.
    pub(super) next_value: u64,
    /// Calls begun per register slot, to know when to go on to the next register.
    pub(super) begun: BTreeMap<u64, usize>,
}

impl History {
    /// The last revision of which a watcher was told.
    pub fn told_to(&self) -> Option<u64> {
        self.watched.values().filter_map(|noted| reached(noted)).max()
    }

    /// Was every watcher told of something as late as this revision, or given a list of it?
    pub fn are_all_told(&self, revision: u64) -> bool {
        self.watched.values().all(|noted| reached(noted) >= Some(revision))
    }

    /// Notes an answer that a correct cluster never gives.
    pub fn strange(&mut self, at: Duration, who: &str, what: &str, status: StatusCode, body: &[u8]) {
        if self.strange.len() < STRANGE_MAX {
            self.strange.push((at, format!("{who} {what}: {status} {}", String::from_utf8_lossy(body))));
        }
    }
}

/// How far a watcher has come.
fn reached(noted: &[(Duration, Seen)]) -> Option<u64> {
    noted.iter().rev().find_map(|(_, seen)| match seen {
        Seen::Event { revision, .. } | Seen::Listed { revision } | Seen::Progress { revision } => Some(*revision),
        Seen::Connected { from } => *from,
        Seen::Compacted | Seen::Ended => None,
    })
}
