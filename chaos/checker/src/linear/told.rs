//! A history that no order explains, in words.

use std::fmt;

use super::{Act, Call};

/// Calls that are told around the one that can't be placed.
const TOLD_MAX: usize = 12;

/// Says which call can't be placed, and tells the calls around it.
pub(super) fn broken(key: &str, calls: &[Call], of_key: &[usize], longest: &[usize], stuck: usize) -> String {
    let value = value_after(calls, longest);
    let mut text = format!(
        "{key}: no order of its {} calls explains all answers; {} can be placed, then the value is {} and this can't \
         follow: {}",
        of_key.len(),
        longest.len(),
        Value(value),
        line(&calls[stuck])
    );
    // The calls that are nearest in time say most.
    let distance = |i: &usize| calls[*i].start.abs_diff(calls[stuck].start);
    let mut near: Vec<usize> = of_key.iter().copied().filter(|i| *i != stuck).collect();
    near.sort_by_key(distance);
    near.truncate(TOLD_MAX);
    near.sort_by_key(|i| calls[*i].start);
    for i in near {
        let place = longest.iter().position(|placed| *placed == i);
        let place = place.map_or_else(|| "-".to_owned(), |place| (place + 1).to_string());
        text.push_str(&format!("\n    {place:>4}  {}", line(&calls[i])));
    }
    text
}

fn line(call: &Call) -> String {
    let end = call.end.map_or_else(|| "never".to_owned(), |end| format!("{:.3}", end.as_secs_f64()));
    let by = if call.answered_by.is_empty() { String::new() } else { format!(", answered by {}", call.answered_by) };
    format!("[{:.3} {end}] {} {}{by}", call.start.as_secs_f64(), call.client, call.act)
}

fn value_after(calls: &[Call], order: &[usize]) -> Option<u64> {
    let mut value = None;
    for i in order {
        let call = &calls[*i];
        match call.act {
            Act::Write(new) => value = Some(new),
            Act::Delete { .. } => value = None,
            Act::CompareAndSet { new, done, .. } if done || call.end.is_none() => value = Some(new),
            Act::CompareAndSet { .. } | Act::Read(_) => {}
        }
    }
    value
}

struct Value(Option<u64>);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("nothing"),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(value) => write!(f, "write {value}"),
            Self::Read(value) => write!(f, "read {}", Value(*value)),
            Self::Delete { found: None } => f.write_str("delete"),
            Self::Delete { found: Some(true) } => f.write_str("delete, found it"),
            Self::Delete { found: Some(false) } => f.write_str("delete, found nothing"),
            Self::CompareAndSet { expected, new, done } => {
                write!(f, "swap {} for {new}, {}", Value(*expected), if *done { "done" } else { "refused" })
            }
        }
    }
}
