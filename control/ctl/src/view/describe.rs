//! One object in full, as sections of `Key: value`.

use serde_json::Value;

use super::node::{agent, certificate, connection};
use super::{image, list, pairs, ready, text};
use crate::kind::Kind;
use crate::out::{Table, age, clean};

/// Everything that people ask about an object. `events` are a node's latest changes.
pub(crate) fn describe(kind: Kind, object: &Value, now_ms: u64) -> String {
    let mut page = Page::default();
    page.field("Name", text(object, "/metadata/name"));
    page.field("Kind", text(object, "/kind"));
    page.field("Uid", text(object, "/metadata/uid"));
    page.field("Labels", pairs(object, "/metadata/labels"));
    page.field("Annotations", pairs(object, "/metadata/annotations"));
    page.field("Revision", text(object, "/metadata/resourceVersion"));
    for (label, pointer) in [("Created", "/metadata/createdAt"), ("Updated", "/metadata/updatedAt")] {
        let at = text(object, pointer);
        let old = age(&at, now_ms);
        page.field(label, if old.is_empty() { at } else { format!("{at} ({old} ago)") });
    }
    match kind {
        Kind::Node => node(&mut page, object, now_ms),
        _ => workload(&mut page, object),
    }
    conditions(&mut page, object);
    page.text
}

fn node(page: &mut Page, node: &Value, now_ms: u64) {
    page.field("State", text(node, "/status/state"));
    page.field("Connection", connection(node));
    page.field("Schedulable", text(node, "/status/schedulable"));
    page.field("Given up", text(node, "/status/lost"));
    page.field("Hostname", text(node, "/spec/hostname"));
    page.field("Address", text(node, "/status/address"));
    page.field("Region", text(node, "/status/region"));
    page.field("Workloads", text(node, "/status/workloads"));
    page.field("Accepts", accepts(node));
    let beat = text(node, "/status/lastHeartbeat");
    page.field("Last beat", if beat.is_empty() { beat } else { format!("{beat} ({} ago)", age(&beat, now_ms)) });
    page.field("Capacity", pairs(node, "/status/capacity"));
    page.field("Allocatable", pairs(node, "/status/allocatable"));
    page.section("Session");
    page.inner("Server", text(node, "/status/session/server"));
    page.inner("Epoch", text(node, "/status/session/epoch"));
    page.section("Certificate");
    page.inner("State", certificate(node));
    page.inner("Not after", text(node, "/status/certificate/notAfter"));
    page.inner("Generation", text(node, "/status/certificate/generation"));
    page.inner("Fingerprint", text(node, "/status/certificate/fingerprint"));
    page.section("Agent");
    page.inner("Version", agent(node));
    for (label, pointer) in [
        ("Commit", "commit"),
        ("Feature level", "featureLevel"),
        ("System", "os"),
        ("Image", "osImage"),
        ("Architecture", "arch"),
        ("Hostname", "hostname"),
        ("Kernel", "kernel"),
        ("Runtime", "runtime"),
    ] {
        page.inner(label, text(node, &format!("/status/agent/{pointer}")));
    }
    network(page, node);
}

fn network(page: &mut Page, node: &Value) {
    page.section("Network");
    for (label, pointer) in [
        ("Address", "ip"),
        ("Name", "dnsName"),
        ("Reached", "mode"),
        ("Agent's port", "agentPort"),
        ("Download", "throughput/download"),
        ("Upload", "throughput/upload"),
        ("Measured", "throughput/lastTestTime"),
    ] {
        page.inner(label, text(node, &format!("/status/network/{pointer}")));
    }
}

