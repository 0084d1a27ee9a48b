//! Drains: a node is emptied, and what can't go anywhere is named.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::harness::{Server, app};
use crate::moves::{carry_out, running};

#[tokio::test]
async fn a_node_is_emptied_and_stays_cordoned() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;
    let plan = server.post("/api/v1/nodes/a/drain?dry_run=true&target_node_id=b", &Value::Null).await;
    assert_eq!(plan.status, 200, "{}", plan.body);
    assert_eq!(plan.json()["plan"], json!([{ "kind": "app", "name": "web", "to": b.id, "to_node": "b" }]));
    assert_eq!(server.get("/api/v1/nodes/a").await.json()["status"]["schedulable"], true, "it was a dry run");

    let key = [("idempotency-key", "drain-1")];
    let begun = server.call("POST", "/api/v1/nodes/a/drain", &key, "").await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let drain = begun.json();
    assert_eq!((&drain["node_name"], &drain["status"], &drain["total"]), (&json!("a"), &json!("running"), &json!(1)));
    let again = server.call("POST", "/api/v1/nodes/a/drain", &key, "").await;
    assert_eq!((again.status, &again.json()["id"]), (202, &drain["id"]), "the answer was lost");
    let second = server.post("/api/v1/nodes/a/drain", &Value::Null).await;
    assert_eq!((second.status, second.code().as_str()), (409, "drain-running"));

    let path = format!("/api/v1/node-drains/{}", drain["id"].as_str().unwrap());
    let moving = server.until(&path, |drain| drain["moves"] != json!([])).await;
    assert_eq!(moving["plan"][0]["to_node"], "b", "known once its turn has come");
    let id = moving["moves"][0].as_str().unwrap();
    let mv = carry_out(&server, "web", &a, &b, id).await;
    assert_eq!(mv["drain_id"], drain["id"]);
    let over = server.until(&path, |drain| drain["status"] != "running").await;
    assert_eq!((&over["status"], &over["done"]), (&json!("succeeded"), &json!(1)), "{over:#}");
    assert_eq!(server.get("/api/v1/nodes/a").await.json()["status"]["state"], "Draining");
    let listed = server.get("/api/v1/nodes/a/drains").await.json();
    assert_eq!(listed["items"], json!([over]));
    let late = server.post(&format!("{path}/cancel"), &Value::Null).await;
    assert_eq!((late.status, late.code().as_str()), (409, "drain-over"));
    server.stop().await;
}

#[tokio::test]
async fn what_no_node_can_take_is_named_with_the_reason() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    let mut picky = app("web");
    picky["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    assert_eq!(server.put("/api/v1/nodes/a/labels", &json!({ "disk": "ssd" })).await.status, 200);
    running(&server, &a, picky).await;
    let plan = server.post("/api/v1/nodes/a/drain?dry_run=true", &Value::Null).await.json();
    assert_eq!(plan["plan"], json!([]));
    assert_eq!((&plan["blocked"][0]["kind"], &plan["blocked"][0]["name"]), (&json!("app"), &json!("web")));
    let reasons = plan["blocked"][0]["reasons"].as_array().unwrap();
    assert!(reasons.contains(&json!({ "node": "b", "reason": "lacks label disk=ssd" })), "{plan:#}");
    let onto_itself = server.post("/api/v1/nodes/a/drain?target_node_id=a", &Value::Null).await;
    assert_eq!((onto_itself.status, onto_itself.code().as_str()), (400, "invalid-field"));
    assert_eq!(server.post("/api/v1/nodes/ghost/drain", &Value::Null).await.status, 404);
    assert_eq!(server.get("/api/v1/node-drains/dr_0").await.code(), "unknown-drain");
    drop(b);
    server.stop().await;
}

#[tokio::test]
async fn a_drain_is_ended_and_its_move_goes_on() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;
    let id = server.post("/api/v1/nodes/a/drain", &Value::Null).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/node-drains/{id}");
    let moving = server.until(&path, |drain| drain["moves"] != json!([])).await;
    let ended = server.post(&format!("{path}/cancel"), &Value::Null).await;
    assert_eq!((ended.status, &ended.json()["status"]), (202, &json!("cancelled")), "{}", ended.body);
    let mv = carry_out(&server, "web", &a, &b, moving["moves"][0].as_str().unwrap()).await;
    assert_eq!(mv["status"], "succeeded");
    server.stop().await;
}
