//! Nodes that are given up.

use serde_json::{Value, json};

use crate::agent::{Agent, status};
use crate::databases::database;
use crate::harness::{Server, app};

#[tokio::test]
async fn a_lost_node_s_data_is_given_up_only_when_somebody_says_so() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    assert_eq!(server.post("/api/v1/databases", &database("shop")).await.status, 201);
    let told = a.told_to("run", "shop").await;
    a.says(status(&told, "Running")).await;
    assert_eq!(server.post("/api/v1/apps", &app("web")).await.status, 201);
    a.told_to("run", "web").await;
    let online = server.post("/api/v1/nodes/a/lost", &json!({ "confirm": true })).await;
    assert_eq!((online.status, online.code().as_str()), (409, "node-online"));

    let back = a.leave(&server).await;
    let b = Agent::join(&server, "b").await;
    let asked = server.post("/api/v1/nodes/a/lost", &Value::Null).await;
    assert_eq!(asked.status, 400, "null is no body: {}", asked.body);
    let asked = server.call("POST", "/api/v1/nodes/a/lost", &[], "").await;
    assert_eq!((asked.status, asked.code().as_str()), (409, "confirmation-needed"), "{}", asked.body);
    let detail = asked.json()["detail"].as_str().unwrap().to_owned();
    for word in ["database shop (volumes: data)", "1 workloads without state", "caractrl nodes lost a --confirm"] {
        assert!(detail.contains(word), "{detail}");
    }
    assert_eq!(server.get("/api/v1/nodes/a").await.json()["status"].get("lost"), None, "nothing has happened");

    let key = [("idempotency-key", "lost-1")];
    let body = r#"{"confirm":true,"reason":"it burned"}"#;
    let lost = server.call("POST", "/api/v1/nodes/a/lost", &key, body).await;
    assert_eq!(lost.status, 200, "{}", lost.body);
    let given_up = json!([{ "kind": "database", "name": "shop", "volumes": ["data"] }]);
    assert_eq!(lost.json(), json!({ "node": "a", "given_up": given_up, "moves": [] }));
    let again = server.call("POST", "/api/v1/nodes/a/lost", &key, body).await;
    assert_eq!(again.json(), lost.json(), "the answer was lost");
    let anew = b.told_to("run", "shop").await;
    assert_eq!(anew.data_generation, anew.generation, "with new volumes");
    assert!(anew.generation > told.generation);
    b.told_to("run", "web").await;
    assert_eq!(server.get("/api/v1/nodes/a").await.json()["status"]["lost"], true);

    let a = back(&server).await;
    assert!(a.told(<[_]>::is_empty).await.is_empty(), "nothing there is its own any more");
    assert_eq!(server.get("/api/v1/nodes/a").await.json()["status"].get("lost"), None);
    server.stop().await;
}
