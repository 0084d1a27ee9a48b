//! API tokens: made, shown once, used, taken back.

use http_body_util::BodyExt;
use hyper::body::Bytes;
use serde_json::{Value, json};

use cara_core::FEATURE_LEVEL;

use crate::harness::{DEADLINE, Server, app};

#[tokio::test]
async fn a_token_is_shown_once_used_listed_and_taken_back() {
    let server = Server::start().await;
    let wanted = json!({ "name": "ci", "ability": "write", "ttlSeconds": 3600 });
    let (token, id) = server.token(&wanted).await;
    assert!(token.starts_with("cara_") && token.len() == 69, "{token}");
    let unused = server.get(&format!("/api/v1/tokens/{id}")).await;
    assert_eq!((&unused.json()["state"], &unused.json()["lastUsedAt"]), (&json!("active"), &Value::Null));
    assert_eq!(server.as_token(&token, "POST", "/api/v1/apps", &app("web")).await.status, 201);
    let refused = server.as_token(&token, "GET", "/api/v1/tokens", &Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));

    let list = server.get("/api/v1/tokens").await;
    let shown = list.json()["items"].as_array().unwrap().iter().find(|item| item["id"] == *id).unwrap().clone();
    assert_eq!((&shown["name"], &shown["ability"], &shown["scopes"]), (&json!("ci"), &json!("write"), &json!([])));
    assert!(shown["expiresAt"].is_string() && shown["lastUsedAt"].is_string(), "{shown}");
    assert!(shown["createdBy"].as_str().unwrap().starts_with("token:tk-"), "{shown}");
    assert!(!list.body.contains(&token) && !list.body.contains("hash"), "a list shows no secret");

    let path = format!("/api/v1/tokens/{id}");
    assert_eq!(server.delete(&path).await.status, 204);
    let refused = server.as_token(&token, "GET", "/api/v1/apps", &Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (401, "unauthenticated"));
    assert_eq!(server.get(&path).await.json()["state"], "revoked");
    assert_eq!(server.delete(&format!("{path}?forget=true")).await.status, 204);
    let gone = server.get(&path).await;
    assert_eq!((gone.status, gone.code().as_str()), (404, "unknown-token"));
    server.stop().await;
}

#[tokio::test]
async fn asking_again_with_the_same_key_shows_the_same_token() {
    let server = Server::start().await;
    let body = json!({ "name": "ci", "ability": "read" }).to_string();
    let make = async |key: &str| server.call("POST", "/api/v1/tokens", &[("idempotency-key", key)], &body).await;
    let (first, again, other) = (make("a").await.json(), make("a").await.json(), make("b").await.json());
    assert_eq!(first, again);
    assert_ne!(first["token"], other["token"]);
    assert_eq!(server.get("/api/v1/tokens").await.json()["items"].as_array().unwrap().len(), 3, "and the root token");
    server.stop().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_named() {
    let server = Server::start().await;
    for (body, status, code, word) in [
        (json!({ "name": "x" }), 400, "invalid-body", "ability"),
        (json!({ "name": "x", "ability": "admin" }), 400, "invalid-request", "ability"),
        (json!({ "name": "", "ability": "read" }), 400, "invalid-field", "token.name"),
        (json!({ "name": "x", "ability": "read", "ttlSeconds": 5 }), 400, "invalid-request", "ttlSeconds"),
        (
            json!({ "name": "x", "ability": "read", "expiresAt": "2001-01-01T00:00:00Z" }),
            400,
            "invalid-request",
            "passed",
        ),
        (json!({ "name": "x", "ability": "read", "expiresAt": "soon" }), 400, "invalid-request", "expiresAt"),
        (json!({ "name": "x", "ability": "read", "scopes": ["nodes:a"] }), 400, "invalid-field", "scopes[0]"),
        (json!({ "name": "x", "ability": "read", "scopes": ["node:a"] }), 404, "unknown-node", "a"),
    ] {
        let answer = server.post("/api/v1/tokens", &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}: {}", answer.body);
        assert!(answer.json()["detail"].as_str().unwrap().contains(word), "{}", answer.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn somebody_can_always_administer_the_cluster() {
    let server = Server::start().await;
    let first = server.get("/api/v1/tokens").await.json()["items"][0]["id"].as_str().unwrap().to_owned();
    // Neither one that expires nor one that reaches a part counts.
    server.token(&json!({ "name": "short", "ability": "root", "ttlSeconds": 3600 })).await;
    server.token(&json!({ "name": "part", "ability": "root", "scopes": ["workload:a"] })).await;
    let refused = server.delete(&format!("/api/v1/tokens/{first}")).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "last-root-token"));
    assert!(refused.json()["hint"].as_str().unwrap().contains("create another root token"), "{}", refused.body);
    server.token(&json!({ "name": "second", "ability": "root" })).await;
    assert_eq!(server.delete(&format!("/api/v1/tokens/{first}")).await.status, 204);
    server.stop().await;
}

#[tokio::test]
async fn a_token_gives_no_more_than_it_has() {
    let server = Server::start().await;
    let (short, _) = server.token(&json!({ "name": "short", "ability": "root", "ttlSeconds": 3600 })).await;
    let make = async |body: Value| server.as_token(&short, "POST", "/api/v1/tokens", &body).await;
    let refused = make(json!({ "name": "for ever", "ability": "read" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "token-exceeds-creator"));
    let made = make(json!({ "name": "shorter", "ability": "root", "ttlSeconds": 600 })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    server.stop().await;
}

#[tokio::test]
async fn what_a_token_follows_ends_with_it() {
    let server = Server::start().await;
    let (token, id) = server.token(&json!({ "name": "watcher", "ability": "read" })).await;
    let headers = [("authorization", format!("Bearer {token}"))];
    let mut body = server.open("GET", "/api/v1/watch", &headers, Bytes::new()).await.unwrap().into_body();
    assert_eq!(server.delete(&format!("/api/v1/tokens/{id}")).await.status, 204);
    let rest = async { while body.frame().await.is_some_and(|frame| frame.is_ok()) {} };
    cara_env::timeout(&*server.env.clock, DEADLINE, rest).await.expect("the stream ends");
    server.stop().await;
}

#[tokio::test]
async fn every_server_takes_and_refuses_a_token_at_once() {
    let first = Server::start().await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    let (token, id) = second.token(&json!({ "name": "ci", "ability": "write" })).await;
    for server in [&first, &second] {
        assert_eq!(server.as_token(&token, "GET", "/api/v1/nodes", &Value::Null).await.status, 200);
    }
    assert_eq!(second.delete(&format!("/api/v1/tokens/{id}")).await.status, 204);
    for server in [&first, &second] {
        assert_eq!(server.as_token(&token, "GET", "/api/v1/nodes", &Value::Null).await.status, 401);
        assert_eq!(server.as_token(&token, "POST", "/api/v1/apps", &app("web")).await.status, 401);
    }
    second.stop().await;
    first.stop().await;
}
