//! A node never obeys an older leader: the fence in its ledger only rises.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::{Finding, rules};

/// Tells newer orders from older ones; ordered as the fields are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    /// Of the cluster: rises when it is restored from a backup.
    pub incarnation: u64,
    /// Of the leader.
    pub term: u64,
    /// Of the state.
    pub revision: u64,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.incarnation, self.term, self.revision)
    }
}

/// Follows the fences of all nodes.
#[derive(Debug, Default)]
pub struct Fences {
    last: BTreeMap<String, Fence>,
}

impl Fences {
    /// The node's fence is this now.
    pub fn advance(&mut self, at: Duration, node: &str, now: Fence) -> Option<Finding> {
        let before = self.last.insert(node.to_owned(), now).unwrap_or_default();
        let text = || format!("its fence went back from {before} to {now}");
        (now < before).then(|| Finding::new(at, rules::FENCE, node, text()))
    }

    /// The node's folder was wiped or replaced: it may begin anew.
    pub fn forget(&mut self, node: &str) {
        self.last.remove(node);
    }

    /// The last fence seen of a node; all zero before the first.
    pub fn of(&self, node: &str) -> Fence {
        self.last.get(node).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(incarnation: u64, term: u64, revision: u64) -> Fence {
        Fence { incarnation, term, revision }
    }

    #[test]
    fn an_older_term_is_found_even_with_a_newer_revision() {
        let mut fences = Fences::default();
        let mut advance = |node: &str, now| fences.advance(Duration::ZERO, node, now);
        assert_eq!(advance("n1", fence(1, 3, 10)), None);
        assert_eq!(advance("n1", fence(1, 4, 9)), None);
        assert_eq!(advance("n2", fence(1, 1, 1)), None);
        assert_eq!(advance("n1", fence(1, 3, 20)).map(|found| found.host), Some("n1".into()));
    }

    #[test]
    fn a_wiped_node_may_begin_anew() {
        let mut fences = Fences::default();
        fences.advance(Duration::ZERO, "n1", fence(1, 4, 9));
        fences.forget("n1");
        assert_eq!(fences.advance(Duration::ZERO, "n1", fence(1, 2, 3)), None);
        assert_eq!(fences.of("n1"), fence(1, 2, 3));
    }
}
