//! Moves: the plan, lines of a table, one in full.

use cara_proto::rest::{MovePlan, MoveView, Rejection};

use super::describe::Page;
use crate::follow::{downtime, move_title, reason};
use crate::out::{Table, age, between, bytes, span};

/// Moves as lines.
pub(crate) fn table(moves: &[MoveView], wide: bool, now_ms: u64) -> Table {
    let mut header = vec!["ID", "WORKLOAD", "FROM", "TO", "STATUS", "PHASE", "DOWNTIME", "AGE"];
    if wide {
        header.extend(["TOOK", "TARGET", "DRAIN", "ERROR"]);
    }
    let mut table = Table::new(&header);
    for mv in moves {
        let mut row = vec![
            mv.id.clone(),
            move_title(mv),
            mv.from_node.clone(),
            mv.to_node.clone(),
            mv.status.clone(),
            mv.phase.clone(),
            mv.downtime_ms.map(span).unwrap_or_default(),
            age(&mv.started_at, now_ms),
        ];
        if wide {
            row.extend([
                took(mv),
                target(mv.auto_target).to_owned(),
                mv.drain_id.clone().unwrap_or_default(),
                mv.error.clone().unwrap_or_default(),
            ]);
        }
        table.row(row);
    }
    table
}

fn took(mv: &MoveView) -> String {
    let finished = mv.finished_at.as_deref().unwrap_or_default();
    between(&mv.started_at, finished).map(span).unwrap_or_default()
}

fn target(automatic: bool) -> &'static str {
    if automatic { "scheduler" } else { "operator" }
}

/// One move in full.
pub(crate) fn full(mv: &MoveView, now_ms: u64) -> String {
    let mut page = Page::default();
    page.field("Id", mv.id.clone());
    page.field("Workload", move_title(mv));
    page.field("From", mv.from_node.clone());
    page.field("To", format!("{} (chosen by the {})", mv.to_node, target(mv.auto_target)));
    page.field("How", how(mv.stateful).to_owned());
    page.field("Drain", mv.drain_id.clone().unwrap_or_default());
    page.field("Status", mv.status.clone());
    page.field("Phase", mv.phase.clone());
    page.field("Waits for", mv.waiting_for.clone().unwrap_or_default());
    page.field("Error", mv.error.clone().unwrap_or_default());
    let old = age(&mv.started_at, now_ms);
    page.field("Started", if old.is_empty() { old } else { format!("{} ({old} ago)", mv.started_at) });
    page.field("Finished", mv.finished_at.clone().unwrap_or_default());
    page.field("Took", took(mv));
    if mv.finished_at.is_some() || mv.downtime_ms.is_some() {
        page.field("Downtime", downtime(mv));
    }
    if let Some(transfer) = &mv.transfer {
        let (done, total, sent) = (bytes(transfer.bytes_done), bytes(transfer.bytes_total), bytes(transfer.bytes_sent));
        page.field("Copied", format!("{done} of {total}, {sent} sent, round {}", transfer.round));
    }
    if mv.cancellable {
        page.field("Take it back", format!("caractrl nodes cancel-move {}", mv.id));
    }
    let mut steps = Table::new(&["SINCE", "PHASE", "OUTCOME", "ATTEMPT", "DETAIL"]);
    for step in &mv.steps {
        let since = between(&mv.started_at, &step.at).map(|ms| format!("+{}", span(ms))).unwrap_or_default();
        let attempt = step.attempt.to_string();
        steps.row(vec![since, step.phase.clone(), step.outcome.clone(), attempt, step.detail.clone()]);
    }
    page.table("Steps", &steps);
    page.text
}

fn how(stateful: bool) -> &'static str {
    if stateful { "stop, copy, start: it never runs twice" } else { "start, check, stop: no downtime" }
}

/// What a move would do. `title` is its workload.
pub(crate) fn plan(title: &str, plan: &MovePlan) -> String {
    let mut page = Page::default();
    page.field("Plan", format!("move {title}: {} -> {}", plan.from_node, plan.to_node));
    page.field("Node", format!("chosen by the {}", target(plan.auto_target)));
    page.field("How", how(plan.stateful).to_owned());
    page.field("Phases", plan.phases.join(", "));
    page.field("To copy", plan.bytes.map(bytes).unwrap_or_default());
    page.field(
        "Downtime",
        match (plan.predicted_downtime_ms, plan.stateful) {
            (Some(ms), _) => format!("about {} (predicted)", span(ms)),
            (None, false) => "none".to_owned(),
            (None, true) => "not known: from its stop until the last changes are copied and it is healthy".to_owned(),
        },
    );
    page.table("Not chosen", &rejections(&plan.rejected));
    for warning in &plan.warnings {
        page.field("Warning", warning.clone());
    }
    page.text
}

