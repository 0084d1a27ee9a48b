//! Short stories of a watcher.

use super::*;

fn change(object: &str) -> Change {
    Change { object: object.into(), what: "put".into() }
}

fn event(revision: u64, object: &str) -> Seen {
    Seen::Event { revision, change: change(object) }
}

fn from(revision: u64) -> Seen {
    Seen::Connected { from: Some(revision) }
}

fn list(revision: u64) -> Seen {
    Seen::Listed { revision }
}

/// Revision 3 changed nothing that is watched, and 4 two objects.
fn truth() -> Truth {
    let of = |objects: &[&str]| objects.iter().map(|object| change(object)).collect();
    Truth::from([(1, of(&["a"])), (2, of(&["b"])), (4, of(&["a", "c"])), (5, of(&["b"])), (6, of(&["a"]))])
}

fn watcher(seen: &[Seen]) -> Watcher {
    let noted = seen.iter().zip(1..).map(|(seen, at)| (Duration::from_secs(at), seen.clone())).collect();
    Watcher { name: "n1".into(), noted, must_reach: None }
}

fn wrong(seen: &[Seen]) -> Vec<String> {
    check(&watcher(seen), &truth()).into_iter().map(|finding| finding.text).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn changes_in_order_pass_over_reconnections_too() {
    assert_eq!(wrong(&[from(0), event(1, "a"), event(2, "b"), event(4, "c"), event(4, "a"), event(5, "b")]), NONE);
    assert_eq!(wrong(&[from(1), event(2, "b"), Seen::Ended, from(2), event(4, "a"), event(4, "c")]), NONE);
    assert_eq!(wrong(&[list(2), from(2), event(4, "a"), event(4, "c")]), NONE);
    // It asks again for a revision of which it has seen only a half.
    assert_eq!(wrong(&[from(2), event(4, "a"), Seen::Ended, from(3), event(4, "a"), event(4, "c")]), NONE);
    // From whatever is now.
    assert_eq!(wrong(&[Seen::Connected { from: None }, event(4, "a"), event(4, "c"), event(5, "b")]), NONE);
    assert_eq!(wrong(&[from(2), Seen::Progress { revision: 3 }, event(4, "a"), event(4, "c")]), NONE);
}

#[test]
fn a_gap_is_found() {
    assert_eq!(wrong(&[from(0), event(2, "b")]), ["it was told revision 2 and was never told put a of revision 1"]);
    assert!(wrong(&[from(2), event(4, "a"), event(5, "b")])[0].contains("never told put c of revision 4"));
    assert!(wrong(&[from(0), event(1, "a"), event(6, "a")])[0].contains("put b of revision 2 and 3 more"));
    assert!(wrong(&[from(1), Seen::Progress { revision: 2 }])[0].contains("never told put b of revision 2"));
}

#[test]
fn a_gap_between_two_connections_is_found() {
    assert!(
        wrong(&[from(1), event(2, "b"), Seen::Ended, from(4)])[0].contains("asked for what comes after revision 4")
    );
    assert!(wrong(&[from(2), event(4, "a"), Seen::Ended, from(4)])[0].contains("never told put c of revision 4"));
}

#[test]
fn a_repeat_and_a_step_back_are_found() {
    assert!(wrong(&[from(1), event(2, "b"), event(2, "b")])[0].contains("twice"));
    assert!(wrong(&[from(4), event(5, "b"), event(2, "b")])[0].contains("after revision 5"));
    assert!(wrong(&[from(4), event(4, "a")])[0].contains("after revision 4"));
    assert!(wrong(&[list(5), list(4)])[0].contains("list of revision 4 after it had seen 5"));
    assert!(wrong(&[list(5), Seen::Progress { revision: 3 }])[0].contains("progress to 3 after 5"));
}

#[test]
fn a_change_that_never_happened_is_found() {
    assert!(wrong(&[from(4), event(5, "z")])[0].contains("which never happened"));
}

#[test]
fn after_compacted_a_list_must_come() {
    let compacted = [from(0), event(1, "a"), Seen::Compacted];
    let then = |more: &[Seen]| wrong(&[&compacted[..], more].concat());
    assert_eq!(then(&[list(5), from(5), event(6, "a")]), NONE);
    assert_eq!(then(&[Seen::Ended, from(0), list(5), event(6, "a")]), NONE);
    assert!(then(&[event(6, "a")])[0].contains("had to be given a list first"));
    assert_eq!(then(&[from(5), event(6, "a")]).len(), 1);
}

#[test]
fn who_connects_anew_from_whatever_is_now_must_be_given_a_list() {
    let now = Seen::Connected { from: None };
    assert_eq!(wrong(&[from(1), event(2, "b"), now.clone(), list(5), event(6, "a")]), NONE);
    assert_eq!(wrong(&[from(1), event(2, "b"), now, event(6, "a")]).len(), 1);
}

#[test]
fn who_must_have_seen_everything_and_has_not_is_found() {
    let mut behind = watcher(&[from(4), event(5, "b")]);
    assert_eq!(check(&behind, &truth()), []);
    behind.must_reach = Some(5);
    assert_eq!(check(&behind, &truth()), []);
    behind.must_reach = Some(6);
    let findings = check(&behind, &truth());
    assert_eq!(findings[0].text, "it ended at 5 and was never told put a of revision 6");
    assert_eq!((findings[0].host.as_str(), findings[0].at), ("n1", Duration::from_secs(2)));
}

#[test]
fn what_one_watcher_missed_is_known_from_the_others() {
    let all = [watcher(&[from(1), event(2, "b"), event(4, "a")]), watcher(&[from(1), event(4, "a")])];
    let truth = union(&all);
    assert_eq!(check(&all[0], &truth), []);
    assert_eq!(check(&all[1], &truth).len(), 1);
}
