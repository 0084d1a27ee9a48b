//! Moves of what has no state: told step by step by two machines that do as they are told.

use serde_json::{Value, json};

use crate::agent::{Agent, ready, status};
use crate::harness::{Server, app};

/// An app that runs on this node.
pub async fn running(server: &Server, agent: &Agent, mut manifest: Value) -> String {
    manifest["spec"]["node"] = json!(agent.name);
    let made = server.post("/api/v1/apps", &manifest).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let name = manifest["metadata"]["name"].as_str().unwrap().to_owned();
    let told = agent.told_to("run", &name).await;
    agent.says(status(&told, "Running")).await;
    server.until(&format!("/api/v1/apps/{name}"), |app| app["status"]["phase"] == "Running").await;
    name
}

/// Both ends of a stateless move do what they are told, until it is over.
pub async fn carry_out(server: &Server, name: &str, source: &Agent, target: &Agent, id: &str) -> Value {
    let told = target.told_to("receive", name).await;
    target.says(ready(&told, None)).await;
    let told = target.told_to("run", name).await;
    target.says(status(&told, "Running")).await;
    let told = source.told_to("retire", name).await;
    source.removed(&told.uid, Vec::new()).await;
    server.until(&format!("/api/v1/node-moves/{id}"), |mv| mv["status"] != "running").await
}

#[tokio::test]
async fn an_app_moves_while_it_runs() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;

    let plan = server.post("/api/v1/apps/web/move", &json!({ "dry_run": true })).await;
    assert_eq!(plan.status, 200, "{}", plan.body);
    let plan = plan.json();
    assert_eq!((&plan["from_node"], &plan["to_node"]), (&json!("a"), &json!("b")));
    assert_eq!((&plan["auto_target"], &plan["predicted_downtime_ms"]), (&json!(true), &json!(0)));
    assert_eq!(plan["phases"], json!(["preflight", "place", "verify", "stop_old", "finalize", "done"]));
    assert_eq!(server.get("/api/v1/node-moves").await.json()["items"], json!([]), "a dry run begins nothing");

    let key = [("idempotency-key", "move-1")];
    let begun = server.call("POST", "/api/v1/apps/web/move", &key, r#"{"node_id":"b"}"#).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let mv = begun.json();
    assert_eq!((&mv["kind"], &mv["phase"], &mv["status"]), (&json!("app"), &json!("preflight"), &json!("running")));
    assert_eq!((&mv["stateful"], &mv["cancellable"]), (&json!(false), &json!(true)));
    assert!(mv["waiting_for"].as_str().unwrap().contains("caractrl nodes cancel-move"), "{mv}");
    let id = mv["id"].as_str().unwrap();
    let done = carry_out(&server, "web", &a, &b, id).await;
    assert_eq!((&done["status"], &done["phase"]), (&json!("succeeded"), &json!("done")), "{done:#}");
    assert_eq!((done.get("error"), done.get("transfer"), done.get("downtime_ms")), (None, None, None));

    let web = server.get("/api/v1/apps/web").await.json();
    assert_eq!(web["status"]["placement"]["nodeName"], "b");
    assert_eq!(web["status"]["phase"], "Running");
    let again = server.call("POST", "/api/v1/apps/web/move", &key, r#"{"node_id":"b"}"#).await;
    assert_eq!((again.status, &again.json()["id"]), (202, &mv["id"]), "the answer was lost: {}", again.body);
    let listed = server.get("/api/v1/node-moves?kind=app&resource=web&status=succeeded&limit=1").await.json();
    assert_eq!(listed["items"][0]["id"], mv["id"]);
    assert_eq!(server.get("/api/v1/node-moves?status=failed").await.json()["items"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn what_can_not_move_is_refused_with_the_reason() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;
    assert_eq!(server.post("/api/v1/nodes/b/cordon", &Value::Null).await.status, 200);
    let cases = [
        ("web", json!({ "node_id": "a" }), 400, "move-same-node", "node a"),
        ("web", json!({ "node_id": "b" }), 400, "node-not-eligible", "cordoned"),
        ("web", json!({}), 400, "no-eligible-node", "b cordoned"),
        ("web", json!({ "dry_run": true }), 400, "no-eligible-node", "b cordoned"),
        ("web", json!({ "node_id": "nowhere" }), 404, "unknown-node", "nowhere"),
        ("web", json!({ "attempts": 0 }), 400, "invalid-request", "attempts"),
        ("web", json!({ "verify_timeout_s": 90_000 }), 400, "invalid-request", "verify_timeout_s"),
        ("web", json!({ "nodeId": "b" }), 400, "invalid-body", "nodeId"),
        ("ghost", json!({}), 404, "unknown-workload", "ghost"),
    ];
    for (name, body, status, code, word) in cases {
        let answer = server.post(&format!("/api/v1/apps/{name}/move"), &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}: {}", answer.body);
        assert!(answer.json()["detail"].as_str().unwrap().contains(word), "{}", answer.body);
        assert_ne!(answer.json()["hint"], "");
    }
    assert_eq!(server.post("/api/v1/nodes/b/uncordon", &Value::Null).await.status, 200);
    assert_eq!(server.post("/api/v1/apps/web/move", &json!({})).await.status, 202);
    let second = server.post("/api/v1/apps/web/move", &json!({})).await;
    assert_eq!((second.status, second.code().as_str()), (409, "move-running"));
    let restart = server.post("/api/v1/apps/web/restart", &Value::Null).await;
    assert_eq!((restart.status, restart.code().as_str()), (409, "move-running"));
    for path in ["/api/v1/node-moves?kind=pod", "/api/v1/node-moves?status=lost", "/api/v1/node-moves?limit=201"] {
        assert_eq!(server.get(path).await.status, 400, "{path}");
    }
    drop(b);
    server.stop().await;
}

#[tokio::test]
async fn a_move_is_taken_back_until_the_target_has_the_workload() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;
    let id = server.post("/api/v1/apps/web/move", &json!({})).await.json()["id"].as_str().unwrap().to_owned();
    b.told_to("receive", "web").await;
    let cancelled = server.post(&format!("/api/v1/node-moves/{id}/cancel"), &Value::Null).await;
    assert_eq!((cancelled.status, &cancelled.json()["phase"]), (202, &json!("rollback")), "{}", cancelled.body);
    let told = b.told_to("discard", "web").await;
    b.removed(&told.uid, Vec::new()).await;
    let over = server.until(&format!("/api/v1/node-moves/{id}"), |mv| mv["status"] == "rolled_back").await;
    assert!(over["error"].as_str().unwrap().starts_with("cancelled"), "{over:#}");
    assert!(b.told(<[_]>::is_empty).await.is_empty());
    assert_eq!(server.get("/api/v1/apps/web").await.json()["status"]["placement"]["nodeName"], "a");
    let again = server.post(&format!("/api/v1/node-moves/{id}/cancel"), &Value::Null).await;
    assert_eq!((again.status, again.code().as_str()), (409, "move-over"));
    let unknown = server.post("/api/v1/node-moves/mv_0/cancel", &Value::Null).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "unknown-move"));
    server.stop().await;
}

