//! Reading the audit: pages of records, narrowed by who, what and when.

use cara_core::State;
use cara_core::model::AuditRecord;
use cara_proto::rest::{API_VERSION, AuditPage, AuditRecordView};

use super::Api;
use crate::wire::rfc3339;

/// Which records, and where a page begins.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Newest first, below this revision.
    pub before: Option<u64>,
    /// Oldest first, above this revision.
    pub after: Option<u64>,
    /// By this actor: as the record has it, its id, or its name.
    pub actor: String,
    /// About this subject: `kind/name`, a kind, a name, or an id.
    pub subject: String,
    /// Not older than this, in ms since 1970.
    pub since_ms: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

impl AuditFilter {
    fn takes(&self, record: &AuditRecord) -> bool {
        let says = |word: &str, texts: &[&str]| word.is_empty() || texts.contains(&word);
        let id = record.actor.split_once(':').map_or("", |(_, id)| id);
        let (kind, name) = record.subject.split_once('/').unwrap_or_default();
        says(&self.actor, &[&record.actor, id, &record.actor_name])
            && says(&self.subject, &[&record.subject, kind, name, &record.subject_id])
            && self.since_ms.is_none_or(|since| record.at_ms >= since)
            && self.before.is_none_or(|before| record.revision.0 < before)
            && self.after.is_none_or(|after| record.revision.0 > after)
    }
}

impl Api {
    /// One page.
    pub fn audit(&self, filter: &AuditFilter) -> AuditPage {
        self.read_local(|state| page(state, filter))
    }
}

fn page(state: &State, filter: &AuditFilter) -> AuditPage {
    let wanted = |record: &&AuditRecord| filter.takes(record);
    // One more than asked for tells whether there is another page.
    let mut found: Vec<&AuditRecord> = match filter.after {
        Some(_) => state.audit().filter(wanted).take(filter.limit + 1).collect(),
        None => state.audit().rev().filter(wanted).take(filter.limit + 1).collect(),
    };
    let goes_on = found.len() > filter.limit;
    found.truncate(filter.limit);
    let oldest = state.audit().next();
    AuditPage {
        api_version: API_VERSION.into(),
        kind: "AuditRecordList".into(),
        revision: state.revision().0,
        next: found.last().filter(|_| goes_on).map(|record| record.revision.0),
        items: found.into_iter().map(view).collect(),
        kept_since: oldest.map(|record| rfc3339(record.at_ms)).unwrap_or_default(),
        notice: oldest.map(|oldest| notice(filter, oldest)).unwrap_or_default(),
    }
}

/// Says so when what was asked for may be gone: the record of the cluster's first entry is the one that goes first.
fn notice(filter: &AuditFilter, oldest: &AuditRecord) -> String {
    let is_whole = oldest.command == "InitCluster";
    let asks_further = filter.since_ms.is_some_and(|since| since < oldest.at_ms)
        || filter.after.is_some_and(|after| after + 1 < oldest.revision.0);
    if is_whole || !asks_further {
        return String::new();
    }
    let (at, revision) = (rfc3339(oldest.at_ms), oldest.revision);
    format!(
        "the audit keeps the newest {} records: those before {at} (revision {revision}) are gone",
        cara_core::limits::AUDIT_RECORDS_MAX
    )
}

fn view(record: &AuditRecord) -> AuditRecordView {
    AuditRecordView {
        revision: record.revision.0,
        at: rfc3339(record.at_ms),
        actor: record.actor.clone(),
        actor_name: record.actor_name.clone(),
        caller: record.caller.clone(),
        request_id: record.request_id.clone(),
        command: record.command.clone(),
        subject: record.subject.clone(),
        subject_id: record.subject_id.clone(),
        before: record.before.map(|revision| revision.0),
        after: record.after.map(|revision| revision.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> AuditRecord {
        AuditRecord {
            revision: cara_core::Revision(7),
            at_ms: 1_000,
            actor: "token:tk-1".into(),
            actor_name: "ci".into(),
            command: "Cordon".into(),
            subject: "node/rack7".into(),
            subject_id: "nd_1".into(),
            ..AuditRecord::default()
        }
    }

    #[test]
    fn actors_and_subjects_go_by_any_of_their_names() {
        for (actor, subject, fits) in [
            ("", "", true),
            ("token:tk-1", "node/rack7", true),
            ("tk-1", "node", true),
            ("ci", "rack7", true),
            ("ci", "nd_1", true),
            ("c", "", false),
            ("", "rack", false),
            ("token", "", false),
        ] {
            let filter = AuditFilter { actor: actor.into(), subject: subject.into(), ..AuditFilter::default() };
            assert_eq!(filter.takes(&record()), fits, "{actor} {subject}");
        }
    }

    #[test]
    fn what_is_gone_is_said_only_when_it_was_asked_for() {
        let asks = |since_ms, after| notice(&AuditFilter { since_ms, after, ..AuditFilter::default() }, &record());
        assert!(asks(Some(999), None).contains("revision 7") && asks(None, Some(3)).contains("are gone"));
        assert!(asks(Some(1_000), None).is_empty() && asks(None, Some(6)).is_empty() && asks(None, None).is_empty());
        let first = AuditRecord { command: "InitCluster".into(), ..record() };
        assert!(notice(&AuditFilter { since_ms: Some(1), ..AuditFilter::default() }, &first).is_empty());
    }
}
