//! What is in volumes: a workload that moves takes all that it has written with it.
//!
//! Containers of the simulated engine append numbered lines to their volumes. A volume that once was a workload's own
//! and was left behind by a move must be the beginning of the one that the workload has now.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Finding, rules};

/// One volume, wherever it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The node.
    pub node: String,
    /// Whose: a workload's id.
    pub workload: String,
    /// Its name in the workload.
    pub name: String,
    /// The data generation that made it.
    pub generation: u64,
    /// What was written into it, oldest first.
    pub lines: Vec<String>,
}

/// A workload's data generations that were in force, oldest first; the last one is in force now. After data was given up
/// on purpose the list begins anew.
pub type Lineage = BTreeMap<String, Vec<u64>>;

/// Everything that a move has lost, or changed on its way.
pub fn check(at: Duration, volumes: &[Volume], lineage: &Lineage) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (workload, generations) in lineage {
        let Some((now, before)) = generations.split_last() else { continue };
        let own = |volume: &&Volume| volume.workload == *workload;
        for current in volumes.iter().filter(own).filter(|volume| volume.generation == *now) {
            let left = volumes.iter().filter(own).filter(|volume| volume.name == current.name);
            for old in left.filter(|volume| before.contains(&volume.generation)) {
                findings.extend(difference(at, old, current));
            }
        }
    }
    findings
}

fn difference(at: Duration, old: &Volume, current: &Volume) -> Option<Finding> {
    let at_line = (0..old.lines.len()).find(|line| old.lines.get(*line) != current.lines.get(*line))?;
    let text = format!(
        "volume {} of {}: line {} on {} (generation {}) is {:?}, and {:?} on {} (generation {}), where it moved",
        current.name,
        current.workload,
        at_line + 1,
        old.node,
        old.generation,
        old.lines[at_line],
        current.lines.get(at_line).map_or("missing", String::as_str),
        current.node,
        current.generation
    );
    Some(Finding::new(at, rules::VOLUMES_KEPT, &current.node, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(node: &str, generation: u64, lines: &[&str]) -> Volume {
        Volume {
            node: node.into(),
            workload: "u".into(),
            name: "data".into(),
            generation,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    fn lineage(generations: &[u64]) -> Lineage {
        [("u".to_owned(), generations.to_vec())].into()
    }

    #[test]
    fn what_was_written_before_the_move_is_there_after_it() {
        let volumes = [volume("n1", 1, &["1 1", "1 2"]), volume("n2", 3, &["1 1", "1 2", "3 3"])];
        assert_eq!(check(Duration::ZERO, &volumes, &lineage(&[1, 3])), []);
    }

    #[test]
    fn a_line_that_was_lost_or_changed_is_found() {
        let lost = [volume("n1", 1, &["1 1", "1 2"]), volume("n2", 3, &["1 1"])];
        let changed = [volume("n1", 1, &["1 1", "1 2"]), volume("n2", 3, &["1 1", "3 2"])];
        for volumes in [lost, changed] {
            let findings = check(Duration::ZERO, &volumes, &lineage(&[1, 3]));
            assert_eq!(findings.len(), 1);
            assert!(findings[0].text.contains("line 2 on n1"), "{}", findings[0].text);
        }
    }

    #[test]
    fn copies_that_were_never_in_force_prove_nothing() {
        let volumes = [volume("n1", 1, &["1 1"]), volume("n3", 2, &["1 1", "2 2"]), volume("n2", 4, &["1 1", "4 2"])];
        assert_eq!(check(Duration::ZERO, &volumes, &lineage(&[1, 4])), []);
    }
}
