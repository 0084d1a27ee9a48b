//! Drains: the plan and lines of a table.

use cara_proto::rest::{BlockedItem, DrainPlan, DrainView};

use super::describe::Page;
use super::moves::reasons;
use crate::out::{Table, age, between, span};

/// Drains as lines.
pub(crate) fn table(drains: &[DrainView], now_ms: u64) -> Table {
    let mut table = Table::new(&["ID", "NODE", "TARGET", "STATUS", "MOVED", "BLOCKED", "TOOK", "AGE", "ERROR"]);
    for drain in drains {
        let finished = drain.finished_at.as_deref().unwrap_or_default();
        table.row(vec![
            drain.id.clone(),
            drain.node_name.clone(),
            drain.target_name.clone().unwrap_or_default(),
            drain.status.clone(),
            format!("{}/{}", drain.done, drain.total),
            drain.blocked.len().to_string(),
            between(&drain.started_at, finished).map(span).unwrap_or_default(),
            age(&drain.started_at, now_ms),
            drain.error.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// What a drain would do.
pub(crate) fn plan(node: &str, drain: &DrainPlan) -> String {
    let mut page = Page::default();
    let (go, stay) = (drain.plan.len(), drain.blocked.len());
    page.field("Plan", format!("drain {node}: {go} to move, {stay} blocked; it takes no new workloads from now on"));
    let mut order = Table::new(&["ORDER", "WORKLOAD", "TO"]);
    for (at, item) in drain.plan.iter().enumerate() {
        let to = item.to_node.clone().unwrap_or_else(|| "decided when it is its turn".to_owned());
        order.row(vec![(at + 1).to_string(), format!("{}/{}", item.kind, item.name), to]);
    }
    page.table("Moves", &order);
    page.table("Blocked", &blocked(&drain.blocked));
    page.text
}

/// What no node can take, and why.
fn blocked(items: &[BlockedItem]) -> Table {
    let mut table = Table::new(&["WORKLOAD", "WHY NOT ELSEWHERE"]);
    for item in items {
        let why = if item.reasons.is_empty() { item.reason.clone() } else { reasons(&item.reasons) };
        table.row(vec![format!("{}/{}", item.kind, item.name), why]);
    }
    table
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::{DrainItem, Rejection};

    use super::*;

    fn sample() -> DrainView {
        let item = |kind: &str, name: &str, to: Option<&str>| DrainItem {
            kind: kind.into(),
            name: name.into(),
            to: None,
            to_node: to.map(str::to_owned),
        };
        DrainView {
            id: "d1".into(),
            node_name: "w1".into(),
            status: "failed".into(),
            error: Some("1 workload stays".into()),
            plan: vec![item("database", "ledger", Some("w2")), item("app", "web", None)],
            blocked: vec![BlockedItem {
                kind: "app".into(),
                name: "cache".into(),
                reason: "no node can take it".into(),
                reasons: vec![Rejection { node: "w2".into(), reason: "offline".into() }],
            }],
            done: 2,
            total: 2,
            started_at: "2023-11-14T22:11:20Z".into(),
            finished_at: Some("2023-11-14T22:12:20Z".into()),
            ..DrainView::default()
        }
    }

    #[test]
    fn a_drain_is_one_line() {
        let text = table(&[sample()], 1_700_000_000_000).render(true, false, true);
        assert_eq!(
            text,
            "ID  NODE  TARGET  STATUS  MOVED  BLOCKED  TOOK   AGE  ERROR\n\
             d1  w1    -       failed  2/2    1        1m 0s  2m   1 workload stays\n"
        );
    }

    #[test]
    fn the_plan_has_the_order_and_what_is_blocked() {
        let DrainView { plan: items, blocked, .. } = sample();
        assert_eq!(
            plan("w1", &DrainPlan { plan: items, blocked }),
            "Plan:         drain w1: 2 to move, 1 blocked; it takes no new workloads from now on\n\
             Moves:\n  ORDER  WORKLOAD         TO\n  1      database/ledger  w2\n  2      app/web          decided when it is its turn\n\
             Blocked:\n  WORKLOAD   WHY NOT ELSEWHERE\n  app/cache  w2 offline\n"
        );
    }
}