/// Why nodes were not chosen.
pub(super) fn rejections(rejected: &[Rejection]) -> Table {
    let mut table = Table::new(&["NODE", "REASON"]);
    for rejection in rejected {
        table.row(vec![rejection.node.clone(), rejection.reason.clone()]);
    }
    table
}

/// `w1 cordoned, w2 offline`.
pub(super) fn reasons(rejected: &[Rejection]) -> String {
    rejected.iter().map(reason).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::{MoveStepView, MoveTransfer};

    use super::*;

    fn sample() -> MoveView {
        MoveView {
            id: "m1".into(),
            kind: "database".into(),
            name: "ledger".into(),
            from_node: "w1".into(),
            to_node: "w2".into(),
            auto_target: true,
            stateful: true,
            phase: "done".into(),
            status: "succeeded".into(),
            started_at: "2023-11-14T22:11:20Z".into(),
            finished_at: Some("2023-11-14T22:11:32Z".into()),
            downtime_ms: Some(1_749),
            ..MoveView::default()
        }
    }

    #[test]
    fn a_move_is_one_line() {
        let text = table(&[sample()], false, 1_700_000_000_000).render(true, false, true);
        assert_eq!(
            text,
            "ID  WORKLOAD         FROM  TO  STATUS     PHASE  DOWNTIME  AGE\n\
             m1  database/ledger  w1    w2  succeeded  done   1.7 s     2m\n"
        );
        let text = table(&[sample()], true, 1_700_000_000_000).render(false, false, false);
        assert_eq!(text, "m1\tdatabase/ledger\tw1\tw2\tsucceeded\tdone\t1.7 s\t2m\t12 s\tscheduler\t-\t-\n");
    }

    #[test]
    fn a_move_in_full_has_its_steps_and_the_way_back() {
        let mv = MoveView {
            status: "running".into(),
            phase: "copy_volumes".into(),
            finished_at: None,
            downtime_ms: None,
            cancellable: true,
            transfer: Some(MoveTransfer { bytes_total: 2_048, bytes_done: 1_024, round: 1, ..MoveTransfer::default() }),
            steps: vec![MoveStepView {
                phase: "preflight".into(),
                outcome: "ok".into(),
                detail: "target is ready".into(),
                at: "2023-11-14T22:11:23.5Z".into(),
                attempt: 1,
            }],
            ..sample()
        };
        let text = full(&mv, 1_700_000_000_000);
        assert_eq!(
            text,
            "Id:           m1\n\
             Workload:     database/ledger\n\
             From:         w1\n\
             To:           w2 (chosen by the scheduler)\n\
             How:          stop, copy, start: it never runs twice\n\
             Status:       running\n\
             Phase:        copy_volumes\n\
             Started:      2023-11-14T22:11:20Z (2m ago)\n\
             Copied:       1.0 KiB of 2.0 KiB, 0 B sent, round 1\n\
             Take it back: caractrl nodes cancel-move m1\n\
             Steps:\n  SINCE   PHASE      OUTCOME  ATTEMPT  DETAIL\n  +3.5 s  preflight  ok       1        target is ready\n"
        );
    }

    #[test]
    fn the_plan_says_where_why_how_long_and_what_else() {
        let wanted = MovePlan {
            from_node: "w1".into(),
            to_node: "w2".into(),
            auto_target: true,
            stateful: true,
            phases: vec!["preflight".into(), "stop_source".into()],
            bytes: Some(1 << 30),
            predicted_downtime_ms: Some(2_000),
            rejected: vec![Rejection { node: "w3".into(), reason: "cordoned".into() }],
            warnings: vec!["app/web uses it and is restarted".into()],
            ..MovePlan::default()
        };
        assert_eq!(
            plan("database/ledger", &wanted),
            "Plan:         move database/ledger: w1 -> w2\n\
             Node:         chosen by the scheduler\n\
             How:          stop, copy, start: it never runs twice\n\
             Phases:       preflight, stop_source\n\
             To copy:      1.0 GiB\n\
             Downtime:     about 2.0 s (predicted)\n\
             Not chosen:\n  NODE  REASON\n  w3    cordoned\n\
             Warning:      app/web uses it and is restarted\n"
        );
        let app = plan("app/web", &MovePlan { from_node: "w1".into(), to_node: "w2".into(), ..MovePlan::default() });
        assert!(app.contains("Downtime:     none\n") && app.contains("chosen by the operator"), "{app}");
    }
}
