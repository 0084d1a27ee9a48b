//! The replacement of the sealing key as scripts and operators see it.

mod common;

use common::{Script, home, problem, run, serve, text};
use serde_json::{Value, json};

fn key(id: &str, phase: &str, held_back: &Value) -> Value {
    json!({
        "keyId": format!("{id}00000000000000"), "phase": phase, "nextKeyId": "b0000000000000000",
        "startedAt": "2026-01-01T00:00:00Z", "heldBack": held_back,
    })
}

#[test]
fn it_waits_until_every_server_has_the_next_key_and_says_what_else_to_replace() {
    let home = home();
    let script = Script::new(&[
        (200, key("a", "stable", &json!([]))),
        (202, key("a", "distribute", &json!(["s2", "s3"]))),
        (200, key("a", "distribute", &json!(["s3"]))),
        (200, key("b", "stable", &json!([]))),
    ]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["cluster", "rotate-sealing-key", "--yes"]);
    let said = text(&output.stderr);
    let told = "the sealing key is replaced: b00000000000\n";
    assert_eq!((text(&output.stdout), output.status.code()), (told.into(), Some(0)), "{said}");
    for line in
        ["plan: replace sealing key a00000000000;", "distribute: 2 to go (s2, s3)\n", "caractrl cluster rotate-ca\n"]
    {
        assert!(said.contains(line), "{said:?} lacks {line:?}");
    }
    let requests = requests();
    assert!(requests[1].starts_with("POST /api/v1/cluster/sealing-key/rotate "), "{}", requests[1]);
    assert!(requests[1].ends_with("{\"anew\":false}"), "{}", requests[1]);
}

#[test]
fn who_holds_it_back_is_told_and_nothing_is_begun_unasked() {
    let home = home();
    let (address, _) = serve(Script::new(&[(200, key("a", "distribute", &json!(["s3"])))]));
    let output = run(home.path(), &address, &["cluster", "rotate-sealing-key", "--status"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("servers that do not have it yet: s3\n"), "{shown}");
    assert!(text(&output.stderr).contains("--anew"));

    let (address, _) = serve(Script::new(&[(200, key("a", "distribute", &json!(["s3"])))]));
    let output = run(home.path(), &address, &["cluster", "rotate-sealing-key", "--status", "-o", "json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&shown["phase"], &shown["heldBack"]), (&json!("distribute"), &json!(["s3"])));

    let (address, _) = serve(Script::new(&[(200, key("a", "stable", &json!([])))]));
    let output = run(home.path(), &address, &["cluster", "rotate-sealing-key"]);
    assert_eq!(output.status.code(), Some(2), "nobody can be asked");

    let refused = problem(409, "sealing-rotation-running", "the sealing key is being replaced already");
    let (address, _) = serve(Script::new(&[(200, key("a", "distribute", &json!(["s3"]))), refused]));
    let output = run(home.path(), &address, &["cluster", "rotate-sealing-key", "--yes", "--detach"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));

    let (address, requests) = serve(Script::new(&[
        (200, key("a", "distribute", &json!(["s3"]))),
        (202, key("a", "distribute", &json!(["s2", "s3"]))),
    ]));
    let output = run(home.path(), &address, &["cluster", "rotate-sealing-key", "--anew", "--yes", "--detach"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(requests()[1].ends_with("{\"anew\":true}"));
}
