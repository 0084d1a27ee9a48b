//! Where a workload is and may be, and what a node keeps in quarantine.

use serde_json::Value;

use super::describe::Page;
use super::moves::rejections;
use super::text;
use crate::client::bodies::Placement;
use crate::out::{Table, bytes};

/// A placement in full.
pub(crate) fn placement(title: &str, placement: &Placement) -> String {
    let mut page = Page::default();
    page.field("Workload", title.to_owned());
    let chosen = if placement.auto_placed { "chosen by the scheduler" } else { "chosen by the operator" };
    page.field(
        "Node",
        match placement.node_name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => format!("{name} ({chosen})"),
            None => "<none>".to_owned(),
        },
    );
    let selector: Vec<String> = placement.node_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    page.field("Selector", if selector.is_empty() { "<none>".to_owned() } else { selector.join(",") });
    page.field(
        "Eligible",
        match placement.eligible_node_ids.len() {
            0 => "no node".to_owned(),
            _ => placement.eligible_node_ids.join(", "),
        },
    );
    page.table("Not eligible", &rejections(&placement.rejected));
    page.text
}

/// Volumes that no longer count, as a node keeps them.
pub(crate) fn volumes(items: &[Value]) -> Table {
    let mut table = Table::new(&["WORKLOAD", "VOLUME", "GENERATION", "SIZE", "STATE", "ENGINE NAME"]);
    for item in items {
        table.row(vec![
            text(item, "/workload"),
            text(item, "/volume"),
            text(item, "/data_generation"),
            item.pointer("/bytes").and_then(Value::as_u64).map(bytes).unwrap_or_default(),
            text(item, "/state"),
            text(item, "/engine_name"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::bodies::NodeReason;

    #[test]
    fn a_placement_says_where_and_why_not_elsewhere() {
        let place = Placement {
            node_name: Some("w1".into()),
            auto_placed: true,
            node_selector: [("disk".into(), "ssd".into())].into(),
            eligible_node_ids: vec!["n1".into()],
            rejected: vec![NodeReason { node: "w2".into(), reason: "label disk=ssd missing".into() }],
        };
        assert_eq!(
            placement("app/web", &place),
            "Workload:     app/web\n\
             Node:         w1 (chosen by the scheduler)\n\
             Selector:     disk=ssd\n\
             Eligible:     n1\n\
             Not eligible:\n  NODE  REASON\n  w2    label disk=ssd missing\n"
        );
        let nowhere = placement("app/web", &Placement::default());
        assert!(nowhere.contains("Node:         <none>\n") && nowhere.contains("Eligible:     no node\n"), "{nowhere}");
    }

    #[test]
    fn kept_volumes_have_their_size() {
        let item = json!({ "workload": "database/ledger", "volume": "data", "data_generation": 4, "bytes": 2048,
            "state": "quarantined", "engine_name": "cara-x" });
        let text = volumes(&[item]).render(false, false, false);
        assert_eq!(text, "database/ledger\tdata\t4\t2.0 KiB\tquarantined\tcara-x\n");
    }
}
