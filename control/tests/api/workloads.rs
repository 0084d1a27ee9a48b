//! Apps and projects: create, change, list, delete.

use serde_json::json;

use crate::harness::{Server, app};

#[tokio::test]
async fn an_app_lives_from_post_to_delete() {
    let server = Server::start().await;
    let made = server.post("/api/v1/apps", &app("hello")).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let view = made.json();
    assert_eq!(view["status"]["phase"], "Pending");
    assert_eq!(view["status"]["reason"], "NoNode");
    assert_eq!(view["spec"]["image"], "busybox:1");
    let tag = made.headers["etag"].to_str().unwrap().to_owned();

    let again = server.post("/api/v1/apps", &app("hello")).await;
    assert_eq!((again.status, again.code().as_str()), (409, "already-exists"));

    let mut changed = app("hello");
    changed["spec"]["image"] = json!("busybox:2");
    let put = server.call("PUT", "/api/v1/apps/hello", &[("if-match", &tag)], &changed.to_string()).await;
    assert_eq!(put.status, 200, "{}", put.body);
    let stale = server.call("PUT", "/api/v1/apps/hello", &[("if-match", &tag)], &app("hello").to_string()).await;
    assert_eq!((stale.status, stale.code().as_str()), (409, "revision-mismatch"), "somebody else was first");

    let listed = server.get("/api/v1/apps").await.json();
    assert_eq!(listed["kind"], "AppList");
    assert_eq!(listed["items"][0]["spec"]["image"], "busybox:2");
    assert_eq!(server.get("/api/v1/apps?phase=Running").await.json()["items"], json!([]));

    assert_eq!(server.delete("/api/v1/apps/hello").await.status, 204, "it was placed nowhere");
    assert_eq!(server.get("/api/v1/apps/hello").await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_deletion_that_is_sent_again_under_its_key_is_told_that_it_is_done() {
    let server = Server::start().await;
    assert_eq!(server.post("/api/v1/apps", &app("hello")).await.status, 201);
    for key in ["first", "first"] {
        let told = server.call("DELETE", "/api/v1/apps/hello", &[("idempotency-key", key)], "").await;
        assert_eq!(told.status, 204, "{}", told.body);
    }
    let other = server.call("DELETE", "/api/v1/apps/hello", &[("idempotency-key", "second")], "").await;
    assert_eq!(other.status, 404, "another request finds nothing");
    server.stop().await;
}

#[tokio::test]
async fn what_is_shown_can_be_applied_again() {
    let server = Server::start().await;
    let project = json!({
        "apiVersion": "caravanserai/v1", "kind": "Project", "metadata": { "name": "shop", "labels": { "team": "a" } },
        "spec": {
            "services": [
                { "name": "web", "image": "web:1", "ports": [{ "container": 80, "host": 8080 }] },
                { "name": "db", "image": "db:1", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] },
            ],
            "volumes": [{ "name": "data", "type": "Ephemeral" }],
            "ingress": [{ "name": "public", "host": "shop.lan", "target": { "service": "web", "port": 80 } }],
            "nodeSelector": { "disk": "ssd" },
            "expireAt": "2035-01-01T00:00:00Z",
        },
    });
    let made = server.post("/api/v1/projects", &project).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let before = made.json();
    let again = server.put("/api/v1/projects/shop", &before).await;
    assert_eq!(again.status, 200, "{}", again.body);
    let after = again.json();
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "nothing changed");
    server.stop().await;
}

#[tokio::test]
async fn a_retry_with_the_same_key_is_done_once() {
    let server = Server::start().await;
    let key = [("idempotency-key", "k-1")];
    let first = server.call("POST", "/api/v1/apps", &key, &app("once").to_string()).await;
    let second = server.call("POST", "/api/v1/apps", &key, &app("once").to_string()).await;
    assert_eq!((first.status, second.status), (201, 201), "{}", second.body);
    assert_eq!(first.json()["metadata"]["uid"], second.json()["metadata"]["uid"]);
    let reused = server.call("DELETE", "/api/v1/apps/once", &key, "").await;
    assert_eq!((reused.status, reused.code().as_str()), (409, "request-id-reused"));
    server.stop().await;
}
