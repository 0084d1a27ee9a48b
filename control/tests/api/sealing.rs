//! The replacement of the sealing key, from outside.

use std::path::PathBuf;

use cara_control::identity::ServerIdentity;
use cara_control::sealing_keys::id_of;
use cara_core::FEATURE_LEVEL;
use cara_proto::cluster::PullSealingKeyRequest;
use cara_proto::cluster::cluster_client::ClusterClient;
use cara_transport::{Identity, Tls};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::harness::{Answer, DEADLINE, Server};

const KEY: &str = "/api/v1/cluster/sealing-key";
const ROTATE: &str = "/api/v1/cluster/sealing-key/rotate";

fn file(server: &Server) -> PathBuf {
    server.data_dir().join("server.json")
}

/// The ids of the keys in its `server.json` as it is now.
fn keys(server: &Server) -> Vec<String> {
    let read: ServerIdentity = serde_json::from_slice(&std::fs::read(file(server)).unwrap()).unwrap();
    read.sealing_keys().map(|key| id_of(key)).collect()
}

fn key_id(view: &Value) -> String {
    view["keyId"].as_str().unwrap().to_owned()
}

/// Until the server has this key and no other.
async fn until_only(server: &Server, id: &str) {
    let work = async {
        while keys(server) != [id] {
            server.env.clock.sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = cara_env::timeout(&*server.env.clock, DEADLINE, work).await;
    assert!(waited.is_ok(), "{:?} instead of {id}", keys(server));
}

async fn rotated(server: &Server, request: &str) -> Value {
    let begun = server.call("POST", ROTATE, &[("idempotency-key", request)], "").await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    server.until(KEY, |view| view["phase"] == "stable").await
}

#[tokio::test]
async fn the_key_is_replaced_on_every_server_and_opens_what_was_sealed() {
    let first = Server::start_at(FEATURE_LEVEL).await;
    let mut second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    let before = first.until(KEY, |view| view["phase"] == "stable").await;
    assert_eq!(vec![key_id(&before)], keys(&first));
    let old_file = std::fs::read(file(&second)).unwrap();

    let after = rotated(&first, "k1").await;
    assert_ne!(key_id(&after), key_id(&before));
    until_only(&first, &key_id(&after)).await;
    until_only(&second, &key_id(&after)).await;
    let again = first.call("POST", ROTATE, &[("idempotency-key", "k1")], "").await;
    assert_eq!((again.status, key_id(&again.json())), (202, key_id(&after)), "the retry begins nothing");
    assert_eq!(again.json()["phase"], "stable");

    // The CA's key opens: a machine and a server are let in, and the CA is replaced.
    drop(Agent::join(&first, "a").await);
    let third = first.join("s3", FEATURE_LEVEL).await.unwrap();
    assert_eq!(keys(&third), [key_id(&after)]);
    // A server whose file is from a backup gets the key that it lacks.
    std::fs::write(file(&second), old_file).unwrap();
    second.restart_at(FEATURE_LEVEL).await;
    until_only(&second, &key_id(&after)).await;
    assert_eq!(first.post("/api/v1/cluster/ca/rotate", &json!({})).await.status, 202);
    let replaced = rotated(&first, "k2").await;
    until_only(&third, &key_id(&replaced)).await;
    let audit = first.get("/api/v1/audit-log").await.json().to_string();
    assert!(audit.contains("RotateSealingKey") && audit.contains("Reseal") && !audit.contains("HoldSealingKey"));
    third.stop().await;
    second.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn a_retry_after_the_key_was_replaced_is_told_so_and_gets_no_second_secret() {
    let server = Server::start_at(FEATURE_LEVEL).await;
    let agent = Agent::join(&server, "a").await;
    let asks = [
        ("/api/v1/nodes/join-tokens", "{}"),
        ("/api/v1/servers/join-tokens", "{}"),
        ("/api/v1/tokens", r#"{"name":"ci","ability":"read"}"#),
        ("/api/v1/nodes/a/reenroll-token", ""),
    ];
    let ask = async |at: usize| -> Answer {
        let (path, body) = asks[at];
        server.call("POST", path, &[("idempotency-key", &format!("ask-{at}"))], body).await
    };
    for at in 0..asks.len() {
        let (made, again) = (ask(at).await, ask(at).await);
        assert_eq!((made.status, again.status), (201, 201), "{} {}", made.body, again.body);
        assert_eq!(made.json()["token"], again.json()["token"], "a retry shows the same one");
    }
    rotated(&server, "k1").await;
    for at in 0..asks.len() {
        let late = ask(at).await;
        assert_eq!((late.status, late.code().as_str()), (409, "token-shown-before"), "{}", late.body);
    }
    let other = server.call("POST", asks[0].0, &[("idempotency-key", "ask-9")], "{}").await;
    assert_eq!(other.status, 201);
    drop(agent);
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_down_holds_it_back_and_one_that_is_removed_gets_no_key() {
    let first = Server::start_at(FEATURE_LEVEL).await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    let third = first.join("s3", FEATURE_LEVEL).await.unwrap();
    let text = |key: &str| third.identity[key].as_str().unwrap().to_owned();
    let of_third =
        Identity { certificate_pem: text("certificate_pem"), key_pem: text("key_pem"), ca_pem: text("ca_pem") };
    let before = first.until(KEY, |view| view["phase"] == "stable").await;
    third.stop().await;
    let begun = first.post(ROTATE, &json!({})).await;
    assert_eq!((begun.status, begun.json()["phase"].as_str()), (202, Some("distribute")), "{}", begun.body);
    let waits = first.until(KEY, |view| view["heldBack"] == json!(["s3"])).await;
    assert_eq!(key_id(&waits), key_id(&before), "nothing is sealed under the next key");
    let twice = first.post(ROTATE, &json!({})).await;
    assert_eq!((twice.status, twice.code().as_str()), (409, "sealing-rotation-running"), "{}", twice.body);
    let anew = first.post(ROTATE, &json!({ "anew": true })).await;
    assert_eq!(anew.status, 202, "{}", anew.body);
    assert_ne!(anew.json()["nextKeyId"], waits["nextKeyId"]);
    assert_eq!(first.delete("/api/v1/servers/s3").await.status, 204);
    let after = first.until(KEY, |view| view["phase"] == "stable").await;
    assert_eq!(after["keyId"], anew.json()["nextKeyId"]);
    until_only(&second, &key_id(&after)).await;

    // Its certificate is good for weeks, and that is not enough.
    let pull = async |identity: &Identity| {
        let tls = Tls::new(&first.env, identity).unwrap().client();
        let channel = cara_transport::connect(&first.env, &first.address, tls, DEADLINE).await.unwrap();
        let request = PullSealingKeyRequest { key_id: key_id(&after) };
        ClusterClient::new(channel).pull_sealing_key(request).await.map(drop).map_err(|status| status.code())
    };
    assert_eq!(pull(&of_third).await, Err(tonic::Code::PermissionDenied));
    let text = |key: &str| second.identity[key].as_str().unwrap().to_owned();
    let of_second =
        Identity { certificate_pem: text("certificate_pem"), key_pem: text("key_pem"), ca_pem: text("ca_pem") };
    assert_eq!(pull(&of_second).await, Ok(()));
    second.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn it_needs_every_server_to_know_how_a_root_token_and_a_body_that_is_understood() {
    let server = Server::start_at(2).await;
    let early = server.post(ROTATE, &json!({})).await;
    assert_eq!((early.status, early.code().as_str()), (409, "feature-needed"), "{}", early.body);
    assert_eq!(keys(&server).len(), 1, "no key was made for nothing");
    let strange = server.post(ROTATE, &json!({ "anwe": true })).await;
    assert_eq!(strange.status, 400, "{}", strange.body);
    let (writer, _) = server.token(&json!({ "name": "ci", "ability": "write" })).await;
    assert_eq!(server.as_token(&writer, "POST", ROTATE, &json!({})).await.status, 403);
    assert_eq!(server.as_token(&writer, "GET", KEY, &Value::Null).await.status, 200);
    server.stop().await;
}
