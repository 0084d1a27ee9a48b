//! Join tokens.

use cara_transport::JoinToken;
use serde_json::{Value, json};

use crate::harness::Server;

#[tokio::test]
async fn a_token_is_shown_once_and_carries_all_a_machine_needs() {
    let server = Server::start().await;
    let minted = server.post("/api/v1/nodes/join-tokens", &json!({ "node_name": "n1", "ttl": "5s" })).await;
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

#[tokio::test]
async fn how_long_a_token_lives_is_bounded_and_said() {
    let server = Server::start().await;
    let mint = async |body: Value| server.post("/api/v1/nodes/join-tokens", &body).await;
    let usual = mint(json!({})).await.json();
    assert_eq!((&usual["ttl_seconds"], &usual["notes"]), (&json!(900), &Value::Null));
    for (body, seconds, is_told) in [
        (json!({ "ttl": "2h" }), 7_200, false),
        (json!({ "ttl_seconds": 60 }), 60, false),
        (json!({ "ttl": "500ms" }), 60, true),
        (json!({ "ttl_seconds": 0 }), 60, true),
        (json!({ "ttl": "48h" }), 86_400, true),
        (json!({ "ttlSeconds": 90, "nodeName": "n1" }), 90, false),
    ] {
        let minted = mint(body.clone()).await;
        assert_eq!(minted.status, 201, "{body}: {}", minted.body);
        let minted = minted.json();
        assert_eq!(minted["ttl_seconds"], seconds, "{body}");
        assert_eq!(minted["notes"].is_array(), is_told, "{body}: {minted}");
    }
    for wrong in [json!({ "ttl": "soon" }), json!({ "ttl": "1h", "ttl_seconds": 1 })] {
        let refused = mint(wrong).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid-request"), "{}", refused.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn the_commands_are_ready_to_paste() {
    let server = Server::start().await;
    let body = json!({ "node_name": "n1", "node_address": "10.0.0.4", "control_plane_addr": "cara.example:443" });
    let minted = server.post("/api/v1/nodes/join-tokens", &body).await.json();
    let text = minted["token"].as_str().unwrap();
    let token: JoinToken = text.parse().unwrap();
    assert_eq!(token.servers, ["cara.example:443", &server.address], "the way that the operator knows comes first");
    for way in ["binary", "docker"] {
        let command = minted["join_commands"][way].as_str().unwrap();
        for words in ["--name n1", "--advertise 10.0.0.4", &format!("--token {text}")] {
            assert!(command.contains(words), "{way}: {command}");
        }
    }
    for (key, value) in
        [("node_address", "10.0.0.4; rm -rf /"), ("control_plane_addr", "cara.example"), ("node_address", "")]
    {
        let refused = server.post("/api/v1/nodes/join-tokens", &json!({ key: value })).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid-request"), "{key}: {}", refused.body);
    }
    let refused = server.post("/api/v1/nodes/join-tokens", &json!({ "node_name": "Rack7_N2" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid-field"));
    assert!(refused.body.contains("rack7-n2 would do"), "{}", refused.body);
    server.stop().await;
}
