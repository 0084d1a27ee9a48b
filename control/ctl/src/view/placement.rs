//! Where a workload is and may be, and what a node keeps in quarantine.

use cara_proto::rest::{NodeVolume, PlacementReport};

use super::describe::Page;
use super::moves::rejections;
use crate::out::{Table, bytes};

/// A placement in full.
pub(crate) fn placement(title: &str, placement: &PlacementReport) -> String {
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
pub(crate) fn volumes(items: &[NodeVolume]) -> Table {
    let mut table = Table::new(&["WORKLOAD", "VOLUME", "GENERATION", "SIZE", "STATE", "ENGINE NAME"]);
    for item in items {
        table.row(vec![
            item.workload.clone(),
            item.volume.clone(),
            item.data_generation.to_string(),
            if item.bytes == 0 { String::new() } else { bytes(item.bytes) },
            item.state.clone(),
            item.engine_name.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::Rejection;

    use super::*;

    #[test]
    fn a_placement_says_where_and_why_not_elsewhere() {
        let place = PlacementReport {
            node_name: Some("w1".into()),
            auto_placed: true,
            node_selector: [("disk".into(), "ssd".into())].into(),
            eligible_node_ids: vec!["n1".into()],
            node_id: Some("n1".into()),
            rejected: vec![Rejection { node: "w2".into(), reason: "label disk=ssd missing".into() }],
        };
        assert_eq!(
            placement("app/web", &place),
            "Workload:     app/web\n\
             Node:         w1 (chosen by the scheduler)\n\
             Selector:     disk=ssd\n\
             Eligible:     n1\n\
             Not eligible:\n  NODE  REASON\n  w2    label disk=ssd missing\n"
        );
        let nowhere = placement("app/web", &PlacementReport::default());
        assert!(nowhere.contains("Node:         <none>\n") && nowhere.contains("Eligible:     no node\n"), "{nowhere}");
    }

    #[test]
    fn kept_volumes_have_their_size() {
        let item = NodeVolume {
            workload: "ledger".into(),
            volume: "data".into(),
            data_generation: 4,
            bytes: 2_048,
            state: "quarantined".into(),
            engine_name: String::new(),
        };
        let unknown = NodeVolume { bytes: 0, ..item.clone() };
        let text = volumes(&[item, unknown]).render(false, false, false);
        assert_eq!(text, "ledger\tdata\t4\t2.0 KiB\tquarantined\t-\nledger\tdata\t4\t-\tquarantined\t-\n");
    }
}
