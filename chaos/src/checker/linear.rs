//! Are the reads and writes of each register linearizable?
//!
//! The search of Wing and Gong: put the calls into an order that respects real time and in which each read sees the last
//! write. What has been tried (which calls are placed, and the value then) is remembered, so a history of forty calls
//! takes milliseconds. A write without an answer may be placed anywhere after its start, or nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::workload::{Act, Call};

/// Violations by register.
pub fn check(calls: &[Call]) -> Vec<String> {
    let mut registers: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        registers.entry(&call.register).or_default().push(call);
    }
    let bad = registers.into_iter().filter(|(_, calls)| !is_linearizable(calls));
    bad.map(|(register, calls)| format!("{register} is not linearizable: {}", told(&calls))).collect()
}

/// Is there a legal order of these calls on one register?
pub fn is_linearizable(calls: &[&Call]) -> bool {
    let mut tried = BTreeSet::new();
    let mut placed = vec![false; calls.len()];
    search(calls, &mut placed, None, &mut tried)
}

fn search(
    calls: &[&Call],
    placed: &mut Vec<bool>,
    value: Option<u64>,
    tried: &mut BTreeSet<(Vec<bool>, Option<u64>)>,
) -> bool {
    let open = |placed: &[bool]| (0..calls.len()).filter(|i| !placed[*i]).collect::<Vec<_>>();
    let left = open(placed);
    // Unanswered writes may never happen.
    if left.iter().all(|i| calls[*i].end.is_none()) {
        return true;
    }
    if !tried.insert((placed.clone(), value)) {
        return false;
    }
    // The next call in the order must have begun before every other one has ended.
    let first_end = left.iter().filter_map(|i| calls[*i].end).min().unwrap_or(Duration::MAX);
    for i in left {
        if calls[i].start > first_end {
            continue;
        }
        let after = match calls[i].act {
            Act::Write(written) => Some(written),
            Act::Read(seen) if seen == value => value,
            Act::Read(_) => continue,
        };
        placed[i] = true;
        if search(calls, placed, after, tried) {
            return true;
        }
        placed[i] = false;
    }
    false
}

fn told(calls: &[&Call]) -> String {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.start);
    let lines = calls.iter().map(|call| {
        let end = call.end.map_or("never".to_owned(), |end| format!("{:.3}", end.as_secs_f64()));
        format!("\n    [{:.3} {end}] {} {:?} {}", call.start.as_secs_f64(), call.client, call.act, call.answered_by)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(act: Act, start: u64, end: Option<u64>) -> Call {
        Call {
            client: "c".into(),
            register: "r".into(),
            act,
            start: Duration::from_secs(start),
            end: end.map(Duration::from_secs),
            answered_by: String::new(),
        }
    }

    fn linearizable(calls: &[Call]) -> bool {
        check(calls).is_empty()
    }

    #[test]
    fn a_read_after_an_acknowledged_write_must_see_it() {
        let write = call(Act::Write(1), 0, Some(1));
        assert!(linearizable(&[write.clone(), call(Act::Read(Some(1)), 2, Some(3))]));
        assert!(!linearizable(&[write, call(Act::Read(None), 2, Some(3))]));
    }

    #[test]
    fn a_read_during_a_write_may_see_either_value() {
        let first = call(Act::Write(1), 0, Some(1));
        let second = call(Act::Write(2), 2, Some(6));
        for seen in [1, 2] {
            assert!(linearizable(&[first.clone(), second.clone(), call(Act::Read(Some(seen)), 3, Some(4))]));
        }
    }

    #[test]
    fn two_reads_in_a_row_never_go_back() {
        let first = call(Act::Write(1), 0, Some(1));
        let second = call(Act::Write(2), 2, Some(9));
        let new = call(Act::Read(Some(2)), 3, Some(4));
        let old = call(Act::Read(Some(1)), 5, Some(6));
        assert!(!linearizable(&[first, second, new, old]));
    }

    #[test]
    fn an_unanswered_write_may_take_effect_late_or_never() {
        let first = call(Act::Write(1), 0, Some(1));
        let lost = call(Act::Write(2), 2, None);
        let never = [first.clone(), lost.clone(), call(Act::Read(Some(1)), 8, Some(9))];
        assert!(linearizable(&never));
        let late = [&never[..], &[call(Act::Read(Some(2)), 10, Some(11))]].concat();
        assert!(linearizable(&late));
        let back = [&late[..], &[call(Act::Read(Some(1)), 12, Some(13))]].concat();
        assert!(!linearizable(&back));
    }

    #[test]
    fn a_value_that_nobody_wrote_is_found() {
        assert!(!linearizable(&[call(Act::Write(1), 0, Some(1)), call(Act::Read(Some(7)), 2, Some(3))]));
    }

    #[test]
    fn forty_overlapping_calls_are_judged_quickly() {
        let writes = (1..=20).map(|i| call(Act::Write(i), i, Some(i + 5)));
        let reads = (1..=20).map(|i| call(Act::Read(Some(i)), i + 5, Some(i + 6)));
        let calls: Vec<Call> = writes.chain(reads).collect();
        assert!(linearizable(&calls));
    }
}