#[tokio::test]
async fn the_older_verb_gives_an_app_another_node() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;
    let same = server.put("/api/v1/apps/web/node", &json!({ "node_id": "a" })).await;
    assert_eq!((same.status, same.json()["steps"].as_array().unwrap().len()), (200, 1), "{}", same.body);
    let moved = server.put("/api/v1/apps/web/node", &json!({ "node_id": b.id })).await;
    assert_eq!((moved.status, &moved.json()["status"]), (200, &json!("running")), "{}", moved.body);
    let id = moved.json()["id"].as_str().unwrap().to_owned();
    carry_out(&server, "web", &a, &b, &id).await;
    let view = server.get(&format!("/api/v1/apps/web/moves/{id}")).await.json();
    assert_eq!((&view["status"], &view["to"]), (&json!("succeeded"), &json!(b.id)));
    assert_eq!(view["steps"][0]["name"], "update_placement");
    assert_eq!(view["steps"][0]["status"], "succeeded");
    running(&server, &a, app("other")).await;
    let foreign = server.get(&format!("/api/v1/apps/other/moves/{id}")).await;
    assert_eq!(foreign.status, 400, "{}", foreign.body);
    assert_eq!(server.get("/api/v1/apps/web/moves/mv_0").await.status, 404);
    assert_eq!(server.put("/api/v1/projects/web/node", &json!({ "node_id": "a" })).await.status, 404);
    server.stop().await;
}
