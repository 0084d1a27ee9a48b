//! Releases side by side: what waits for the last server, and what is not asked of an agent that is behind.

use cara_control::RunError;
use cara_control::setup::SetupError;
use cara_core::FEATURE_LEVEL;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::harness::{Server, app};
use crate::moves::{carry_out, running};

#[tokio::test]
async fn the_level_rises_by_itself_when_the_last_server_is_upgraded() {
    let mut first = Server::start_at(1).await;
    let mut second = first.join("s2", 1).await.unwrap();
    assert_eq!(first.post("/api/v1/apps", &app("web")).await.status, 201);
    let refused = first.post("/api/v1/apps/web/suspend", &Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "feature-needed"));

    first.restart_at(2).await;
    let one_of_two = |view: &Value| {
        let servers = view["servers"].as_array().unwrap();
        servers.iter().map(|server| &server["featureLevel"]).eq([&json!(2), &json!(1)])
    };
    let view = first.until("/api/v1/servers", one_of_two).await;
    assert_eq!(view["featureLevel"], 1, "the other one holds it back");
    let refused = first.post("/api/v1/apps/web/suspend", &Value::Null).await;
    assert_eq!(refused.code(), "feature-needed");

    second.restart_at(2).await;
    first.until("/api/v1/servers", |view| view["featureLevel"] == 2).await;
    let suspended = first.post("/api/v1/apps/web/suspend", &Value::Null).await;
    assert_eq!(suspended.status, 200, "{}", suspended.body);

    let Err(SetupError::Refused { message, .. }) = first.join("s3", 1).await else {
        panic!("it would misread the log")
    };
    assert!(message.contains("server s3 supports feature level 1, the cluster is at 2"), "{message}");
    let outdated = second.refuses_at(1).await;
    assert!(matches!(outdated, RunError::Outdated { supports: 1, level: 2 }), "{outdated}");
}

#[tokio::test]
async fn nothing_moves_to_or_from_an_agent_that_is_behind() {
    let server = Server::start_at(FEATURE_LEVEL).await;
    let a = Agent::join(&server, "a").await;
    running(&server, &a, app("web")).await;
    let b = Agent::join_with(&server, "b", |hello| hello.feature_level = 0).await;
    assert_eq!(server.get("/api/v1/nodes/b").await.json()["status"]["agent"]["featureLevel"], 1);
    let refused = server.post("/api/v1/apps/web/move", &json!({ "node_id": "b" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "node-not-eligible"), "{}", refused.body);
    assert!(refused.body.contains("upgrade cara-agent there"), "{}", refused.body);

    let b = b.upgrade(&server, FEATURE_LEVEL).await;
    let begun = server.post("/api/v1/apps/web/move", &json!({ "node_id": "b" })).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let over = carry_out(&server, "web", &a, &b, begun.json()["id"].as_str().unwrap()).await;
    assert_eq!(over["status"], "succeeded", "{over:#}");

    let b = b.upgrade(&server, 1).await;
    let refused = server.post("/api/v1/apps/web/move", &json!({ "node_id": "a" })).await;
    assert_eq!(refused.code(), "agent-outdated", "{}", refused.body);
    drop(b);
    server.stop().await;
}
