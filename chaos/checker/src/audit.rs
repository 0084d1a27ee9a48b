//! One audit record for each change that was acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Finding, rules};

/// A change that a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// When it was sent.
    pub at: Duration,
    /// The id of the request; the same for all its tries.
    pub request: String,
    /// What became of it.
    pub answer: Answer,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was done, at this revision if the answer told.
    Done(Option<u64>),
    /// It was refused, without effect.
    Refused,
    /// No answer came: done or not.
    Unknown,
}

/// A record of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The request; empty for what the cluster did by itself.
    pub request: String,
    /// The revision that it made.
    pub revision: u64,
}

/// What the audit log, in its own order, contradicts. `kept_from` is the oldest revision that it still has to hold (0:
/// all of them). A change that changed nothing has no revision of its own: don't list it as asked.
pub fn check(at: Duration, asked: &[Asked], records: &[Record], kept_from: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |at, text| findings.push(Finding::new(at, rules::AUDIT_COMPLETE, "", text));
    for pair in records.windows(2) {
        if pair[1].revision < pair[0].revision {
            say(at, format!("revision {} is recorded after {}", pair[1].revision, pair[0].revision));
        }
    }
    let mut of_request: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for record in records.iter().filter(|record| !record.request.is_empty()) {
        of_request.entry(&record.request).or_default().push(record.revision);
    }
    for (request, revisions) in of_request.iter().filter(|(_, revisions)| revisions.len() > 1) {
        say(at, format!("request {request} is recorded {} times, at revisions {revisions:?}", revisions.len()));
    }
    for ask in asked {
        let recorded = of_request.remove(ask.request.as_str());
        match (ask.answer, recorded) {
            (Answer::Done(told), None) if told.is_none_or(|told| told >= kept_from) => {
                say(ask.at, format!("request {} was acknowledged and has no record", ask.request));
            }
            (Answer::Done(Some(told)), Some(found)) if !found.contains(&told) => {
                say(ask.at, format!("request {} was told revision {told} and is recorded at {found:?}", ask.request));
            }
            (Answer::Refused, Some(found)) => {
                say(ask.at, format!("request {} was refused and is recorded at {found:?}", ask.request));
            }
            _ => {}
        }
    }
    for (request, found) in of_request {
        say(at, format!("request {request}, recorded at {found:?}, was never asked for"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str, answer: Answer) -> Asked {
        Asked { at: Duration::from_secs(1), request: request.into(), answer }
    }

    fn records(of: &[(&str, u64)]) -> Vec<Record> {
        of.iter().map(|(request, revision)| Record { request: (*request).into(), revision: *revision }).collect()
    }

    fn wrong(asked: &[Asked], of: &[(&str, u64)], kept_from: u64) -> Vec<String> {
        let findings = check(Duration::from_secs(9), asked, &records(of), kept_from);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn one_record_for_each_change_passes() {
        let all = [
            asked("a", Answer::Done(Some(3))),
            asked("b", Answer::Unknown),
            asked("c", Answer::Unknown),
            asked("d", Answer::Refused),
            asked("e", Answer::Done(None)),
        ];
        assert_eq!(wrong(&all, &[("a", 3), ("", 4), ("b", 5), ("e", 5)], 0), Vec::<String>::new());
    }

    #[test]
    fn missing_double_invented_and_unordered_records_are_found() {
        let one = [asked("a", Answer::Done(Some(3)))];
        assert!(wrong(&one, &[], 0)[0].contains("no record"));
        assert!(wrong(&one, &[("a", 3), ("a", 4)], 0)[0].contains("2 times"));
        assert!(wrong(&one, &[("a", 4)], 0)[0].contains("told revision 3"));
        assert!(wrong(&one, &[("a", 3), ("z", 4)], 0)[0].contains("never asked"));
        assert!(wrong(&one, &[("", 4), ("a", 3)], 0)[0].contains("recorded after"));
        assert!(wrong(&[asked("a", Answer::Refused)], &[("a", 3)], 0)[0].contains("refused"));
    }

    #[test]
    fn what_the_log_no_longer_has_to_hold_is_not_missed() {
        let one = [asked("a", Answer::Done(Some(3)))];
        assert_eq!(wrong(&one, &[], 4), Vec::<String>::new());
        assert_eq!(wrong(&one, &[], 3).len(), 1);
    }
}
