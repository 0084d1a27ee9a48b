//! Where a workload may be, and whether it runs.

use cara_proto::node::Facts;
use serde_json::{Value, json};

use crate::agent::{Agent, status};
use crate::harness::{Server, app};
use crate::moves::running;

#[tokio::test]
async fn a_selector_moves_and_restarts_nothing() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, app("web")).await;
    let before = server.get("/api/v1/apps/web/placement").await.json();
    assert_eq!((&before["node_name"], &before["node_id"]), (&json!("a"), &json!(a.id)));
    assert_eq!(before["eligible_node_ids"].as_array().unwrap().len(), 2);
    let ssd = json!({ "node_selector": { "disk": "ssd" } }).to_string();
    let set = async || server.call("PUT", "/api/v1/apps/web/placement", &[("idempotency-key", "ssd")], &ssd).await;
    let (first, again) = (set().await, set().await);
    assert_eq!((first.status, &first.body), (200, &again.body), "a retry gets the same answer");
    let after = first.json();
    assert_eq!((&after["node_name"], &after["eligible_node_ids"]), (&json!("a"), &json!([])));
    assert!(after["rejected"].as_array().unwrap().contains(&json!({ "node": "b", "reason": "lacks label disk=ssd" })));
    let web = server.get("/api/v1/apps/web").await.json();
    assert_eq!((&web["status"]["phase"], &web["status"]["placement"]["generation"]), (&json!("Running"), &json!(1)));
    let wrong = server.put("/api/v1/apps/web/placement", &json!({ "node_selector": { "Disk": "ssd" } })).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "invalid-field"));
    assert!(wrong.json()["detail"].as_str().unwrap().starts_with("node_selector"), "{}", wrong.body);
    assert_eq!(server.get("/api/v1/apps/ghost/placement").await.status, 404);
    drop(b);
    server.stop().await;
}

#[tokio::test]
async fn what_is_asked_for_may_be_all_that_is_free_and_no_more() {
    let server = Server::start().await;
    let allocatable = [("cpu".to_owned(), "1".to_owned()), ("memory".to_owned(), "1Gi".to_owned())].into();
    let facts = Facts { allocatable, ..Facts::default() };
    let a = Agent::join_with(&server, "a", |hello| hello.facts = Some(facts)).await;
    let asks = |name: &str, cpu: &str| {
        let mut manifest = app(name);
        manifest["spec"]["resources"] = json!({ "cpu": cpu, "memory": "512Mi" });
        manifest
    };
    assert_eq!(server.post("/api/v1/apps", &asks("half", "500m")).await.status, 201);
    assert_eq!(server.post("/api/v1/apps", &asks("rest", "500m")).await.status, 201);
    a.told(|set| set.len() == 2).await;
    assert_eq!(server.post("/api/v1/apps", &asks("late", "1m")).await.status, 201);
    let late = server.get("/api/v1/apps/late").await.json();
    let why = json!([{ "node": "a", "reason": "cpu: 0 free, 1m wanted" }]);
    assert_eq!((&late["status"]["rejected"], late["status"].get("placement")), (&why, None), "{late:#}");
    let mut there = asks("named", "1m");
    there["spec"]["node"] = json!("a");
    let refused = server.post("/api/v1/apps", &there).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "node-not-eligible"), "{}", refused.body);

    let told = a.told_to("run", "half").await;
    assert_eq!(server.delete("/api/v1/apps/half").await.status, 202);
    a.told(|set| set.iter().any(|of| of.name == "half" && of.remove)).await;
    a.removed(&told.uid, Vec::new()).await;
    a.told_to("run", "late").await;
    server.stop().await;
}

#[tokio::test]
async fn a_workload_is_suspended_resumed_and_restarted_where_it_is() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    running(&server, &a, app("web")).await;
    let suspended = server.post("/api/v1/apps/web/suspend", &Value::Null).await;
    assert_eq!((suspended.status, &suspended.json()["spec"]["suspended"]), (200, &json!(true)), "{}", suspended.body);
    let told = a.told_to("stop", "web").await;
    a.says(status(&told, "Stopped")).await;
    server.until("/api/v1/apps/web", |web| web["status"]["phase"] == "Stopped").await;
    let refused = server.post("/api/v1/apps/web/restart", &Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "workload-suspended"));
    assert_eq!(server.post("/api/v1/apps/web/resume", &Value::Null).await.status, 200);
    let told = a.told_to("run", "web").await;
    assert_eq!(server.post("/api/v1/apps/web/restart", &Value::Null).await.status, 200);
    a.told(|set| set.iter().any(|a| a.generation == told.generation + 1)).await;
    server.stop().await;
}

#[tokio::test]
async fn a_health_check_is_shown_as_it_was_written_and_told_to_the_node() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    let mut web = app("web");
    let check = json!({ "type": "http", "path": "/up", "port": 80, "interval": "2s", "startPeriod": "1m" });
    web["spec"]["healthCheck"] = check.clone();
    let made = server.post("/api/v1/apps", &web).await;
    assert_eq!((made.status, &made.json()["spec"]["healthCheck"]), (201, &check), "{}", made.body);
    let told = a.told_to("run", "web").await;
    let told = told.spec.unwrap().services[0].health_check.clone().unwrap();
    assert_eq!((told.probe.as_str(), told.port, told.interval_ms, told.start_period_ms), ("http", 80, 2_000, 60_000));
    web["metadata"]["name"] = json!("other");
    web["spec"]["healthCheck"]["interval"] = json!("soon");
    let wrong = server.post("/api/v1/apps", &web).await;
    assert!(wrong.json()["detail"].as_str().unwrap().starts_with("spec.healthCheck.interval"), "{}", wrong.body);
    server.stop().await;
}
