//! Projects: several services that share a node and have a day on which they end.

use serde_json::{Value, json};

use crate::agent::{Agent, status};
use crate::harness::Server;
use crate::moves::carry_out;

fn shop() -> Value {
    json!({
        "apiVersion": "caravanserai/v1",
        "kind": "Project",
        "metadata": { "name": "shop" },
        "spec": { "services": [{ "name": "web", "image": "busybox:1" }, { "name": "cache", "image": "busybox:1" }] },
    })
}

#[tokio::test]
async fn a_project_runs_on_one_node_moves_as_a_whole_and_ends_on_its_day() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    let made = server.post("/api/v1/projects", &shop()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let told = a.told_to("run", "shop").await;
    let services: Vec<_> = told.spec.clone().unwrap().services.into_iter().map(|service| service.name).collect();
    assert_eq!((told.kind.as_str(), services), ("Project", vec!["web".to_owned(), "cache".to_owned()]));
    a.says(status(&told, "Running")).await;
    server.until("/api/v1/projects/shop", |shop| shop["status"]["phase"] == "Running").await;

    let b = Agent::join(&server, "b").await;
    let begun = server.post("/api/v1/projects/shop/move", &json!({ "node_id": "b" })).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let over = carry_out(&server, "shop", &a, &b, begun.json()["id"].as_str().unwrap()).await;
    assert_eq!((&over["status"], &over["kind"]), (&json!("succeeded"), &json!("project")), "{over:#}");

    let mut ends = shop();
    ends["spec"]["expireAt"] = json!("2020-01-31T12:00:00Z");
    let changed = server.put("/api/v1/projects/shop", &ends).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    b.told(|set| set.iter().any(|of| of.name == "shop" && of.remove)).await;
    b.removed(&told.uid, Vec::new()).await;
    server.until("/api/v1/projects/shop", |answer| answer["code"] == "unknown-workload").await;
    server.stop().await;
}
