//! The client against small HTTP servers on loopback: which server it asks, with which key, and when it gives up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_env::Env;
use cara_proto::rest::Problem;
use caractrl::client::{Access, Client, ClientError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a server does with one connection.
#[derive(Clone)]
enum Act {
    /// Status and body.
    Answer(u16, String),
    /// Reads the request and closes.
    Hang,
    /// Reads the request and says nothing for ever.
    Freeze,
}

/// A server that does one act after the other, the last one for ever; remembers the requests.
struct Fake {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        drop(cara_env::spawn(async move {
            let mut acts = acts.into_iter().peekable();
            while let Ok((stream, _)) = listener.accept().await {
                let act = acts.next().expect("at least one act");
                if acts.peek().is_none() {
                    acts = vec![act.clone()].into_iter().peekable();
                }
                drop(cara_env::spawn(perform(stream, act, seen.clone())));
            }
        }));
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }

    /// The idempotency keys that came, in order.
    fn keys(&self) -> Vec<String> {
        let key = |request: &String| {
            let line = request.lines().find(|l| l.to_ascii_lowercase().starts_with("idempotency-key:"));
            line.map(|l| l.split_once(':').expect("a header").1.trim().to_owned()).unwrap_or_default()
        };
        self.requests().iter().map(key).collect()
    }
}

async fn perform(mut stream: TcpStream, act: Act, seen: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&request) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => request.extend_from_slice(&buffer[..n]),
        }
    }
    seen.lock().expect("no panic").push(String::from_utf8_lossy(&request).into_owned());
    match act {
        Act::Answer(status, body) => {
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\ncara-answered-by: s9\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Act::Hang => {}
        Act::Freeze => std::future::pending().await,
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    body.len() >= length.map_or(0, |l| l.trim().parse().expect("a number"))
}

fn ok(body: Value) -> Act {
    Act::Answer(200, body.to_string())
}

fn refusal(status: u16, code: &str) -> Act {
    let problem = Problem { status, code: code.into(), detail: code.into(), retryable: true, ..Problem::default() };
    Act::Answer(status, serde_json::to_string(&problem).expect("JSON"))
}

fn busy() -> Act {
    refusal(503, "no-quorum")
}

/// An address where nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    format!("http://{}", listener.local_addr().expect("bound"))
}

fn client(servers: Vec<String>, limit_ms: u64) -> (Client, Arc<Mutex<Vec<String>>>) {
    let access = Access { servers, token: "secret".into(), ca_fingerprint: String::new() };
    let notes = Arc::new(Mutex::new(Vec::new()));
    let said = notes.clone();
    let client = Client::new(&Env::real(), &access)
        .expect("right addresses")
        .with_limit(Duration::from_millis(limit_ms))
        .with_notice(Arc::new(move |text| said.lock().expect("no panic").push(text.to_owned())));
    (client, notes)
}

