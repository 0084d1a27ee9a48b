//! Tokens for a part of the cluster: what is outside is neither shown nor changed.

use http_body_util::BodyExt;
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::databases::database;
use crate::harness::{DEADLINE, Server, app};

fn node(name: &str) -> Value {
    json!({ "apiVersion": "caravanserai/v1", "kind": "Node", "metadata": { "name": name }, "spec": {} })
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Two nodes, two shops, and a token for one of each.
async fn world() -> (Server, String) {
    let server = Server::start().await;
    for name in ["n1", "n2"] {
        assert_eq!(server.post("/api/v1/nodes", &node(name)).await.status, 201);
    }
    for name in ["shop-web", "wages"] {
        assert_eq!(server.post("/api/v1/apps", &app(name)).await.status, 201);
    }
    for name in ["shop-db", "wages-db"] {
        assert_eq!(server.post("/api/v1/databases", &database(name)).await.status, 201);
    }
    let scopes = json!(["node:n1", "workload:shop-"]);
    let (token, id) = server.token(&json!({ "name": "part", "ability": "root", "scopes": scopes })).await;
    let kept = server.get(&format!("/api/v1/tokens/{id}")).await.json()["scopes"][0].as_str().unwrap().to_owned();
    assert!(kept.starts_with("node:nd_"), "a node that is named is meant by its id: {kept}");
    (server, token)
}

#[tokio::test]
async fn what_is_outside_is_refused_whether_it_exists_or_not() {
    let (server, token) = world().await;
    let wages = {
        let mut app = app("shop-web2");
        app["spec"]["databases"] = json!(["wages-db"]);
        app
    };
    let nothing = {
        let mut app = app("shop-web2");
        app["spec"]["databases"] = json!(["nothing"]);
        app
    };
    for (method, path, body) in [
        ("GET", "/api/v1/nodes/n2", Value::Null),
        ("GET", "/api/v1/nodes/nowhere", Value::Null),
        ("GET", "/api/v1/nodes/n2/events", Value::Null),
        ("POST", "/api/v1/nodes/n2/cordon", Value::Null),
        ("DELETE", "/api/v1/nodes/n2", Value::Null),
        ("POST", "/api/v1/nodes", node("n3")),
        ("POST", "/api/v1/nodes/join-tokens", json!({})),
        ("GET", "/api/v1/apps/wages", Value::Null),
        ("GET", "/api/v1/apps/nothing/logs", Value::Null),
        ("GET", "/api/v1/databases/wages-db/connection", Value::Null),
        ("DELETE", "/api/v1/apps/wages", Value::Null),
        ("POST", "/api/v1/apps", app("wages2")),
        ("POST", "/api/v1/apps", wages),
        ("POST", "/api/v1/apps", nothing),
        ("GET", "/api/v1/node-moves/mv_1", Value::Null),
        ("GET", "/api/v1/servers", Value::Null),
        ("GET", "/api/v1/tokens", Value::Null),
        ("POST", "/api/v1/tokens", json!({ "name": "all", "ability": "root" })),
        ("GET", "/api/v1/audit-log", Value::Null),
        ("GET", "/metrics", Value::Null),
        ("GET", "/api/v1/nodes/n2?consistency=stale", Value::Null),
    ] {
        let answer = server.as_token(&token, method, path, &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "out-of-scope"), "{method} {path}: {}", answer.body);
        assert!(!answer.json()["hint"].as_str().unwrap().is_empty());
    }
    assert_eq!(names(&server.get("/api/v1/nodes").await.json()), ["n1", "n2"], "nothing of all that was done");
    assert_eq!(names(&server.get("/api/v1/apps").await.json()), ["shop-web", "wages"]);
    server.stop().await;
}

#[tokio::test]
async fn what_is_within_is_done_and_lists_show_only_that() {
    let (server, token) = world().await;
    let ask = async |method: &str, path: &str, body: Value| server.as_token(&token, method, path, &body).await;
    for path in ["/api/v1/nodes/n1/cordon", "/api/v1/nodes/n1/uncordon"] {
        let answer = ask("POST", path, Value::Null).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    assert_eq!(ask("GET", "/api/v1/nodes/n1/events", Value::Null).await.status, 200);
    let mut uses = app("shop-api");
    uses["spec"]["databases"] = json!(["shop-db"]);
    let made = ask("POST", "/api/v1/apps", uses).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(names(&ask("GET", "/api/v1/nodes", Value::Null).await.json()), ["n1"]);
    assert_eq!(names(&ask("GET", "/api/v1/apps", Value::Null).await.json()), ["shop-api", "shop-web"]);
    assert_eq!(names(&ask("GET", "/api/v1/workloads", Value::Null).await.json()), ["shop-api", "shop-web", "shop-db"]);
    assert_eq!(
        names(&ask("GET", "/api/v1/apps?consistency=stale", Value::Null).await.json()),
        ["shop-api", "shop-web"]
    );
    assert_eq!(ask("GET", "/api/v1/node-moves", Value::Null).await.json(), json!({ "items": [] }));
    assert_eq!(ask("DELETE", "/api/v1/apps/shop-api", Value::Null).await.status, 204);
    server.stop().await;
}

#[tokio::test]
async fn a_watch_shows_what_is_within() {
    let (server, token) = world().await;
    let since = server.get("/api/v1/apps").await.json()["revision"].as_u64().unwrap();
    for name in ["wages3", "shop-last"] {
        assert_eq!(server.post("/api/v1/apps", &app(name)).await.status, 201);
    }
    let headers = [("authorization", format!("Bearer {token}"))];
    let path = format!("/api/v1/watch?since={since}");
    let mut body = server.open("GET", &path, &headers, Bytes::new()).await.unwrap().into_body();
    let mut text = String::new();
    let read = async {
        while !text.contains("shop-last") {
            let frame = body.frame().await.expect("the stream goes on").unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    };
    cara_env::timeout(&*server.env.clock, DEADLINE, read).await.unwrap();
    assert!(!text.contains("wages"), "{text}");
    server.stop().await;
}
