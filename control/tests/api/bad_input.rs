//! What people get wrong, and what they are told.

use hyper::body::Bytes;
use serde_json::json;

use crate::harness::{Server, app};

#[tokio::test]
async fn each_mistake_is_named() {
    let server = Server::start().await;
    // (what is sent, status, code, a word that the detail must have)
    let mut unknown = app("hello");
    unknown["spec"]["imgae"] = json!("x");
    let mut kind = app("hello");
    kind["kind"] = json!("Deployment");
    let mut version = app("hello");
    version["apiVersion"] = json!("v1");
    let mut name = app("hello");
    name["metadata"]["name"] = json!("Hello_World");
    let mut port = app("hello");
    port["spec"]["ports"] = json!([{ "container": 70000 }]);
    let mut twice = app("hello");
    twice["spec"]["env"] = json!([{ "name": "A" }, { "name": "A" }]);
    let mut node = app("hello");
    node["spec"]["node"] = json!("nowhere");
    let mut mount = app("hello");
    mount["spec"]["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    let cases = [
        (unknown.to_string(), 400, "invalid-body", "imgae"),
        (kind.to_string(), 400, "invalid-request", "kind"),
        (version.to_string(), 400, "invalid-request", "apiVersion"),
        (name.to_string(), 400, "invalid-field", "metadata.name"),
        (port.to_string(), 400, "invalid-body", "70000"),
        (twice.to_string(), 400, "invalid-request", "spec.env[1].name"),
        (node.to_string(), 400, "invalid-request", "spec.node"),
        (mount.to_string(), 400, "invalid-field", "spec.volumeMounts[0].name"),
        ("{\n  \"apiVersion\": nope\n}".to_owned(), 400, "invalid-body", "line 2"),
        (String::new(), 400, "invalid-body", "EOF"),
        (app("x").to_string().replace("busybox:1", &"b".repeat(70_000)), 413, "body-too-large", "65536"),
    ];
    for (body, status, code, word) in cases {
        let answer = server.call("POST", "/api/v1/apps", &[], &body).await;
        let shown = &body[..body.len().min(200)];
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{shown}: {}", answer.body);
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(word), "{detail:?} should name {word:?}");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
    let list = server.get("/api/v1/apps").await.json();
    assert_eq!(list["items"], json!([]), "nothing of all that was kept");
    server.stop().await;
}

#[tokio::test]
async fn without_the_right_token_nothing_is_told() {
    let server = Server::start().await;
    for token in [None, Some("Bearer cara_wrong"), Some("Basic abc")] {
        let headers: Vec<_> = token.map(|t| ("authorization", t.to_owned())).into_iter().collect();
        for path in ["/api/v1/nodes", "/api/v1/watch", "/metrics", "/api/v1/nowhere", "/api/v1/nodes?consistency=stale"]
        {
            let answer = server.send("GET", path, &headers, Bytes::new()).await.unwrap();
            assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"), "{path} {token:?}");
        }
    }
    let live = server.send("GET", "/livez", &[], Bytes::new()).await.unwrap();
    assert_eq!((live.status, live.body.as_str()), (200, "ok\n"));
    let ready = server.send("GET", "/readyz", &[], Bytes::new()).await.unwrap();
    assert_eq!(ready.status, 200, "{}", ready.body);
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_path_or_verb_is_a_problem_too() {
    let server = Server::start().await;
    let wrong = server.get("/api/v1/pods").await;
    assert_eq!((wrong.status, wrong.code().as_str()), (404, "no-such-path"));
    let wrong = server.call("PATCH", "/api/v1/nodes", &[], "").await;
    assert_eq!((wrong.status, wrong.code().as_str()), (405, "method-not-allowed"));
    let missing = server.get("/api/v1/apps/ghost").await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "unknown-workload"));
    server.stop().await;
}

#[tokio::test]
async fn a_key_that_was_used_for_another_request_makes_no_retry() {
    let server = Server::start().await;
    let key = [("idempotency-key", "k1")];
    assert_eq!(server.call("POST", "/api/v1/apps", &key, &app("web").to_string()).await.status, 201);
    let ghost = server.call("DELETE", "/api/v1/apps/ghost", &key, "").await;
    assert_eq!((ghost.status, ghost.code().as_str()), (404, "unknown-workload"));
    let gone = server.call("DELETE", "/api/v1/apps/web", &[("idempotency-key", "k2")], "").await;
    assert!(gone.status == 202 || gone.status == 204, "{}", gone.body);
    server.stop().await;
}
