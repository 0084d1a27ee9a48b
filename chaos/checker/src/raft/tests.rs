//! Short stories of a cluster, and what raft says about them.

use super::*;

const NONE: [&str; 0] = [];

/// A cluster that is told about in steps; each says which rules it broke.
#[derive(Default)]
struct Story {
    raft: Raft,
    at: Duration,
}

impl Story {
    fn see(&mut self, server: &str, incarnation: u64, view: &View) -> Vec<String> {
        self.at += Duration::from_millis(10);
        self.raft.observe(self.at, server, incarnation, view).into_iter().map(|finding| finding.rule).collect()
    }

    /// A leader of term 1 commits three entries; `b` has them, `c` has two.
    fn begun() -> Self {
        let mut story = Self::default();
        assert_eq!(story.see("a", 1, &leader(view(1, entries(1, 0..=2), Some(2)))), NONE);
        assert_eq!(story.see("b", 1, &view(1, entries(1, 0..=2), Some(1))), NONE);
        assert_eq!(story.see("c", 1, &view(1, entries(1, 0..=1), Some(0))), NONE);
        story
    }
}

fn entries(term: u64, indexes: std::ops::RangeInclusive<u64>) -> Vec<Entry> {
    indexes.map(|index| Entry { index, term, fingerprint: index * 1000 + term }).collect()
}

fn view(term: u64, appended: Vec<Entry>, committed: Option<u64>) -> View {
    let vote = Some(Vote { term, server: Some(term), committed: true });
    View { term, vote, appended, committed, applied: committed, ..View::default() }
}

fn leader(view: View) -> View {
    View { leads: true, ..view }
}

#[test]
fn a_change_of_leader_that_keeps_what_is_committed_passes() {
    let mut story = Story::begun();
    let cut = View { truncated_from: Some(3), ..view(2, entries(2, 3..=4), Some(2)) };
    // It had taken one more entry that was never committed.
    assert_eq!(story.see("b", 1, &view(1, entries(1, 3..=3), Some(2))), NONE);
    assert_eq!(story.see("c", 1, &view(2, entries(1, 2..=2), Some(1))), NONE);
    assert_eq!(story.see("c", 1, &leader(view(2, entries(2, 3..=4), Some(2)))), NONE);
    assert_eq!(story.see("b", 1, &cut), NONE);
    assert_eq!(story.see("a", 1, &view(2, entries(2, 3..=4), Some(4))), NONE);
    assert_eq!(story.raft.leaders().collect::<Vec<_>>(), [(1, "a"), (2, "c")]);
    assert_eq!(story.raft.committed(), Some(4));
}

#[test]
fn two_leaders_of_one_term_are_found_once() {
    let mut story = Story::begun();
    let second = leader(view(1, entries(1, 2..=2), Some(0)));
    assert_eq!(story.see("c", 1, &second), [rules::ELECTION_SAFETY]);
    assert_eq!(story.see("c", 1, &View { appended: Vec::new(), ..second }), NONE);
}

#[test]
fn a_leader_without_a_committed_entry_is_found() {
    let mut story = Story::begun();
    let findings = story.raft.observe(story.at, "c", 1, &leader(view(2, Vec::new(), Some(0))));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule, rules::LEADER_COMPLETENESS);
    assert_eq!(
        findings[0].text,
        "it leads term 2 but lacks entry 2 of term 1, which a knows as committed: its log ends at 1"
    );
}

#[test]
fn an_old_leader_need_not_have_what_a_newer_one_committed() {
    let mut story = Story::begun();
    assert_eq!(story.see("b", 1, &leader(view(2, entries(2, 3..=5), Some(5)))), NONE);
    // It was frozen, and still believes to lead.
    assert_eq!(story.see("a", 1, &leader(view(1, entries(1, 3..=3), Some(2)))), NONE);
}

#[test]
fn a_leader_whose_committed_entries_are_in_a_snapshot_passes() {
    let mut story = Story::begun();
    let behind = View { purged_to: Some(2), ..view(2, Vec::new(), Some(2)) };
    assert_eq!(story.see("d", 1, &leader(behind)), NONE);
}

#[test]
fn entries_that_do_not_match_are_found() {
    let mut story = Story::begun();
    let other = vec![Entry { index: 2, term: 1, fingerprint: 7 }];
    assert_eq!(story.see("c", 1, &view(1, other, Some(0))), [rules::LOG_MATCHING]);
    // The same entry, but after another one than elsewhere.
    let mut story = Story::default();
    assert_eq!(story.see("a", 1, &view(3, [entries(1, 0..=0), entries(3, 1..=1)].concat(), None)), NONE);
    let before = vec![Entry { index: 0, term: 2, fingerprint: 2 }, entries(3, 1..=1)[0]];
    assert_eq!(story.see("b", 1, &view(3, before, None)), [rules::LOG_MATCHING]);
}

#[test]
fn another_entry_committed_at_the_same_index_is_found() {
    let mut story = Story::begun();
    assert_eq!(story.see("c", 1, &view(2, entries(2, 2..=2), Some(2))), [rules::COMMITTED_IMMUTABLE]);
}

