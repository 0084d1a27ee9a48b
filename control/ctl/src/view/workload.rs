//! Workloads.

use serde_json::Value;

use super::{list, text};
use crate::out::{Table, age};

pub(super) fn table(items: &[Value], wide: bool, mixed: bool, now_ms: u64) -> Table {
    let mut header = vec!["NAME", "PHASE", "READY", "NODE", "AGE"];
    if mixed {
        header.insert(0, "KIND");
    }
    if wide {
        header.extend(["RESTARTS", "GENERATION", "IMAGE", "MESSAGE"]);
    }
    let mut table = Table::new(&header);
    for workload in items {
        let mut row = vec![
            text(workload, "/metadata/name"),
            text(workload, "/status/phase"),
            ready(workload),
            text(workload, "/status/placement/nodeName"),
            age(&text(workload, "/metadata/createdAt"), now_ms),
        ];
        if mixed {
            row.insert(0, text(workload, "/kind"));
        }
        if wide {
            row.extend([
                restarts(workload),
                text(workload, "/status/placement/generation"),
                program(workload),
                text(workload, "/status/message"),
            ]);
        }
        table.row(row);
    }
    table
}

/// `1/2`: containers that run, of those that should.
pub(crate) fn ready(workload: &Value) -> String {
    let containers = list(workload, "/status/containers");
    let running = containers.iter().filter(|c| text(c, "/state") == "running").count();
    let wanted = list(workload, "/spec/services").len().max(1);
    format!("{running}/{wanted}")
}

fn restarts(workload: &Value) -> String {
    let count = |c: &Value| c.pointer("/restarts").and_then(Value::as_u64).unwrap_or(0);
    list(workload, "/status/containers").iter().map(count).sum::<u64>().to_string()
}

/// What runs: the images, or `postgres 16` of a database.
fn program(workload: &Value) -> String {
    let image = image(workload);
    let engine = format!("{} {}", text(workload, "/spec/engine"), text(workload, "/spec/version"));
    if image.is_empty() { engine.trim().to_owned() } else { image }
}

/// The image, or the images of all services.
pub(crate) fn image(workload: &Value) -> String {
    let services = list(workload, "/spec/services");
    let images: Vec<String> = services.iter().map(|s| text(s, "/image")).collect();
    if images.is_empty() { text(workload, "/spec/image") } else { images.join(",") }
}

#[cfg(test)]
pub(crate) mod tests {
    use cara_proto::rest::{
        API_VERSION, ContainerView, Metadata, PlacementView, Rejection, WorkloadManifest, WorkloadSpec, WorkloadStatus,
    };

    use super::*;

    pub(crate) fn sample(phase: &str) -> Value {
        let container =
            ContainerView { service: "app".into(), state: "running".into(), restarts: 2, ..Default::default() };
        let status = WorkloadStatus {
            phase: phase.into(),
            placement: Some(PlacementView {
                node_id: "n".into(),
                node_name: "w1".into(),
                generation: 4,
                auto_placed: true,
            }),
            rejected: vec![Rejection { node: "w2".into(), reason: "cordoned".into() }],
            containers: vec![container],
            observed_generation: 4,
            ..WorkloadStatus::default()
        };
        let workload = WorkloadManifest {
            api_version: API_VERSION.into(),
            kind: "App".into(),
            metadata: Metadata {
                name: "hello".into(),
                created_at: "2023-11-14T20:00:00Z".into(),
                resource_version: 12,
                ..Metadata::default()
            },
            spec: WorkloadSpec { image: "busybox:1".into(), ..WorkloadSpec::default() },
            status: Some(status),
        };
        serde_json::to_value(workload).expect("JSON")
    }

    #[test]
    fn a_workload_is_one_line() {
        let text = table(&[sample("Running")], false, false, 1_700_000_000_000).render(true, false, true);
        assert_eq!(text, "NAME   PHASE    READY  NODE  AGE\nhello  Running  1/1    w1    2h\n");
    }

    #[test]
    fn a_database_shows_its_engine() {
        let database =
            serde_json::json!({ "metadata": { "name": "ledger" }, "spec": { "engine": "postgres", "version": "16" } });
        let text = table(&[database], true, false, 0).render(false, false, false);
        assert_eq!(text, "ledger\t-\t0/1\t-\t-\t0\t-\tpostgres 16\t-\n");
    }

    #[test]
    fn mixed_and_wide_add_columns() {
        let text = table(&[sample("Running")], true, true, 1_700_000_000_000).render(false, false, true);
        assert_eq!(
            text,
            "KIND\tNAME\tPHASE\tREADY\tNODE\tAGE\tRESTARTS\tGENERATION\tIMAGE\tMESSAGE\n\
             App\thello\tRunning\t1/1\tw1\t2h\t2\t4\tbusybox:1\t-\n"
        );
    }
}
