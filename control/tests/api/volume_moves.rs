//! Moves of what has state: the copying, what of it is remembered, and what stays behind.

use cara_proto::agent::HeldVolume;
use cara_proto::workload::TransferStatus;
use serde_json::{Value, json};

use crate::agent::{Agent, ready, status};
use crate::harness::{Server, app};
use crate::moves::running;

/// An app with a managed volume.
fn store() -> Value {
    let mut manifest = app("store");
    manifest["spec"]["volumes"] = json!([{ "name": "data", "type": "Managed" }]);
    manifest["spec"]["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    manifest
}

/// Patient enough that nothing but the machines' words carries the move on.
const PATIENT: &str = r#"{"node_id":"b","interval_s":3600}"#;

async fn applied(server: &Server) -> String {
    server.get("/api/v1/nodes").await.headers["cara-revision"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn volumes_are_copied_before_the_target_starts() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, store()).await;
    let begun = server.call("POST", "/api/v1/apps/store/move", &[], PATIENT).await.json();
    let id = begun["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/node-moves/{id}");
    let told = b.told_to("receive", "store").await;
    let transfer = told.transfer.clone().unwrap();
    assert_eq!((transfer.round, transfer.r#final, transfer.relay), (1, false, false));
    assert_eq!(transfer.source_address, "a.lan:7444", "as its agent has said, not as the node was described");
    assert_eq!((transfer.from_data_generation, transfer.to_data_generation), (1, told.data_generation));

    // Bytes under way are shown, and never written down.
    let said = |done| TransferStatus {
        move_id: id.clone(),
        bytes_total: 100,
        bytes_done: done,
        rate_bytes_per_second: 7,
        ..TransferStatus::default()
    };
    b.says(ready(&told, Some(said(10)))).await;
    server.until(&path, |mv| mv["transfer"]["bytes_done"] == 10).await;
    b.says(ready(&told, Some(said(20)))).await;
    server.until(&path, |mv| mv["transfer"]["bytes_done"] == 20).await;
    let before = applied(&server).await;
    for done in [30, 40, 50] {
        b.says(ready(&told, Some(said(done)))).await;
        let mv = server.until(&path, |mv| mv["transfer"]["bytes_done"] == done).await;
        assert_eq!((&mv["transfer"]["round"], &mv["transfer"]["bytes_total"]), (&json!(1), &json!(100)));
    }
    assert_eq!(applied(&server).await, before, "progress is no entry");

    let round = |round, r#final| TransferStatus { round, bytes_sent: 100, digest: "d1".into(), r#final, ..said(100) };
    b.says(ready(&told, Some(round(1, false)))).await;
    let told_a = a.told_to("stop", "store").await;
    a.says(status(&told_a, "Stopped")).await;
    let fits = |a: &cara_proto::workload::Assignment| a.transfer.as_ref().is_some_and(|t| t.r#final && t.round == 2);
    let told = b.told(|set| set.iter().any(fits)).await.remove(0);
    assert_eq!(told.mode, "receive");
    b.says(ready(&told, Some(round(2, true)))).await;
    let told = b.told_to("run", "store").await;
    assert_eq!(told.data_generation, told.generation, "the copy, not what lay there before");
    b.says(status(&told, "Running")).await;
    let retired = a.told_to("retire", "store").await;
    let held = HeldVolume {
        uid: retired.uid.clone(),
        workload: "store".into(),
        volume: "data".into(),
        data_generation: retired.data_generation,
        bytes: 100,
        engine_name: "cara-store-data-1".into(),
    };
    a.removed(&retired.uid, vec![held]).await;
    let done = server.until(&path, |mv| mv["status"] != "running").await;
    assert_eq!(done["status"], "succeeded", "{done:#}");
    assert!(done["downtime_ms"].is_u64() && done["stopped_at"].is_string(), "{done:#}");
    assert_eq!((&done["transfer"]["bytes_total"], &done["transfer"]["round"]), (&json!(100), &json!(2)));

    let volumes = server.until("/api/v1/nodes/a/volumes", |list| list["items"] != json!([])).await;
    let kept = json!({
        "workload": "store", "volume": "data", "data_generation": 1, "bytes": 100, "state": "quarantined",
        "engine_name": "cara-store-data-1",
    });
    assert_eq!(volumes["items"], json!([kept]));
    let older = server.get(&format!("/api/v1/apps/store/moves/{id}")).await.json();
    let steps: Vec<_> = older["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(steps, ["stop_app", "move_volume:data", "update_placement", "resume_app"]);
    assert!(older["steps"].as_array().unwrap().iter().all(|step| step["status"] == "succeeded"), "{older:#}");
    let plan = server.post("/api/v1/apps/store/move", &json!({ "dry_run": true })).await.json();
    assert_eq!((&plan["bytes"], &plan["predicted_downtime_ms"]), (&json!(100), &done["downtime_ms"]));
    server.stop().await;
}

#[tokio::test]
async fn different_content_is_never_started() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, store()).await;
    let body = r#"{"node_id":"b","attempts":1,"interval_s":1}"#;
    let id = server.call("POST", "/api/v1/apps/store/move", &[], body).await.json()["id"].as_str().unwrap().to_owned();
    let told = b.told_to("receive", "store").await;
    let round = |round| TransferStatus { move_id: id.clone(), round, digest: "d".into(), ..TransferStatus::default() };
    b.says(ready(&told, Some(round(1)))).await;
    let told_a = a.told_to("stop", "store").await;
    a.says(status(&told_a, "Stopped")).await;
    b.told(|set| set.iter().any(|a| a.transfer.as_ref().is_some_and(|t| t.round == 2))).await;
    b.says(ready(&told, Some(round(2)))).await;
    // The round is done, and the target doesn't say that both sides held the same.
    let told = b.told_to("discard", "store").await;
    let told_a = a.told_to("run", "store").await;
    assert!(told_a.generation > told.generation, "the source runs again, under a new grant");
    b.removed(&told.uid, Vec::new()).await;
    let over = server.until(&format!("/api/v1/node-moves/{id}"), |mv| mv["status"] != "running").await;
    assert_eq!(over["status"], "rolled_back", "{over:#}");
    assert!(over["error"].as_str().unwrap().contains("differs"), "{over:#}");
    server.stop().await;
}

#[tokio::test]
async fn an_app_with_volumes_is_moved_with_them_or_not_at_all() {
    let server = Server::start().await;
    let (a, b) = (Agent::join(&server, "a").await, Agent::join(&server, "b").await);
    running(&server, &a, store()).await;
    let bare = server.put("/api/v1/apps/store/node", &json!({ "node_id": "b" })).await;
    assert_eq!((bare.status, bare.code().as_str()), (400, "has-volumes"));
    let begun = server.post("/api/v1/apps/store/move-with-volumes", &json!({ "node_id": "b" })).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let steps = begun.json()["steps"].as_array().unwrap().clone();
    let states: Vec<_> = steps.iter().map(|step| step["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["running", "pending", "pending", "pending"]);
    b.told_to("receive", "store").await;
    server.stop().await;
}
