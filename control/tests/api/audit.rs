//! The audit: who changed what, from where.

use serde_json::{Value, json};

use cara_core::FEATURE_LEVEL;

use crate::harness::{Server, app};

fn commands(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["command"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_record_says_who_changed_what_from_where() {
    let server = Server::start().await;
    let (token, id) = server.token(&json!({ "name": "ci", "ability": "write" })).await;
    let made = server.as_token(&token, "POST", "/api/v1/apps", &app("web")).await;
    assert_eq!(made.status, 201);
    let headers = [("idempotency-key", "delete-web")];
    assert_eq!(server.call("DELETE", "/api/v1/apps/web?force=true", &headers, "").await.status, 204);
    let page = server.get("/api/v1/audit-log").await.json();
    let items = page["items"].as_array().unwrap();
    assert_eq!((&items[0]["command"], &items[0]["requestId"]), (&json!("DeleteWorkload"), &json!("delete-web")));
    assert!(items[0]["before"].is_u64() && items[0]["after"].is_null(), "{}", items[0]);
    let made = &items[1];
    assert_eq!((&made["actor"], &made["actorName"]), (&json!(format!("token:{id}")), &json!("ci")));
    assert!(made["caller"].as_str().unwrap().starts_with("127.0.0.1:"), "{made}");
    assert_eq!((&made["subject"], &made["after"]), (&json!("workload/web"), &made["revision"]));
    assert!(made["before"].is_null() && made["subjectId"].as_str().unwrap().starts_with("wl_"), "{made}");
    assert!(page["next"].is_null() && page["notice"].is_null(), "{page}");

    let by_ci = server.get("/api/v1/audit-log?actor=ci").await.json();
    assert_eq!(commands(&by_ci), ["ApplyWorkload"]);
    let of_web = server.get("/api/v1/audit-log?subject=workload%2Fweb&limit=1").await.json();
    assert_eq!(commands(&of_web), ["DeleteWorkload"]);
    let next = of_web["next"].as_u64().unwrap();
    let rest = server.get(&format!("/api/v1/audit-log?subject=web&before={next}")).await.json();
    assert_eq!(commands(&rest), ["ApplyWorkload"]);
    let forward = server.get("/api/v1/audit-log?after=0&limit=2").await.json();
    assert_eq!(commands(&forward)[0], "InitCluster");
    let next = forward["next"].as_u64().unwrap();
    let rest = server.get(&format!("/api/v1/audit-log?after={next}")).await.json();
    assert_eq!(commands(&rest).last(), Some(&"DeleteWorkload"));
    let later = server.get("/api/v1/audit-log?since=2999-01-01T00%3A00%3A00Z").await.json();
    assert_eq!(commands(&later), Vec::<&str>::new());
    for wrong in ["limit=0", "limit=1001", "since=soon", "before=1&after=2"] {
        assert_eq!(server.get(&format!("/api/v1/audit-log?{wrong}")).await.status, 400, "{wrong}");
    }
    let refused = server.as_token(&token, "GET", "/api/v1/audit-log", &Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_was_handed_on_is_recorded_from_where_it_came() {
    let first = Server::start().await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    let leader = first.get("/api/v1/servers").await.json()["leader"].as_str().unwrap().to_owned();
    let follower = if leader == "s1" { &second } else { &first };
    // From an address of its own, so that it can't be taken for a server's.
    assert_eq!(follower.post("/api/v1/apps", &app("web")).await.status, 201);
    let page = follower.get("/api/v1/audit-log?subject=web").await.json();
    let caller = page["items"][0]["caller"].as_str().unwrap().to_owned();
    assert!(caller.starts_with("127.0.0.1:") && ![&first.address, &second.address].contains(&&caller), "{page}");
    assert!(page["items"][0]["actor"].as_str().unwrap().starts_with("token:"), "{page}");
    second.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn a_cluster_with_an_older_server_records_what_that_one_knows() {
    let server = Server::start_at(2).await;
    assert_eq!(server.post("/api/v1/apps", &app("web")).await.status, 201);
    let page = server.get("/api/v1/audit-log?subject=web").await.json();
    assert!(page["items"][0]["caller"].is_null() && page["items"][0]["after"].is_null(), "{page}");
    let made = server.post("/api/v1/tokens", &json!({ "name": "ci", "ability": "read" })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let scoped = json!({ "name": "part", "ability": "read", "scopes": ["workload:a"] });
    let refused = server.post("/api/v1/tokens", &scoped).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "feature-needed"));
    server.stop().await;
}
