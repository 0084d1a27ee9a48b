//! Nodes that were described before their machine arrives.

use serde_json::{Value, json};

use crate::harness::Server;

fn node(name: &str) -> Value {
    json!({
        "apiVersion": "caravanserai/v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "site": "hall-b" } },
        "spec": { "unschedulable": true },
    })
}

#[tokio::test]
async fn a_node_is_described_cordoned_labelled_and_deleted() {
    let server = Server::start().await;
    let made = server.post("/api/v1/nodes", &node("n1")).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.json()["status"]["state"], "Draining");
    assert_eq!(made.json()["status"]["connection"], "pending");
    let taken = server.post("/api/v1/nodes", &node("n1")).await;
    assert_eq!((taken.status, taken.code().as_str()), (409, "node-name-taken"));

    let uncordoned = server.post("/api/v1/nodes/n1/uncordon", &Value::Null).await;
    assert_eq!(uncordoned.json()["status"]["state"], "NotReady", "{}", uncordoned.body);
    let labels = server.put("/api/v1/nodes/n1/labels", &json!({ "disk": "ssd" })).await;
    assert_eq!(labels.json()["metadata"]["labels"], json!({ "disk": "ssd" }));
    let bad = server.put("/api/v1/nodes/n1/labels", &json!({ "Disk Type": "ssd" })).await;
    assert_eq!((bad.status, bad.code().as_str()), (400, "invalid-field"));

    let events = server.get("/api/v1/nodes/n1/events").await.json();
    assert_eq!(events["items"][0]["to"], "schedulable");
    let limit = server.get("/api/v1/nodes/n1/events?limit=201").await;
    assert_eq!(limit.status, 400, "{}", limit.body);

    assert_eq!(server.delete("/api/v1/nodes/n1").await.status, 204);
    let gone = server.get("/api/v1/nodes/n1").await;
    assert_eq!((gone.status, gone.code().as_str()), (404, "unknown-node"));
    server.stop().await;
}
