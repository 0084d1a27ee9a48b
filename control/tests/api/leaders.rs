//! Another leader, in the middle of something.

use serde_json::json;

use cara_core::FEATURE_LEVEL;

use crate::agent::{Agent, ready, status};
use crate::harness::{Server, app};
use crate::moves::running;

/// Which of these leads.
async fn leader(of: [Server; 2]) -> (Server, Server) {
    let [one, other] = of;
    let view = one.until("/api/v1/servers", |view| ["s2", "s3"].iter().any(|name| view["leader"] == *name)).await;
    if view["leader"] == "s2" { (one, other) } else { (other, one) }
}

#[tokio::test]
async fn a_move_goes_on_under_the_next_leader() {
    let first = Server::start().await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    let third = first.join("s3", FEATURE_LEVEL).await.unwrap();
    let (a, b) = (Agent::join(&first, "a").await, Agent::join(&first, "b").await);
    running(&first, &a, app("web")).await;
    let begun = first.post("/api/v1/apps/web/move", &json!({ "node_id": "b" })).await;
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let told = b.told_to("receive", "web").await;
    b.says(ready(&told, None)).await;
    let before = b.told_to("run", "web").await;

    first.stop().await;
    let (leads, follows) = leader([second, third]).await;
    let (a, b) = (a.turn_to(&leads).await, b.turn_to(&leads).await);
    let told = b.told_to("run", "web").await;
    assert_eq!(told.generation, before.generation, "the same grant, so nothing is started twice");
    b.says(status(&told, "Running")).await;
    let told = a.told_to("retire", "web").await;
    a.removed(&told.uid, Vec::new()).await;
    let over = follows.until(&format!("/api/v1/node-moves/{id}"), |mv| mv["status"] != "running").await;
    assert_eq!((&over["status"], &over["to_node"]), (&json!("succeeded"), &json!("b")), "{over:#}");
    drop((a, b));
    follows.stop().await;
    leads.stop().await;
}