fn accepts(node: &Value) -> String {
    let kinds = [
        ("apps", "/status/accepts/app"),
        ("databases", "/status/accepts/database"),
        ("builds", "/status/accepts/build"),
    ];
    kinds.iter().filter(|(_, p)| text(node, p) == "yes").map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// An archive that is pruned under somebody who restores from it is none.
const ARCHIVE_KEPT: &str = "yes; it grows until you remove what no backup needs (pg_archivecleanup), nothing here does";

fn workload(page: &mut Page, workload: &Value) {
    page.field("Phase", text(workload, "/status/phase"));
    page.field("Reason", text(workload, "/status/reason"));
    page.field("Message", text(workload, "/status/message"));
    page.field("Ready", ready(workload));
    page.field("Suspended", text(workload, "/spec/suspended"));
    page.field("Engine", text(workload, "/spec/engine"));
    page.field("Version", text(workload, "/spec/version"));
    let archives = text(workload, "/spec/walArchive") == "yes";
    page.field("WAL archive", if archives { ARCHIVE_KEPT.to_owned() } else { text(workload, "/spec/walArchive") });
    page.field("Image", image(workload));
    page.field("Databases", words(workload, "/spec/databases"));
    page.field("Resources", pairs(workload, "/spec/resources"));
    page.field("Selector", pairs(workload, "/spec/nodeSelector"));
    page.section("Placement");
    page.inner("Node", text(workload, "/status/placement/nodeName"));
    page.inner("Generation", text(workload, "/status/placement/generation"));
    page.inner("Chosen by", chosen_by(workload));
    page.list("Not chosen", list(workload, "/status/rejected"), &[("NODE", "/node"), ("REASON", "/reason")]);
    let containers = [
        ("SERVICE", "/service"),
        ("STATE", "/state"),
        ("RESTARTS", "/restarts"),
        ("EXIT", "/exitCode"),
        ("STARTED", "/startedAt"),
        ("ID", "/id"),
    ];
    page.list("Containers", list(workload, "/status/containers"), &containers);
    let endpoints = [("SERVICE", "/service"), ("PORT", "/containerPort"), ("ADDRESS", "/address")];
    page.list("Endpoints", list(workload, "/status/endpoints"), &endpoints);
    page.list("Volumes", list(workload, "/spec/volumes"), &[("NAME", "/name"), ("TYPE", "/type")]);
}

/// `a, b` of a list of texts.
fn words(object: &Value, pointer: &str) -> String {
    list(object, pointer).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn chosen_by(workload: &Value) -> String {
    let automatic = text(workload, "/status/placement/autoPlaced");
    match automatic.as_str() {
        "yes" => "the scheduler (least loaded eligible node)".to_owned(),
        "no" => "spec.node".to_owned(),
        _ => String::new(),
    }
}

fn conditions(page: &mut Page, object: &Value) {
    let columns = [
        ("TYPE", "/type"),
        ("STATUS", "/status"),
        ("REASON", "/reason"),
        ("SINCE", "/lastTransitionTime"),
        ("MESSAGE", "/message"),
    ];
    page.list("Conditions", list(object, "/status/conditions"), &columns);
}

/// Sections of `Key: value`, as they grow.
#[derive(Default)]
pub(super) struct Page {
    pub text: String,
}

impl Page {
    /// One line; nothing for an empty value.
    pub(super) fn field(&mut self, label: &str, value: String) {
        if !value.trim().is_empty() {
            self.text.push_str(&format!("{:<14}{}\n", format!("{label}:"), clean(&value)));
        }
    }

    fn section(&mut self, title: &str) {
        self.text.push_str(&format!("{title}:\n"));
    }

    /// Absent values are told as `<none>`, so that a section never looks cut off.
    fn inner(&mut self, label: &str, value: String) {
        let value = if value.trim().is_empty() { "<none>".to_owned() } else { clean(&value) };
        self.text.push_str(&format!("  {:<14}{value}\n", format!("{label}:")));
    }

    fn list(&mut self, title: &str, items: &[Value], columns: &[(&'static str, &str)]) {
        if items.is_empty() {
            return;
        }
        let header: Vec<&'static str> = columns.iter().map(|(name, _)| *name).collect();
        let mut table = Table::new(&header);
        for item in items {
            table.row(columns.iter().map(|(_, pointer)| text(item, pointer)).collect());
        }
        self.table(title, &table);
    }

    /// A table below its title; nothing for an empty one.
    pub(super) fn table(&mut self, title: &str, table: &Table) {
        if table.is_empty() {
            return;
        }
        self.section(title);
        for line in table.render(true, false, true).lines() {
            self.text.push_str(&format!("  {line}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_in_full() {
        let text = describe(Kind::App, &crate::view::workload::tests::sample("Running"), 1_700_000_000_000);
        assert_eq!(
            text,
            "Name:         hello\n\
             Kind:         App\n\
             Revision:     12\n\
             Created:      2023-11-14T20:00:00Z (2h ago)\n\
             Phase:        Running\n\
             Ready:        1/1\n\
             Image:        busybox:1\n\
             Placement:\n  Node:         w1\n  Generation:   4\n  Chosen by:    the scheduler (least loaded eligible node)\n\
             Not chosen:\n  NODE  REASON\n  w2    cordoned\n\
             Containers:\n  SERVICE  STATE    RESTARTS  EXIT  STARTED  ID\n  app      running  2         0     -        -\n"
        );
    }

    #[test]
    fn what_databases_and_their_users_have_is_told() {
        let database = serde_json::json!({
            "kind": "Database", "metadata": { "name": "ledger" },
            "spec": { "engine": "postgres", "version": "16", "walArchive": true, "suspended": true,
                "resources": { "cpu": "500m", "memory": "256Mi" } },
        });
        let text = describe(Kind::Database, &database, 0);
        for line in [
            "Suspended:    yes\n",
            "Engine:       postgres\n",
            "Version:      16\n",
            "WAL archive:  yes; it grows until you remove what no backup needs (pg_archivecleanup), nothing here does\n",
            "Resources:    cpu=500m,memory=256Mi\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("Image:"), "{text}");
        let app = serde_json::json!({ "kind": "App", "spec": { "databases": ["ledger", "cache"] } });
        assert!(describe(Kind::App, &app, 0).contains("Databases:    ledger, cache\n"));
    }

    #[test]
    fn a_node_in_full_tells_what_is_absent() {
        let text = describe(Kind::Node, &crate::view::node::tests::sample(), 1_700_000_000_000);
        assert!(text.contains("Session:\n  Server:       s2\n  Epoch:        3\n"), "{text}");
        assert!(text.contains("  Kernel:       <none>\n") && !text.contains("Given up"), "{text}");
        let mut lost = crate::view::node::tests::sample();
        lost["status"]["lost"] = true.into();
        assert!(describe(Kind::Node, &lost, 0).contains("Given up:     yes\n"));
    }
}
