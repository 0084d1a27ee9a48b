//! What really ran, from the engines' own records: never two live copies of a stateful workload, a generation runs on
//! one node, and no node starts a generation that it knows to be revoked.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Finding, rules};

/// A container that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// On which node.
    pub node: String,
    /// Of which workload.
    pub workload: String,
    /// Which part of the workload; empty if it has only one.
    pub service: String,
    /// Under which generation of its placement.
    pub generation: u64,
    /// Has it a state that two copies would destroy?
    pub is_stateful: bool,
    /// When the engine started it.
    pub from: Duration,
    /// When it ended, by itself or not; none when it runs still.
    pub to: Option<Duration>,
}

/// A node learnt that this generation of a workload is granted now, and older ones are revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// When it had taken it in, say written its ledger.
    pub at: Duration,
    /// The node.
    pub node: String,
    /// The workload.
    pub workload: String,
    /// The newest generation that it knows.
    pub generation: u64,
}

/// What the copies contradict, in any order. A copy that ends in the instant in which another one starts is no overlap.
pub fn check(copies: &[Copy], told: &[Told]) -> Vec<Finding> {
    let mut of_part: BTreeMap<(&str, &str), Vec<&Copy>> = BTreeMap::new();
    for copy in copies {
        of_part.entry((&copy.workload, &copy.service)).or_default().push(copy);
    }
    let mut findings = Vec::new();
    for copies in of_part.values_mut() {
        copies.sort_by(|a, b| (a.from, &a.node).cmp(&(b.from, &b.node)));
        overlaps(copies, &mut findings);
        one_node(copies, &mut findings);
        never_back(copies, &mut findings);
    }
    revoked(copies, told, &mut findings);
    findings.sort();
    findings
}

impl Copy {
    fn told(&self) -> String {
        let part = if self.service.is_empty() { String::new() } else { format!(" {}", self.service) };
        format!("{}{part} generation {}", self.workload, self.generation)
    }

    fn lives_at(&self, at: Duration) -> bool {
        self.from <= at && self.to.is_none_or(|to| to > at)
    }
}

fn overlaps(copies: &[&Copy], findings: &mut Vec<Finding>) {
    // Of those that are live, only one that ends last can overlap with what starts later.
    let mut live: Option<&Copy> = None;
    for copy in copies.iter().filter(|copy| copy.is_stateful && copy.to.is_none_or(|to| to > copy.from)) {
        if let Some(other) = live.filter(|other| other.lives_at(copy.from)) {
            let text =
                format!("{} started on {} while {} was live on {}", copy.told(), copy.node, other.told(), other.node);
            findings.push(Finding::new(copy.from, rules::COPIES_ONE, &copy.node, text));
        }
        let ends = |copy: &Copy| copy.to.unwrap_or(Duration::MAX);
        if live.is_none_or(|other| ends(copy) >= ends(other)) {
            live = Some(copy);
        }
    }
}

fn one_node(copies: &[&Copy], findings: &mut Vec<Finding>) {
    let mut node_of: BTreeMap<u64, &str> = BTreeMap::new();
    for copy in copies {
        let first = *node_of.entry(copy.generation).or_insert(&copy.node);
        if first != copy.node {
            let text = format!("{} ran on {first} and on {}", copy.told(), copy.node);
            findings.push(Finding::new(copy.from, rules::COPIES_ONE, &copy.node, text));
        }
    }
}

fn never_back(copies: &[&Copy], findings: &mut Vec<Finding>) {
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for copy in copies {
        let newest = newest.entry(&copy.node).or_default();
        if copy.generation < *newest {
            let text = format!("{} started after generation {newest}", copy.told());
            findings.push(Finding::new(copy.from, rules::FENCE, &copy.node, text));
        }
        *newest = copy.generation.max(*newest);
    }
}

