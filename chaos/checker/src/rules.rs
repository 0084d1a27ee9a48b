//! The rules that a correct cluster keeps, by their stable names.

/// A rule: its name and what it says, one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Stable: scenarios, reports and regressions name rules by it.
    pub name: &'static str,
    /// What a correct cluster does.
    pub means: &'static str,
}

/// See [`RULES`].
pub const CORE_INVARIANTS: &str = "core.invariants";
/// See [`RULES`].
pub const ELECTION_SAFETY: &str = "raft.election-safety";
/// See [`RULES`].
pub const LOG_MATCHING: &str = "raft.log-matching";
/// See [`RULES`].
pub const LEADER_COMPLETENESS: &str = "raft.leader-completeness";
/// See [`RULES`].
pub const COMMITTED_IMMUTABLE: &str = "raft.committed-immutable";
/// See [`RULES`].
pub const QUORUM: &str = "raft.quorum";
/// See [`RULES`].
pub const STATE_HASH: &str = "raft.state-hash";
/// See [`RULES`].
pub const TERM_REGRESSED: &str = "raft.term-regressed";
/// See [`RULES`].
pub const VOTE_REGRESSED: &str = "raft.vote-regressed";
/// See [`RULES`].
pub const APPLIED: &str = "raft.applied";
/// See [`RULES`].
pub const LINEARIZABLE: &str = "linearizable";
/// See [`RULES`].
pub const WATCH_ORDER: &str = "watch.order";
/// See [`RULES`].
pub const COPIES_ONE: &str = "copies.one";
/// See [`RULES`].
pub const FENCE: &str = "fence";
/// See [`RULES`].
pub const OFFLINE_HONEST: &str = "offline.honest";
/// See [`RULES`].
pub const WRITES_DURABLE: &str = "writes.durable";
/// See [`RULES`].
pub const TOKENS_ONCE: &str = "tokens.once";
/// See [`RULES`].
pub const AUDIT_COMPLETE: &str = "audit.complete";
/// See [`RULES`].
pub const CONVERGED: &str = "converged";
/// See [`RULES`].
pub const ORPHANS: &str = "orphans";
/// See [`RULES`].
pub const VOLUMES_KEPT: &str = "volumes.kept";
/// See [`RULES`].
pub const VERSIONS_MIXED: &str = "versions.mixed";

/// Every rule, in the order in which they are listed for people.
pub const RULES: &[Rule] = &[
    rule(CORE_INVARIANTS, "Every state that a server ever has keeps the invariants of the domain."),
    rule(ELECTION_SAFETY, "A term has one leader at most."),
    rule(LOG_MATCHING, "Entries with the same index and term are the same, and so is everything before them."),
    rule(LEADER_COMPLETENESS, "A leader has every entry that was committed in an earlier term."),
    rule(COMMITTED_IMMUTABLE, "A committed entry is never replaced and never cut off."),
    rule(QUORUM, "What is committed is in the logs of a majority of the voters."),
    rule(STATE_HASH, "Servers that have applied the same entries have the same state."),
    rule(TERM_REGRESSED, "A server's term never goes back, not over a restart either."),
    rule(VOTE_REGRESSED, "A server votes once in a term and never forgets its vote, not over a restart either."),
    rule(APPLIED, "A server applies only what is committed, and never goes back but by a restart."),
    rule(
        LINEARIZABLE,
        "All calls on a key can be put into one order that respects real time and explains each answer.",
    ),
    rule(WATCH_ORDER, "A watch tells every change once and in order, or says that it can't and is followed by a list."),
    rule(COPIES_ONE, "A stateful workload never has two live copies, and a generation runs on one node."),
    rule(FENCE, "A node never obeys an older leader nor starts a generation that it knows to be revoked."),
    rule(
        OFFLINE_HONEST,
        "A node whose heartbeats arrive is not declared offline, and a new leader waits a full timeout.",
    ),
    rule(WRITES_DURABLE, "What was acknowledged is there at the end, and what was deleted is gone."),
    rule(
        TOKENS_ONCE,
        "A token admits one key once, a refused attempt leaves it usable, a retry gets the same certificate.",
    ),
    rule(AUDIT_COMPLETE, "Each acknowledged change has exactly one audit record, in the order of revisions."),
    rule(
        CONVERGED,
        "Once faults are lifted, servers agree and nodes run what was asked for, by themselves and in time.",
    ),
    rule(ORPHANS, "At the end no container, volume or network is left that nothing wants."),
    rule(VOLUMES_KEPT, "A workload that moves has everything that it wrote before."),
    rule(VERSIONS_MIXED, "While a server runs the release before this one, nothing is decided that it can't know."),
];

/// What a rule says; none for a name that is no rule.
pub fn means(name: &str) -> Option<&'static str> {
    RULES.iter().find(|rule| rule.name == name).map(|rule| rule.means)
}

const fn rule(name: &'static str, means: &'static str) -> Rule {
    Rule { name, means }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_a_name_of_its_own_and_one_sentence() {
        let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            assert!(rule.means.ends_with('.') && rule.means.matches(". ").count() == 0, "{}", rule.means);
            assert_eq!(means(rule.name), Some(rule.means));
        }
        assert_eq!(means("no.such-rule"), None);
    }
}
