//! One audit record for each change that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::{Finding, rules};

/// A change that a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// When it was sent.
    pub at: Duration,
    /// Who sent it.
    pub client: String,
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
    /// `host:port` that it came from; empty when the record doesn't say.
    pub caller: String,
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
    for (client, hosts) in hosts_of(asked, records).iter().filter(|(_, hosts)| hosts.len() > 1) {
        say(at, format!("the requests of {client} are recorded from several hosts: {hosts:?}"));
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

/// From where the requests of each client are recorded to have come. A server that hands a request on is not its origin.
fn hosts_of<'a>(asked: &'a [Asked], records: &'a [Record]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let client_of: BTreeMap<&str, &str> = asked.iter().map(|ask| (ask.request.as_str(), ask.client.as_str())).collect();
    let mut hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in records.iter().filter(|record| !record.caller.is_empty()) {
        let Some(client) = client_of.get(record.request.as_str()) else { continue };
        let host = record.caller.rsplit_once(':').map_or(record.caller.as_str(), |(host, _)| host);
        hosts.entry(client).or_default().insert(host);
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str, answer: Answer) -> Asked {
        Asked { at: Duration::from_secs(1), client: "c1".into(), request: request.into(), answer }
    }

    fn records(of: &[(&str, u64)]) -> Vec<Record> {
        let record = |request: &str, revision| Record { request: request.into(), revision, caller: String::new() };
        of.iter().map(|(request, revision)| record(request, *revision)).collect()
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
    fn a_server_that_hands_a_request_on_is_not_where_it_came_from() {
        let asked = [asked("a", Answer::Unknown), asked("b", Answer::Unknown)];
        let from = |request: &str, revision, caller: &str| Record {
            caller: caller.into(),
            ..records(&[(request, revision)]).remove(0)
        };
        let text = |records: &[Record]| check(Duration::ZERO, &asked, records, 0).into_iter().map(|f| f.text).collect();
        let same: Vec<String> = text(&[from("a", 1, "10.0.0.9:1"), from("b", 2, "10.0.0.9:2"), from("b", 3, "")][..2]);
        assert_eq!(same, Vec::<String>::new());
        let handed_on: Vec<String> = text(&[from("a", 1, "10.0.0.9:1"), from("b", 2, "10.0.0.1:2")]);
        assert!(handed_on[0].contains("several hosts"), "{handed_on:?}");
    }

    #[test]
    fn what_the_log_no_longer_has_to_hold_is_not_missed() {
        let one = [asked("a", Answer::Done(Some(3)))];
        assert_eq!(wrong(&one, &[], 4), Vec::<String>::new());
        assert_eq!(wrong(&one, &[], 3).len(), 1);
    }
}
