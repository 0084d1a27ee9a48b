//! Join tokens.

use cara_transport::JoinToken;
use serde_json::{Value, json};

use crate::harness::Server;

#[tokio::test]
async fn a_token_is_shown_once_and_carries_all_a_machine_needs() {
    let server = Server::start().await;
    let minted = server.post("/api/v1/nodes/join-tokens", &json!({ "nodeName": "n1", "ttlSeconds": 5 })).await;
    assert_eq!(minted.status, 201, "{}", minted.body);
    let token: JoinToken = minted.json()["token"].as_str().unwrap().parse().unwrap();
    assert_eq!(token.servers, std::slice::from_ref(&server.address));
    assert_eq!(token.ca_fingerprint, server.founded.ca_fingerprint);

    let list = server.get("/api/v1/nodes/join-tokens").await;
    assert_eq!(list.json()["items"][0]["state"], "unused");
    assert!(!list.body.contains(&token.secret), "a list shows no secret");
    let id = minted.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(server.delete(&format!("/api/v1/nodes/join-tokens/{id}")).await.status, 204);
    assert_eq!(server.get("/api/v1/nodes/join-tokens").await.json()["items"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn minting_again_with_the_same_key_shows_the_same_token() {
    let server = Server::start().await;
    let mint = async |key: &str| -> Value {
        server.call("POST", "/api/v1/nodes/join-tokens", &[("idempotency-key", key)], "").await.json()
    };
    let (first, again, other) = (mint("a").await, mint("a").await, mint("b").await);
    assert_eq!(first, again);
    assert_ne!(first["token"], other["token"]);
    server.stop().await;
}