#[test]
fn a_committed_entry_that_is_cut_off_is_found_unless_a_restart_lost_it() {
    let cut = View { truncated_from: Some(2), ..view(1, Vec::new(), Some(1)) };
    assert_eq!(Story::begun().see("b", 1, &cut), [rules::COMMITTED_IMMUTABLE]);
    let mut story = Story::begun();
    assert_eq!(story.see("b", 2, &cut), NONE);
    // Replaced by another entry without saying that anything was cut off.
    assert_eq!(Story::begun().see("b", 1, &view(2, entries(2, 2..=2), Some(1))), [rules::COMMITTED_IMMUTABLE]);
}

#[test]
fn an_entry_that_is_told_twice_is_no_change() {
    let mut story = Story::begun();
    assert_eq!(story.see("b", 1, &view(1, entries(1, 0..=1), Some(2))), NONE);
    assert_eq!(story.see("b", 1, &view(1, entries(1, 3..=3), Some(3))), NONE);
}

#[test]
fn a_term_that_goes_back_is_found_over_a_restart_too_and_not_after_a_wipe() {
    let mut story = Story::begun();
    let vote = Some(Vote { term: 1, server: Some(1), committed: true });
    let later = View { vote, ..view(5, Vec::new(), Some(2)) };
    assert_eq!(story.see("a", 1, &later), NONE);
    let back = View { term: 4, ..later };
    assert_eq!(story.see("a", 2, &back), [rules::TERM_REGRESSED]);
    story.raft.forget("a");
    assert_eq!(story.see("a", 3, &View { term: 1, ..back }), NONE);
}

#[test]
fn a_second_vote_in_a_term_is_found_over_a_restart_too() {
    let vote = |term, server, committed| View { vote: Some(Vote { term, server, committed }), ..view(9, vec![], None) };
    let mut story = Story::default();
    assert_eq!(story.see("a", 1, &vote(9, None, false)), NONE);
    assert_eq!(story.see("a", 1, &vote(9, Some(2), false)), NONE);
    assert_eq!(story.see("a", 2, &vote(9, Some(2), true)), NONE);
    assert_eq!(story.see("a", 2, &vote(9, Some(3), true)), [rules::VOTE_REGRESSED]);
    assert_eq!(story.see("a", 2, &vote(9, Some(3), false)), [rules::VOTE_REGRESSED]);
    assert_eq!(story.see("a", 3, &vote(8, Some(3), true)), [rules::VOTE_REGRESSED]);
    assert_eq!(story.see("a", 4, &View { vote: None, ..view(9, vec![], None) }), [rules::VOTE_REGRESSED]);
}

#[test]
fn what_was_committed_or_applied_goes_back_only_by_a_restart() {
    let mut story = Story::begun();
    let back = view(1, Vec::new(), Some(0));
    assert_eq!(story.see("b", 1, &back), [rules::COMMITTED_IMMUTABLE, rules::APPLIED]);
    let mut story = Story::begun();
    assert_eq!(story.see("b", 2, &back), NONE);
    assert_eq!(story.see("b", 2, &view(1, Vec::new(), Some(2))), NONE);
}

#[test]
fn what_is_applied_before_it_is_committed_is_found() {
    let early = View { applied: Some(2), ..view(1, Vec::new(), Some(1)) };
    assert_eq!(Story::begun().see("b", 1, &early), [rules::APPLIED]);
}

#[test]
fn states_that_differ_after_the_same_entry_are_found() {
    let mut raft = Raft::new();
    let mut apply = |server, incarnation, index, hash| {
        let findings = raft.applied(Duration::ZERO, server, incarnation, index, hash);
        findings.into_iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(apply("a", 1, 5, 55), NONE);
    assert_eq!(apply("a", 1, 6, 66), NONE);
    assert_eq!(apply("b", 1, 6, 67), [rules::STATE_HASH]);
    assert_eq!(apply("a", 1, 5, 55), [rules::APPLIED]);
    assert_eq!(apply("a", 2, 4, 44), NONE);
    assert_eq!(apply("a", 2, 5, 55), NONE);
}

#[test]
fn what_is_committed_must_be_in_most_logs() {
    let voters = ["a", "b", "c"];
    let mut story = Story::begun();
    assert_eq!(story.raft.quorum(story.at, &voters), None);
    assert_eq!(story.see("a", 1, &leader(view(1, entries(1, 3..=3), Some(3)))), NONE);
    let finding = story.raft.quorum(story.at, &voters).unwrap();
    assert_eq!(finding.rule, rules::QUORUM);
    assert!(finding.text.ends_with("of 3 voters only [\"a\"] have it"), "{}", finding.text);
    assert_eq!(story.raft.quorum(story.at, &voters), None, "it is told once");
    // A power loss that takes an entry from the second of two that had it.
    let mut story = Story::begun();
    assert_eq!(story.see("b", 2, &View { truncated_from: Some(2), ..view(1, Vec::new(), None) }), NONE);
    assert!(story.raft.quorum(story.at, &voters).is_some());
}

#[test]
fn a_long_log_costs_no_more_than_its_changes() {
    let mut story = Story::default();
    let count = 50_000;
    for index in 0..count {
        let next = leader(view(1, entries(1, index..=index), index.checked_sub(1)));
        assert_eq!(story.see("a", 1, &next), NONE);
    }
    assert_eq!(story.raft.committed(), Some(count - 2));
}
