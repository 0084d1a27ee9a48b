//! Servers' certificates and the replacement of the CA, from outside.

use cara_core::FEATURE_LEVEL;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::harness::Server;

/// The fingerprint that is pinned by whoever comes now.
fn fingerprint(view: &Value) -> String {
    view["fingerprint"].as_str().unwrap().to_owned()
}

fn is_at(number: u64) -> impl Fn(&Value) -> bool {
    move |view| view["phase"] == "stable" && view["number"] == number
}

#[tokio::test]
async fn the_ca_is_replaced_while_the_servers_run_and_old_pins_go_on() {
    let mut first = Server::start_at(FEATURE_LEVEL).await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    let before = first.until("/api/v1/cluster/ca", is_at(1)).await;
    assert_eq!(fingerprint(&before), first.founded.ca_fingerprint);
    let token = first.post("/api/v1/servers/join-tokens", &json!({})).await.json();
    let begun = first.call("POST", "/api/v1/cluster/ca/rotate", &[("idempotency-key", "k1")], "").await;
    assert_eq!((begun.status, begun.json()["phase"].as_str()), (202, Some("distribute")), "{}", begun.body);
    let after = first.until("/api/v1/cluster/ca", is_at(2)).await;
    assert_ne!(fingerprint(&after), fingerprint(&before));
    assert_eq!(after["formerFingerprints"], json!([first.founded.ca_fingerprint]));
    assert_eq!(begun.json()["nextFingerprint"], after["fingerprint"]);
    let again = first.call("POST", "/api/v1/cluster/ca/rotate", &[("idempotency-key", "k1")], "").await;
    assert_eq!((again.status, again.json()["number"].as_u64()), (202, Some(2)), "the retry begins nothing");

    // The harness pins the first CA. Somebody who comes now pins the second.
    let servers = first.get("/api/v1/servers").await.json();
    for server in servers["servers"].as_array().unwrap() {
        assert_eq!(
            (&server["certificate"]["state"], &server["certificate"]["daysRemaining"]),
            (&json!("ok"), &json!(89))
        );
        assert!(server["certificate"]["generation"].as_u64().unwrap() >= 2, "{server:#}");
    }
    let mut newcomer = cara_control::setup::Founded { ca_fingerprint: fingerprint(&after), ..first.founded.clone() };
    std::mem::swap(&mut first.founded, &mut newcomer);
    assert_eq!(first.get("/api/v1/cluster/ca").await.status, 200);
    std::mem::swap(&mut first.founded, &mut newcomer);

    // What was said is on disk, and a token from before the replacement still brings a server in.
    first.restart_at(FEATURE_LEVEL).await;
    first.until("/api/v1/servers", |view| view["votersAlive"] == 2).await;
    let third = first.join_with("s3", FEATURE_LEVEL, token["token"].as_str().unwrap()).await.unwrap();
    third.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn a_node_that_is_away_holds_it_back_until_an_operator_goes_on_without_it() {
    let server = Server::start_at(FEATURE_LEVEL).await;
    let agent = Agent::join(&server, "a").await;
    assert_eq!(server.post("/api/v1/cluster/ca/rotate", &json!({ "force": true })).await.code(), "no-ca-rotation");
    assert_eq!(server.post("/api/v1/cluster/ca/rotate", &json!({})).await.status, 202);
    // This agent is of a release that does not say whom it trusts.
    let only_the_node = |view: &Value| view["heldBack"] == json!([{ "kind": "node", "name": "a", "lack": "trust" }]);
    server.until("/api/v1/cluster/ca", only_the_node).await;
    let twice = server.post("/api/v1/cluster/ca/rotate", &json!({})).await;
    assert_eq!((twice.status, twice.code().as_str()), (409, "ca-rotation-running"), "{}", twice.body);
    let forced = server.post("/api/v1/cluster/ca/rotate", &json!({ "force": true })).await;
    assert_eq!(forced.status, 202, "{}", forced.body);
    server.until("/api/v1/cluster/ca", is_at(2)).await;
    let node = server.get("/api/v1/nodes/a").await.json();
    assert_eq!(node["status"]["certificate"]["state"], "revoked", "{node:#}");
    drop(agent);
    server.stop().await;
}

#[tokio::test]
async fn it_needs_every_server_to_know_how_and_a_body_that_is_understood() {
    let server = Server::start_at(2).await;
    let early = server.post("/api/v1/cluster/ca/rotate", &json!({})).await;
    assert_eq!((early.status, early.code().as_str()), (409, "feature-needed"), "{}", early.body);
    let strange = server.post("/api/v1/cluster/ca/rotate", &json!({ "forse": true })).await;
    assert_eq!(strange.status, 400, "{}", strange.body);
    server.stop().await;
}
