//! The watch: what happened, in order, from where one left off.

use http_body_util::BodyExt;
use hyper::body::Bytes;

use crate::harness::{DEADLINE, Server, app};

/// Reads `(id, event, name)` of the next `count` messages.
async fn read(server: &Server, last: Option<u64>, count: usize) -> Vec<(Option<u64>, String, String)> {
    let mut headers = vec![("authorization", server.bearer())];
    headers.extend(last.map(|id| ("last-event-id", id.to_string())));
    let path = "/api/v1/watch?kind=App";
    let mut body = server.open("GET", path, &headers, Bytes::new()).await.unwrap().into_body();
    let mut text = String::new();
    let work = async {
        loop {
            let messages: Vec<_> = text.split("\n\n").filter(|m| m.contains("data: ")).collect();
            if messages.len() >= count && text.ends_with("\n\n") {
                return messages.into_iter().map(parse).collect();
            }
            let frame = body.frame().await.expect("the stream goes on").unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    };
    cara_env::timeout(&*server.env.clock, DEADLINE, work).await.unwrap()
}

fn parse(message: &str) -> (Option<u64>, String, String) {
    let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name));
    let data: serde_json::Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
    let text = |key: &str| data[key].as_str().unwrap().to_owned();
    (field("id: ").map(|id| id.parse().unwrap()), text("event"), text("name"))
}

#[tokio::test]
async fn a_watch_resumes_without_gap_or_repeat() {
    let server = Server::start().await;
    let start = server.get("/api/v1/apps").await.json()["revision"].as_u64().unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(server.post("/api/v1/apps", &app(name)).await.status, 201);
    }
    let all = read(&server, Some(start), 3).await;
    let created: Vec<_> = all.iter().filter(|m| m.1 == "WorkloadCreated").map(|m| m.2.as_str()).collect();
    assert_eq!(created, ["a", "b", "c"]);
    // Resume after the first revision that was complete: exactly the rest comes.
    let first = all.iter().find_map(|m| m.0).unwrap();
    let seen = all.iter().position(|m| m.0 == Some(first)).unwrap() + 1;
    let rest = read(&server, Some(first), all.len() - seen).await;
    assert_eq!(rest, all[seen..]);
    server.stop().await;
}
