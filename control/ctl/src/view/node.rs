//! Nodes.

use cara_proto::rest::{Condition, ConnectionEvent};
use serde_json::Value;

use super::{pairs, text};
use crate::out::{Table, age};

const NARROW: [&str; 8] = ["NAME", "STATE", "CONNECTION", "ADDRESS", "WORKLOADS", "BEAT", "CERT", "AGE"];
const WIDE: [&str; 14] = [
    "NAME",
    "STATE",
    "CONNECTION",
    "ADDRESS",
    "WORKLOADS",
    "BEAT",
    "CERT",
    "AGE",
    "SERVER",
    "AGENT",
    "RUNTIME",
    "KERNEL",
    "REGION",
    "LABELS",
];

pub(super) fn table(items: &[Value], wide: bool, now_ms: u64) -> Table {
    let mut table = Table::new(if wide { &WIDE } else { &NARROW });
    for node in items {
        let mut row = vec![
            text(node, "/metadata/name"),
            text(node, "/status/state"),
            connection(node),
            text(node, "/status/address"),
            text(node, "/status/workloads"),
            age(&text(node, "/status/lastHeartbeat"), now_ms),
            certificate(node),
            age(&text(node, "/metadata/createdAt"), now_ms),
        ];
        if wide {
            row.extend([
                text(node, "/status/session/server"),
                agent(node),
                text(node, "/status/agent/runtime"),
                text(node, "/status/agent/kernel"),
                text(node, "/status/region"),
                pairs(node, "/metadata/labels"),
            ]);
        }
        table.row(row);
    }
    table
}

/// `ok 89d`.
pub(super) fn certificate(node: &Value) -> String {
    let days = text(node, "/status/certificate/daysRemaining");
    if days.is_empty() { days } else { format!("{} {days}d", text(node, "/status/certificate/state")) }
}

/// `pending (never connected)` once somebody waits in vain.
pub(super) fn connection(node: &Value) -> String {
    let connection = text(node, "/status/connection");
    let in_vain = text(node, "/status/neverConnected") == "yes";
    if in_vain { format!("{connection} (never connected)") } else { connection }
}

/// `0.1.0`, `0.1.0 (outdated)`, `unknown (outdated)`.
pub(super) fn agent(node: &Value) -> String {
    let version = text(node, "/status/agent/version");
    match (text(node, "/status/agent/outdated") == "yes", version.is_empty()) {
        (false, _) => version,
        (true, true) => "unknown (outdated)".to_owned(),
        (true, false) => format!("{version} (outdated)"),
    }
}

/// What is so about a node.
pub(crate) fn conditions(conditions: &[Condition]) -> Table {
    let mut table = Table::new(&["TYPE", "STATUS", "REASON", "SINCE", "LAST SIGN", "MESSAGE"]);
    for condition in conditions {
        table.row(vec![
            condition.r#type.clone(),
            condition.status.clone(),
            condition.reason.clone(),
            condition.last_transition_time.clone(),
            condition.last_heartbeat_time.clone(),
            condition.message.clone(),
        ]);
    }
    table
}

/// Changes of a node's connection.
pub(crate) fn events(events: &[ConnectionEvent]) -> Table {
    let mut table = Table::new(&["TIME", "FROM", "TO", "REASON"]);
    for event in events {
        table.row(vec![event.at.clone(), event.from.clone(), event.to.clone(), event.reason.clone()]);
    }
    table
}

#[cfg(test)]
pub(crate) mod tests {
    use cara_proto::rest::{
        API_VERSION, AgentInfo, CertificateView, Metadata, NodeManifest, NodeSpec, NodeStatus, SessionView,
    };

    use super::*;

    pub(crate) fn sample() -> Value {
        let metadata = Metadata {
            name: "w1".into(),
            labels: [("disk".into(), "ssd".into()), ("site".into(), "hall-b".into())].into(),
            created_at: "2023-11-14T22:11:20Z".into(),
            ..Metadata::default()
        };
        let status = NodeStatus {
            state: "Ready".into(),
            connection: "online".into(),
            schedulable: true,
            address: "10.0.0.4".into(),
            workloads: 2,
            last_heartbeat: Some("2023-11-14T22:13:17Z".into()),
            region: "eu-west".into(),
            session: Some(SessionView { epoch: 3, server: "s2".into() }),
            certificate: Some(CertificateView { state: "ok".into(), days_remaining: 89, ..CertificateView::default() }),
            agent: Some(AgentInfo { version: "0.1.0".into(), runtime: "memory 1".into(), ..AgentInfo::default() }),
            ..NodeStatus::default()
        };
        let node = NodeManifest {
            api_version: API_VERSION.into(),
            kind: "Node".into(),
            metadata,
            spec: NodeSpec::default(),
            status: Some(status),
        };
        serde_json::to_value(node).expect("JSON")
    }

    #[test]
    fn a_node_is_one_line() {
        let text = table(&[sample()], false, 1_700_000_000_000).render(true, false, true);
        assert_eq!(
            text,
            "NAME  STATE  CONNECTION  ADDRESS   WORKLOADS  BEAT  CERT    AGE\n\
             w1    Ready  online      10.0.0.4  2          3s    ok 89d  2m\n"
        );
    }

    #[test]
    fn wide_adds_columns_and_empty_ones_are_dashes() {
        let text = table(&[sample()], true, 1_700_000_000_000).render(false, false, false);
        let row =
            "w1\tReady\tonline\t10.0.0.4\t2\t3s\tok 89d\t2m\ts2\t0.1.0\tmemory 1\t-\teu-west\tdisk=ssd,site=hall-b\n";
        assert_eq!(text, row);
    }

    #[test]
    fn who_waits_in_vain_and_who_is_outdated_is_told() {
        let mut node = sample();
        node["status"]["connection"] = "pending".into();
        node["status"]["neverConnected"] = true.into();
        node["status"]["agent"]["outdated"] = true.into();
        assert_eq!(connection(&node), "pending (never connected)");
        assert_eq!(agent(&node), "0.1.0 (outdated)");
        node["status"]["agent"]["version"] = "".into();
        assert_eq!(agent(&node), "unknown (outdated)");
    }
}
