//! The OpenAPI document: served to everyone, and the same as the one that is checked in.

use hyper::body::Bytes;
use serde_json::Value;

use crate::contract;
use crate::harness::Server;

#[tokio::test]
async fn the_document_is_served_to_everyone() {
    let server = Server::start().await;
    let served = server.send("GET", "/api/v1/openapi.json", &[], Bytes::new()).await.unwrap();
    assert_eq!((served.status, &served.headers["content-type"]), (200, &"application/json".parse().unwrap()));
    let kept: Value = std::fs::read_to_string(contract::path()).unwrap().parse().unwrap();
    assert_eq!(kept, served.json());
    server.stop().await;
}

#[tokio::test]
async fn what_the_router_refuses_by_itself_is_a_problem_too() {
    let server = Server::start().await;
    for path in [
        "/api/v1/nodes/n1/events?limit=many",
        "/api/v1/node-moves?limit=-1",
        "/api/v1/nodes/%FF",
        "/api/v1/apps/web/logs?follow=perhaps",
        "/api/v1/nodes?consistency=eventual",
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid-request"), "{path}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_condition_that_cannot_be_read_is_not_ignored() {
    let server = Server::start().await;
    let body = crate::harness::app("web");
    assert_eq!(server.post("/api/v1/apps", &body).await.status, 201);
    for tag in ["nonsense", "\"r\"", "W/\"r1\""] {
        let answer = server.call("PUT", "/api/v1/apps/web", &[("if-match", tag)], &body.to_string()).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid-request"), "{tag}: {}", answer.body);
    }
    let answer = server.call("PUT", "/api/v1/apps/web", &[("idempotency-key", "")], &body.to_string()).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "invalid-request"), "{}", answer.body);
    let tag = server.get("/api/v1/apps/web").await.headers["etag"].to_str().unwrap().to_owned();
    for tag in [tag.as_str(), "*"] {
        let answer = server.call("PUT", "/api/v1/apps/web", &[("if-match", tag)], &body.to_string()).await;
        assert_eq!(answer.status, 200, "{tag}: {}", answer.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn head_asks_for_no_more_than_get() {
    let server = Server::start().await;
    let answer = server.call("HEAD", "/api/v1/nodes", &[], "").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert!(answer.headers.contains_key("cara-revision"));
    server.stop().await;
}

#[tokio::test]
async fn what_the_older_paths_promise_holds() {
    let server = Server::start().await;
    let healthy = server.send("GET", "/api/healthz", &[], Bytes::new()).await.unwrap();
    assert_eq!((healthy.status, healthy.body.as_str()), (200, "OK"));

    let mut shop = crate::harness::app("shop");
    shop["kind"] = "Project".into();
    shop["spec"] = serde_json::json!({ "services": [{ "name": "web", "image": "busybox:1" }] });
    assert_eq!(server.post("/api/v1/projects", &shop).await.status, 201);
    for (query, found) in [
        ("", 1),
        ("?phase=Pending", 1),
        ("?phase=Running", 0),
        ("?phase=Running&phase=Pending", 1),
        ("?phase=Nonsense", 0),
        ("?phase=Pending&nodeRef=n1", 0),
    ] {
        let listed = server.get(&format!("/api/v1/projects{query}")).await.json();
        assert_eq!(listed["items"].as_array().unwrap().len(), found, "{query}");
    }

    let node = serde_json::json!({
        "apiVersion": "caravanserai/v1", "kind": "Node", "metadata": { "name": "n1" }, "spec": {},
    });
    assert_eq!(server.post("/api/v1/nodes", &node).await.status, 201);
    assert_eq!(server.post("/api/v1/nodes", &node).await.status, 409);
    let mut other = node.clone();
    other["metadata"]["name"] = "n2".into();
    assert_eq!(server.put("/api/v1/nodes/n1", &other).await.status, 400, "the body names another node than the path");
    assert_eq!(server.put("/api/v1/nodes/n2", &other).await.status, 404);
    server.stop().await;
}
