//! Records of the audit.

use cara_proto::rest::AuditRecordView;

use crate::out::Table;

/// One line for each record. Times stand as they are: an audit is compared with other logs.
pub(crate) fn audit(records: &[AuditRecordView], wide: bool) -> Table {
    let mut header = vec!["REVISION", "AT", "ACTOR", "FROM", "COMMAND", "SUBJECT", "CHANGE"];
    if wide {
        header.extend(["SUBJECT ID", "REQUEST"]);
    }
    let mut table = Table::new(&header);
    for record in records {
        let mut row = vec![
            record.revision.to_string(),
            record.at.clone(),
            actor(record),
            record.caller.clone(),
            record.command.clone(),
            record.subject.clone(),
            change(record),
        ];
        if wide {
            row.extend([record.subject_id.clone(), record.request_id.clone()]);
        }
        table.row(row);
    }
    table
}

fn actor(record: &AuditRecordView) -> String {
    match record.actor_name.as_str() {
        "" => record.actor.clone(),
        name => format!("{} ({name})", record.actor),
    }
}

fn change(record: &AuditRecordView) -> String {
    match (record.before, record.after) {
        (None, None) => String::new(),
        (None, Some(after)) => format!("new, now {after}"),
        (Some(before), Some(after)) => format!("{before} to {after}"),
        (Some(before), None) => format!("{before}, now gone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_who_from_where_and_what_changed() {
        let record = |before, after| AuditRecordView {
            revision: 9,
            at: "2026-01-01T00:00:00Z".into(),
            actor: "token:tk-1".into(),
            actor_name: "ci".into(),
            caller: "10.0.0.9:4711".into(),
            request_id: "r1".into(),
            command: "Cordon".into(),
            subject: "node/a".into(),
            subject_id: "nd_1".into(),
            before,
            after,
        };
        let lines = audit(&[record(Some(7), Some(9))], true).render(false, false, false);
        let line = "9\t2026-01-01T00:00:00Z\ttoken:tk-1 (ci)\t10.0.0.9:4711\tCordon\tnode/a\t7 to 9\tnd_1\tr1\n";
        assert_eq!(lines, line);
        assert_eq!(change(&record(None, Some(9))), "new, now 9");
        assert_eq!(change(&record(Some(7), None)), "7, now gone");
    }
}
