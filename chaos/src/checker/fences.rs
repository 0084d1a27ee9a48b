//! An agent never takes a desired set from an older leader: the fence in its ledger only rises.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cara_agent::ledger::Ledger;
use cara_env::Files;

/// A fence: incarnation, term, revision.
pub type Fence = (u64, u64, u64);

/// Follows the ledgers of all agents.
#[derive(Debug, Default)]
pub struct Fences {
    last: BTreeMap<String, Fence>,
}

impl Fences {
    /// Looks at an agent's ledger as it is on disk now; says what is wrong with it.
    pub fn look(&mut self, agent: &str, files: Arc<dyn Files>, ledger: PathBuf) -> Option<String> {
        let fence = match Ledger::open(files, ledger) {
            Ok(ledger) => ledger.fence(),
            Err(error) => return Some(format!("{agent}: {error}")),
        };
        self.advance(agent, (fence.incarnation, fence.term, fence.revision))
    }

    /// The last fence seen of an agent; all zero before the first.
    pub fn of(&self, agent: &str) -> Fence {
        self.last.get(agent).copied().unwrap_or_default()
    }

    fn advance(&mut self, agent: &str, now: Fence) -> Option<String> {
        let before = self.last.insert(agent.to_owned(), now).unwrap_or_default();
        (now < before).then(|| format!("{agent} went back from fence {before:?} to {now:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_term_is_found_even_with_a_newer_revision() {
        let mut fences = Fences::default();
        assert_eq!(fences.advance("n1", (1, 3, 10)), None);
        assert_eq!(fences.advance("n1", (1, 4, 9)), None);
        assert!(fences.advance("n1", (1, 3, 20)).is_some());
    }
}
