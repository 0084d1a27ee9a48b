//! Volumes that nodes keep, and what an operator says about them.

use bytes::Bytes;
use cara_proto::agent::{HeldVolume, Report};
use serde_json::json;

use crate::agent::{Agent, status};
use crate::databases::database;
use crate::harness::Server;

fn held(uid: &str, data_generation: u64, bytes: u64) -> HeldVolume {
    HeldVolume {
        uid: uid.into(),
        workload: "shop".into(),
        volume: "data".into(),
        data_generation,
        bytes,
        engine_name: format!("cara-shop-data-g{data_generation}"),
    }
}

fn keeps(held: Vec<HeldVolume>) -> Report {
    Report { held, ..Report::default() }
}

#[tokio::test]
async fn a_kept_volume_is_removed_by_its_agent_once_somebody_says_so() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    let list = "/api/v1/nodes/a/volumes";
    a.report(keeps(vec![held("gone", 3, 0), held("gone", 4, 7)])).await;
    let kept = server.until(list, |list| list["items"].as_array().is_some_and(|items| items.len() == 2)).await;
    assert_eq!(
        kept["items"][0],
        json!({
            "workload": "shop", "volume": "data", "data_generation": 3, "bytes": 0, "state": "quarantined",
            "engine_name": "cara-shop-data-g3",
        })
    );
    let path = "/api/v1/nodes/a/volumes/cara-shop-data-g3";
    let unknown = server.call("DELETE", "/api/v1/nodes/a/volumes/cara-shop-data-g9", &[], "").await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "unknown-volume"));
    assert_eq!(server.call("DELETE", "/api/v1/nodes/b/volumes/x", &[], "").await.code(), "unknown-node");

    let key = [("idempotency-key", "remove-1")];
    let asked = server.call("DELETE", path, &key, "").await;
    assert_eq!((asked.status, &asked.json()["state"]), (202, &json!("removing")), "{}", asked.body);
    let told = a.told_to_remove(1).await.remove(0);
    let words = (told.uid.as_str(), told.volume.as_str(), told.data_generation, told.engine_name.as_str());
    assert_eq!(words, ("gone", "data", 3, "cara-shop-data-g3"));
    // Measured meanwhile: still to be removed. Started again, and not measured yet: what was known stays.
    a.report(keeps(vec![held("gone", 3, 5), held("gone", 4, 0)])).await;
    let kept = server.until(list, |list| list["items"][0]["bytes"] == 5).await;
    assert_eq!((&kept["items"][0]["state"], &kept["items"][1]["bytes"]), (&json!("removing"), &json!(7)));
    a.report(keeps(vec![held("gone", 4, 7)])).await;
    assert!(a.told_to_remove(0).await.is_empty());
    let kept = server.until(list, |list| list["items"].as_array().is_some_and(|items| items.len() == 1)).await;
    assert_eq!(kept["items"][0]["data_generation"], 4);
    let again = server.call("DELETE", path, &key, "").await;
    assert_eq!(again.status, 204, "the answer was lost, and it is gone by now: {}", again.body);
    server.stop().await;
}

#[tokio::test]
async fn what_a_workload_has_is_not_removed_and_nothing_by_a_stranger() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    assert_eq!(server.post("/api/v1/databases", &database("shop")).await.status, 201);
    let told = a.told_to("run", "shop").await;
    let volume = held(&told.uid, told.data_generation, 1);
    let path = format!("/api/v1/nodes/a/volumes/{}", volume.engine_name);
    a.report(Report { statuses: vec![status(&told, "Running")], held: vec![volume], ..Report::default() }).await;
    server.until("/api/v1/nodes/a/volumes", |list| list["items"] != json!([])).await;
    let refused = server.call("DELETE", &path, &[], "").await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "volume-needed"));
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("belongs to the data that workload shop has now"), "{detail}");
    let nobody = server.send("DELETE", &path, &[], Bytes::new()).await.unwrap();
    assert_eq!(nobody.status, 401, "{}", nobody.body);
    server.stop().await;
}