#[tokio::test]
async fn a_read_goes_on_to_the_next_server_says_so_and_stays_there() {
    let alive = Fake::start(vec![ok(json!({ "a": 1 }))]).await;
    let (client, notes) = client(vec![nobody().await, alive.address.clone()], 10_000);
    for _ in 0..3 {
        let value: Value = client.get("/x").await.expect("answered");
        assert_eq!(value, json!({ "a": 1 }));
    }
    let notes = notes.lock().expect("no panic").clone();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("refused") && notes[0].contains("went on with"), "{notes:?}");
    let requests = alive.requests();
    assert!(requests[0].starts_with("GET /api/v1/x HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("authorization: Bearer secret\r\n"), "{}", requests[0]);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_key_elsewhere() {
    let first = Fake::start(vec![Act::Hang]).await;
    let second = Fake::start(vec![busy(), Act::Answer(201, "{}".into())]).await;
    let (client, _) = client(vec![first.address.clone(), second.address.clone()], 10_000);
    let answer = client.post("/apps", &json!({ "x": 1 })).await.expect("answered");
    assert_eq!((answer.status, answer.header("cara-answered-by")), (201, "s9"));
    let mut keys = first.keys();
    keys.extend(second.keys());
    assert_eq!(keys.len(), 4, "{keys:?}");
    assert!(keys[0].len() == 32 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert!(second.requests()[0].ends_with("{\"x\":1}"));

    client.post("/apps", &json!({ "x": 1 })).await.expect("answered");
    assert_ne!(second.keys().last(), keys.first(), "another request has another key");
}

#[tokio::test]
async fn a_refusal_is_final() {
    let problem = json!({ "type": "t", "title": "Conflict", "status": 409, "code": "name-taken", "detail": "taken" });
    let first = Fake::start(vec![Act::Answer(409, problem.to_string())]).await;
    let second = Fake::start(vec![ok(json!({}))]).await;
    let (client, _) = client(vec![first.address.clone(), second.address.clone()], 10_000);
    let error = client.post("/apps", &json!({})).await.expect_err("refused");
    assert_eq!((error.status(), error.to_string().as_str()), (Some(409), "taken"));
    assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_frozen_server_ends_in_the_deadline_and_a_change_may_have_happened() {
    let frozen = Fake::start(vec![Act::Freeze]).await;
    let (client, _) = client(vec![frozen.address.clone()], 300);
    assert!(matches!(client.get_raw("/x").await, Err(ClientError::Unreachable { .. })));
    assert!(matches!(client.delete("/x").await, Err(ClientError::Unknown { .. })));
}

#[tokio::test]
async fn without_a_quorum_the_problem_of_the_servers_is_told() {
    let server = Fake::start(vec![busy()]).await;
    let (client, _) = client(vec![server.address.clone(), nobody().await], 500);
    match client.post("/x", &json!({})).await {
        Err(ClientError::Problem(problem)) => assert_eq!(problem.code, "no-quorum"),
        other => panic!("{other:?}"),
    }
    assert!(server.requests().len() > 1, "it is tried again");
}

#[tokio::test]
async fn who_asks_too_often_is_told_and_the_request_goes_through_later() {
    let server = Fake::start(vec![refusal(429, "rate-limited"), ok(json!({}))]).await;
    let (client, notes) = client(vec![server.address.clone()], 10_000);
    client.post("/x", &json!({})).await.expect("answered");
    let keys = server.keys();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    assert!(notes.lock().expect("no panic")[0].contains("rate-limited"), "{notes:?}");
}

#[tokio::test]
async fn refused_connections_everywhere_are_told_before_the_deadline() {
    let (client, _) = client(vec![nobody().await, nobody().await], 60_000);
    let Err(ClientError::Unreachable { tried, waited }) = client.get_raw("/x").await else { panic!("nobody is there") };
    assert_eq!(tried.len(), 2);
    assert!(waited < Duration::from_secs(30), "{waited:?}");
}

#[tokio::test]
async fn what_is_no_api_is_told_as_such() {
    let server = Fake::start(vec![Act::Answer(200, "<html>".into()), Act::Answer(404, "<html>".into())]).await;
    let (client, _) = client(vec![server.address.clone()], 10_000);
    assert!(matches!(client.get::<Value>("/x").await, Err(ClientError::Malformed(_))));
    match client.get::<Value>("/x").await {
        Err(ClientError::Problem(problem)) => assert_eq!((problem.status, problem.code.as_str()), (404, "http-404")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_watch_gives_events_and_then_its_end() {
    let event = |revision: u64| json!({ "revision": revision, "at": "", "event": "NodeOnline", "kind": "Node", "name": "w1", "message": "" });
    let body = format!(": hi\n\nid: 5\ndata: {}\n\nid: 6\ndata: {}\n\n", event(5), event(6));
    let server = Fake::start(vec![Act::Answer(200, body)]).await;
    let (client, _) = client(vec![server.address.clone()], 10_000);
    let mut watch = client.watch("kind=Node", Some(4)).await.expect("opened");
    assert_eq!(watch.next().await.expect("whole").map(|e| e.revision), Some(5));
    assert_eq!(watch.next().await.expect("whole").map(|e| e.revision), Some(6));
    assert!(watch.next().await.expect("a proper end").is_none());
    let request = &server.requests()[0];
    assert!(request.starts_with("GET /api/v1/watch?kind=Node ") && request.contains("last-event-id: 4"), "{request}");
}

#[test]
fn access_that_can_never_work_is_refused_before_anything_is_sent() {
    let refused = |server: &str, pin: &str, token: &str| {
        let access = Access { servers: vec![server.into()], token: token.into(), ca_fingerprint: pin.into() };
        Client::new(&Env::real(), &access).expect_err("refused").to_string()
    };
    assert!(refused("https://s1:1", "", "").contains("fingerprint"));
    assert!(refused("https://s1:1", "abc", "").contains("64 hex digits"));
    assert!(refused("http://10.0.0.1:1", "", "").contains("unencrypted"));
    assert!(refused("http://127.0.0.1:1", "", "two words").contains("token"));
    let none = Client::new(&Env::real(), &Access::default()).expect_err("no server");
    assert!(none.to_string().contains("no server"));
}
