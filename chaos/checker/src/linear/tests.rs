//! Small histories whose answer is plain to see.

use super::*;

fn call(act: Act, start: u64, end: impl Into<Option<u64>>) -> Call {
    Call {
        client: "c".into(),
        key: "k".into(),
        act,
        start: Duration::from_secs(start),
        end: end.into().map(Duration::from_secs),
        answered_by: "s1".into(),
    }
}

fn swap(expected: Option<u64>, new: u64, done: bool) -> Act {
    Act::CompareAndSet { expected, new, done }
}

fn delete(found: bool) -> Act {
    Act::Delete { found: Some(found) }
}

fn judge(calls: &[Call]) -> Judged {
    check(calls, BUDGET).remove(0).judged
}

fn is_linearizable(calls: &[Call]) -> bool {
    match judge(calls) {
        Judged::Linearizable { .. } => true,
        Judged::Broken { .. } => false,
        Judged::TooHard { states } => panic!("too hard after {states} states"),
    }
}

#[test]
fn a_read_after_an_acknowledged_write_must_see_it() {
    let write = call(Act::Write(1), 0, 1);
    assert!(is_linearizable(&[write.clone(), call(Act::Read(Some(1)), 2, 3)]));
    assert!(!is_linearizable(&[write, call(Act::Read(None), 2, 3)]));
}

#[test]
fn a_read_during_a_write_may_see_either_value() {
    let writes = [call(Act::Write(1), 0, 1), call(Act::Write(2), 2, 6)];
    for seen in [1, 2] {
        assert!(is_linearizable(&[&writes[..], &[call(Act::Read(Some(seen)), 3, 4)]].concat()));
    }
}

#[test]
fn calls_that_end_and_start_in_one_instant_overlap() {
    assert!(is_linearizable(&[call(Act::Write(1), 0, 2), call(Act::Read(None), 2, 3)]));
}

#[test]
fn two_reads_in_a_row_never_go_back() {
    let writes = [call(Act::Write(1), 0, 1), call(Act::Write(2), 2, 9)];
    let reads = [call(Act::Read(Some(2)), 3, 4), call(Act::Read(Some(1)), 5, 6)];
    assert!(!is_linearizable(&[writes, reads].concat()));
}

#[test]
fn an_unanswered_write_may_take_effect_late_or_never() {
    let never = [call(Act::Write(1), 0, 1), call(Act::Write(2), 2, None), call(Act::Read(Some(1)), 8, 9)];
    assert!(is_linearizable(&never));
    let late = [&never[..], &[call(Act::Read(Some(2)), 10, 11)]].concat();
    assert!(is_linearizable(&late));
    let back = [&late[..], &[call(Act::Read(Some(1)), 12, 13)]].concat();
    assert!(!is_linearizable(&back));
}

#[test]
fn a_deleted_key_reads_as_absent() {
    let story = [call(Act::Write(1), 0, 1), call(Act::Delete { found: None }, 2, 3), call(Act::Read(None), 4, 5)];
    assert!(is_linearizable(&story));
    assert!(!is_linearizable(&[&story[..2], &[call(Act::Read(Some(1)), 4, 5)]].concat()));
}

#[test]
fn of_two_deletes_only_one_finds_the_value() {
    let write = call(Act::Write(1), 0, 1);
    for (first, second) in [(true, false), (false, true)] {
        assert!(is_linearizable(&[write.clone(), call(delete(first), 2, 5), call(delete(second), 2, 5)]));
    }
    assert!(!is_linearizable(&[write.clone(), call(delete(true), 2, 5), call(delete(true), 2, 5)]));
    assert!(!is_linearizable(&[write, call(delete(false), 2, 5), call(delete(false), 2, 5)]));
}

#[test]
fn of_two_swaps_of_one_value_only_one_is_done() {
    let write = call(Act::Write(1), 0, 1);
    let race = |first, second| {
        is_linearizable(&[write.clone(), call(swap(Some(1), 2, first), 2, 5), call(swap(Some(1), 3, second), 2, 5)])
    };
    assert!(race(true, false));
    assert!(!race(true, true));
    assert!(!race(false, false));
    assert!(is_linearizable(&[call(swap(None, 4, true), 0, 1), call(Act::Read(Some(4)), 2, 3)]));
}

#[test]
fn an_unanswered_write_explains_a_refused_swap_though_nobody_reads_it() {
    let refused = [call(Act::Write(1), 0, 1), call(Act::Write(2), 1, None), call(swap(Some(1), 3, false), 4, 5)];
    assert!(is_linearizable(&refused));
    assert!(!is_linearizable(&[refused[0].clone(), refused[2].clone()]));
}

#[test]
fn keys_are_judged_apart_and_the_clash_is_told() {
    let mut calls = vec![call(Act::Write(1), 0, 1), call(Act::Write(2), 2, 3), call(Act::Read(Some(1)), 4, 5)];
    calls.push(Call { key: "other".into(), ..call(Act::Read(None), 0, 9) });
    let keys = check(&calls, BUDGET);
    assert_eq!(keys[1].judged, Judged::Linearizable { order: vec![3] });
    assert_eq!(keys[1].finding(&calls), None);
    assert_eq!(keys[0].judged, Judged::Broken { longest: vec![0, 1], stuck: 2 });
    assert_eq!((keys[0].place(1), keys[0].place(2)), (Some(1), None));
    let finding = keys[0].finding(&calls).unwrap();
    assert_eq!((finding.rule.as_str(), finding.at), (rules::LINEARIZABLE, Duration::from_secs(5)));
    assert!(
        finding.text.contains("2 can be placed, then the value is 2 and this can't follow: [4.000 5.000] c read 1")
    );
}

#[test]
fn a_value_that_nobody_wrote_is_told() {
    let calls = [call(Act::Write(1), 0, 1), call(Act::Read(Some(7)), 2, 3), call(Act::Write(2), 4, 5)];
    assert_eq!(judge(&calls), Judged::Broken { longest: vec![0], stuck: 1 });
}

#[test]
fn a_spent_budget_is_a_reason_and_never_a_pass() {
    let mut calls: Vec<Call> = (0..6).map(|i| call(Act::Write(i), 0, 9)).collect();
    calls.extend((0..6).map(|i| call(swap(Some(i), 10 + i, false), 0, 9)));
    calls.push(call(Act::Read(Some(0)), 10, 11));
    let keys = check(&calls, 1);
    assert_eq!(keys[0].judged, Judged::TooHard { states: 1 });
    assert_eq!(keys[0].finding(&calls), None);
    assert!(keys[0].unknown().unwrap().contains("13 calls on k"));
    assert!(is_linearizable(&calls));
}
