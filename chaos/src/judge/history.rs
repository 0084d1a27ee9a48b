//! What clients were told, against what is there at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_checker::audit::{self, Record};
use cara_checker::durable::{self, Known, Life};
use cara_checker::watch::{self, Change, Truth, Watcher};
use cara_checker::{Finding, rules};
use cara_core::State;

use crate::workload::SEEN_MAX;
use crate::workload::history::History;

/// All judges of this kind.
///
/// `must_be_told`: watchers have had the time to be told of all up to this revision.
pub fn check(history: &History, state: Option<&State>, at: Duration, must_be_told: Option<u64>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (at, text) in &history.strange {
        findings.push(Finding::new(*at, "api.strange", "", text.clone()));
    }
    match &history.at_the_end {
        Some(found) => findings.extend(durable::check(at, &lives(history, found), found)),
        None => {
            findings.push(Finding::new(at, rules::CONVERGED, "", "the final list of workloads could not be read"));
        }
    }
    let watchers = watchers(history, must_be_told);
    let truth = truth(&watchers, state);
    findings.extend(watchers.iter().flat_map(|watcher| watch::check(watcher, &truth)));
    if let Some(state) = state {
        findings.extend(audited(history, state, at));
        findings.extend(spent_by_nobody(state, at));
        findings.extend(made_twice(state, at));
    }
    findings
}

/// Watchers with what they must have been told; one that has stopped writing down owes nothing.
fn watchers(history: &History, must_be_told: Option<u64>) -> Vec<Watcher> {
    let watcher = |(name, noted): (&String, &Vec<_>)| Watcher {
        name: name.clone(),
        noted: noted.clone(),
        must_reach: must_be_told.filter(|_| noted.len() < SEEN_MAX),
    };
    history.watched.iter().map(watcher).collect()
}

/// What there was to tell: all that any watcher was told, and each change in the audit. Of one that no watcher was told the
/// audit knows the command only; that is enough to miss it.
fn truth(watchers: &[Watcher], state: Option<&State>) -> Truth {
    let mut truth = watch::union(watchers);
    for record in state.into_iter().flat_map(State::audit) {
        let change = || Change { object: record.subject.clone(), what: record.command.clone() };
        truth.entry(record.revision.0).or_insert_with(|| vec![change()]);
    }
    truth
}

/// What clients know of each object. Registers may exist or not: their histories are judged by linearizability.
fn lives(history: &History, found: &BTreeMap<String, Option<u64>>) -> BTreeMap<String, Life> {
    let own = history.lives.iter().map(|(name, life)| (name.clone(), life.clone()));
    let registers = found.keys().filter(|name| name.starts_with("reg-"));
    let registers = registers.map(|name| (name.clone(), Life { created: Known::Maybe, ..Life::default() }));
    own.chain(registers).collect()
}

/// Changes that clients asked for have one record each. Only clients give request ids of this length.
fn audited(history: &History, state: &State, at: Duration) -> Vec<Finding> {
    let ours: BTreeSet<&str> = history.asked.iter().map(|asked| asked.request.as_str()).collect();
    let records = state.audit().filter(|record| ours.contains(record.request_id.as_str()));
    let records =
        records.map(|of| Record { request: of.request_id.clone(), revision: of.revision.0, caller: of.caller.clone() });
    let records: Vec<Record> = records.collect();
    let kept_from = state.audit().next().map_or(0, |record| record.revision.0);
    let all_kept = state.audit().count() < cara_core::limits::AUDIT_RECORDS_MAX;
    audit::check(at, &history.asked, &records, if all_kept { 0 } else { kept_from })
}

/// Clients give each API token a name of its own, so that a request that made two shows.
fn made_twice(state: &State, at: Duration) -> Vec<Finding> {
    let mut names = BTreeSet::new();
    let again = state.api_tokens().filter(|token| !names.insert(token.name.as_str()));
    let text = |name: &str| format!("two API tokens were made for the one that was asked for as {name:?}");
    again.map(|token| Finding::new(at, rules::TOKENS_ONCE, "", text(&token.name))).collect()
}

/// A token that is spent was spent by a machine that came in.
fn spent_by_nobody(state: &State, at: Duration) -> Vec<Finding> {
    let deleted = state.audit().filter(|record| record.command == "DeleteNode").count();
    let mut findings = Vec::new();
    for token in state.join_tokens() {
        let spent = token.used.as_ref().map(|used| used.node.to_string()).filter(|node| !node.is_empty());
        if let Some(node) = spent.filter(|node| !state.nodes().any(|known| known.id.to_string() == *node)) {
            let text = format!("token {} was spent by {node}, which is no node", token.id);
            findings.push(Finding::new(at, rules::TOKENS_ONCE, "", text));
        }
    }
    if findings.len() > deleted { findings } else { Vec::new() }
}
