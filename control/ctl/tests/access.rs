//! Tokens and the audit as scripts and operators see them.

mod common;

use common::{Script, home, problem, run, serve, text};
use serde_json::{Value, json};

fn token(id: &str, name: &str, state: &str) -> Value {
    json!({
        "id": id, "name": name, "ability": "write", "scopes": ["workload:shop-"], "state": state,
        "createdAt": "2026-01-01T00:00:00Z", "createdBy": "token:tk-0", "expiresAt": "2999-01-01T00:00:00Z",
    })
}

fn list(items: &[Value]) -> Value {
    json!({ "apiVersion": "caravanserai/v1", "kind": "ApiTokenList", "revision": 9, "items": items })
}

#[test]
fn a_token_is_printed_alone_and_what_to_know_beside_it() {
    let home = home();
    let mut made = token("tk-1", "ci", "active");
    made["token"] = json!("cara_secret");
    let (address, requests) = serve(Script::new(&[(201, made.clone()), (201, made)]));
    let arguments = ["tokens", "create", "ci", "--ability", "write", "--scope", "workload:shop-", "--ttl", "90d"];
    let output = run(home.path(), &address, &arguments);
    assert_eq!((text(&output.stdout), output.status.code()), ("cara_secret\n".to_owned(), Some(0)));
    let said = text(&output.stderr);
    assert!(said.contains("tk-1") && said.contains("write on workload:shop-") && said.contains("2999"), "{said}");
    let output = run(home.path(), &address, &[&arguments[..], &["-o", "json"]].concat());
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value["token"], &value["id"]), (&json!("cara_secret"), &json!("tk-1")));
    let sent = requests().remove(0);
    assert!(sent.starts_with("POST /api/v1/tokens HTTP/1.1") && sent.contains("idempotency-key"), "{sent}");
    let wanted = r#"{"name":"ci","ability":"write","scopes":["workload:shop-"],"ttlSeconds":7776000}"#;
    assert!(sent.ends_with(wanted), "{sent}");
}

#[test]
fn a_token_is_revoked_by_its_name_and_a_refusal_says_what_to_do() {
    let home = home();
    let tokens = list(&[token("tk-1", "ci", "revoked"), token("tk-2", "ci", "active")]);
    let last = problem(409, "last-root-token", "ci is the last root token that does not expire");
    let script = Script::new(&[(200, tokens.clone()), (204, Value::Null), (200, tokens.clone()), last, (200, tokens)]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["tokens", "revoke", "ci"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("api-token/tk-2 (ci) revoked\n".to_owned(), Some(0)));
    let output = run(home.path(), &address, &["tokens", "revoke", "tk-2"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let output = run(home.path(), &address, &["tokens", "revoke", "cj"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("did you mean \"ci\"?"), "{}", text(&output.stderr));
    assert!(requests()[1].starts_with("DELETE /api/v1/tokens/tk-2 "));
}

#[test]
fn api_tokens_and_join_tokens_are_two_lists() {
    let home = home();
    let join = json!({ "apiVersion": "caravanserai/v1", "kind": "JoinTokenList", "revision": 9, "items": [] });
    let (address, requests) = serve(Script::new(&[(200, list(&[token("tk-1", "ci", "active")])), (200, join)]));
    let output = run(home.path(), &address, &["get", "tokens"]);
    assert!(text(&output.stdout).contains("tk-1\tci\twrite\tworkload:shop-\tactive\t-\t"), "{}", text(&output.stdout));
    assert_eq!(run(home.path(), &address, &["get", "join-tokens"]).status.code(), Some(0));
    let requests = requests();
    assert!(
        requests[0].starts_with("GET /api/v1/tokens ") && requests[1].starts_with("GET /api/v1/nodes/join-tokens ")
    );
}

fn record(revision: u64) -> Value {
    json!({
        "revision": revision, "at": "2026-01-01T00:00:00Z", "actor": "token:tk-1", "actorName": "ci",
        "caller": "10.0.0.9:4711", "requestId": "r1", "command": "Cordon", "subject": "node/a", "subjectId": "nd_1",
        "before": revision - 1, "after": revision,
    })
}

fn page(items: &[Value], next: Option<u64>, notice: &str) -> Value {
    json!({
        "apiVersion": "caravanserai/v1", "kind": "AuditRecordList", "revision": 99, "items": items, "next": next,
        "keptSince": "2026-01-01T00:00:00Z", "notice": notice,
    })
}

#[test]
fn the_audit_is_a_table_and_says_what_is_older() {
    let home = home();
    let (address, requests) = serve(Script::new(&[(200, page(&[record(9)], Some(9), "the audit keeps the newest"))]));
    let arguments =
        ["audit", "--actor", "ci", "--subject", "node/a", "--since", "2026-01-01T00:00:00Z", "--limit", "1"];
    let output = run(home.path(), &address, &arguments);
    let line = "9\t2026-01-01T00:00:00Z\ttoken:tk-1 (ci)\t10.0.0.9:4711\tCordon\tnode/a\t8 to 9\n";
    assert!(text(&output.stdout).ends_with(line), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    assert!(said.contains("note: the audit keeps") && said.contains("--before 9"), "{said}");
    let asked = "GET /api/v1/audit-log?limit=1&actor=ci&subject=node%2Fa&since=2026-01-01T00%3A00%3A00Z ";
    assert!(requests()[0].starts_with(asked));
}

#[test]
fn an_export_is_every_page_one_object_a_line() {
    let home = home();
    let pages = [(200, page(&[record(3), record(5)], Some(5), "")), (200, page(&[record(8)], None, ""))];
    let (address, requests) = serve(Script::new(&pages));
    let output = run(home.path(), &address, &["audit", "export", "--after", "2"]);
    let lines = text(&output.stdout);
    let revisions: Vec<u64> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["revision"].as_u64().expect("a number"))
        .collect();
    assert_eq!((revisions, output.status.code()), (vec![3, 5, 8], Some(0)));
    let requests = requests();
    assert!(requests[0].starts_with("GET /api/v1/audit-log?limit=1000&after=2 "));
    assert!(requests[1].starts_with("GET /api/v1/audit-log?limit=1000&after=5 "));
}