fn revoked(copies: &[Copy], told: &[Told], findings: &mut Vec<Finding>) {
    let mut known: BTreeMap<(&str, &str), Vec<&Told>> = BTreeMap::new();
    for told in told {
        known.entry((&told.node, &told.workload)).or_default().push(told);
    }
    for copy in copies {
        let known = known.get(&(copy.node.as_str(), copy.workload.as_str())).into_iter().flatten();
        let before = known.filter(|told| told.at < copy.from && told.generation > copy.generation);
        if let Some(told) = before.max_by_key(|told| told.generation) {
            let text = format!(
                "{} started though it knew since {:.3} that generation {} is granted",
                copy.told(),
                told.at.as_secs_f64(),
                told.generation
            );
            findings.push(Finding::new(copy.from, rules::FENCE, &copy.node, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(node: &str, generation: u64, from: u64, to: Option<u64>) -> Copy {
        Copy {
            node: node.into(),
            workload: "u".into(),
            service: "app".into(),
            generation,
            is_stateful: true,
            from: Duration::from_secs(from),
            to: to.map(Duration::from_secs),
        }
    }

    fn told(node: &str, generation: u64, at: u64) -> Told {
        Told { at: Duration::from_secs(at), node: node.into(), workload: "u".into(), generation }
    }

    fn rules_broken(copies: &[Copy], told: &[Told]) -> Vec<String> {
        check(copies, told).into_iter().map(|finding| finding.rule).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_move_that_stops_before_it_starts_passes() {
        let moved = [copy("n1", 1, 0, Some(5)), copy("n2", 2, 5, None)];
        assert_eq!(rules_broken(&moved, &[told("n1", 1, 0), told("n1", 2, 4), told("n2", 2, 4)]), NONE);
    }

    #[test]
    fn two_live_copies_of_a_stateful_workload_are_found() {
        let mut both = [copy("n1", 1, 0, Some(6)), copy("n2", 2, 5, None)];
        assert_eq!(rules_broken(&both, &[]), [rules::COPIES_ONE]);
        let twice = [copy("n1", 1, 0, None), copy("n1", 1, 5, None)];
        assert_eq!(rules_broken(&twice, &[]), [rules::COPIES_ONE]);
        both[0].is_stateful = false;
        both[1].is_stateful = false;
        assert_eq!(rules_broken(&both, &[]), NONE);
    }

    #[test]
    fn a_long_copy_is_not_hidden_by_a_short_one() {
        let all = [copy("n1", 1, 0, None), copy("n1", 1, 1, Some(2)), copy("n2", 2, 8, Some(9))];
        assert_eq!(check(&all, &[]).len(), 2);
    }

    #[test]
    fn one_generation_on_two_nodes_is_found_even_one_after_the_other() {
        let mut both = [copy("n1", 1, 0, Some(1)), copy("n2", 1, 5, Some(6))];
        both.iter_mut().for_each(|copy| copy.is_stateful = false);
        assert_eq!(rules_broken(&both, &[]), [rules::COPIES_ONE]);
    }

    #[test]
    fn a_node_that_goes_back_to_an_older_generation_is_found() {
        let back = [copy("n1", 2, 0, Some(1)), copy("n1", 1, 3, Some(4))];
        assert_eq!(rules_broken(&back, &[]), [rules::FENCE]);
        let again = [copy("n1", 1, 0, Some(1)), copy("n1", 1, 2, Some(3)), copy("n1", 3, 3, None)];
        assert_eq!(rules_broken(&again, &[]), NONE);
    }

    #[test]
    fn a_start_under_a_generation_that_the_node_knows_to_be_revoked_is_found() {
        let start = [copy("n1", 1, 5, Some(6))];
        assert_eq!(rules_broken(&start, &[told("n1", 2, 4)]), [rules::FENCE]);
        assert_eq!(rules_broken(&start, &[told("n1", 2, 7), told("n2", 2, 4), told("n1", 1, 4)]), NONE);
    }
}
