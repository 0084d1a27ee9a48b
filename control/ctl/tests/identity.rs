//! `nodes reenroll` and `nodes revoke-cert` as processes.

mod common;

use common::{Script, home, problem, run, serve, text};
use serde_json::json;

#[test]
fn reenroll_prints_the_one_command_for_the_machine() {
    let token = json!({
        "id": "jt-1", "token": "cara-join.abc", "node_id": "nd_1", "expires_at": "2026-01-01T00:15:00Z",
        "ca_fingerprint": "aa", "agent_command": "cara-agent reenroll --data-dir /var/lib/cara-agent --token cara-join.abc",
    });
    let (address, requests) = serve(Script::new(&[(201, token.clone()), (201, token)]));
    let home = home();
    let done = run(home.path(), &address, &["nodes", "reenroll", "w1"]);
    assert_eq!(done.status.code(), Some(0));
    let command = "cara-agent reenroll --data-dir /var/lib/cara-agent --token cara-join.abc\n";
    assert_eq!(text(&done.stdout), command, "nothing but the command, so that it can be piped");
    assert!(text(&done.stderr).contains("2026-01-01T00:15:00Z"), "{}", text(&done.stderr));
    let done = run(home.path(), &address, &["nodes", "reenroll", "w1", "-o", "json"]);
    assert!(text(&done.stdout).contains("\"node_id\": \"nd_1\""), "{}", text(&done.stdout));
    assert!(requests().iter().all(|request| request.starts_with("POST /api/v1/nodes/w1/reenroll-token ")));
}

#[test]
fn a_node_is_shut_out_only_when_that_is_agreed_to() {
    let home = home();
    let asked = run(home.path(), "http://127.0.0.1:1", &["nodes", "revoke-cert", "w1"]);
    assert_eq!(asked.status.code(), Some(2), "nobody can be asked, nothing is sent");
    assert!(text(&asked.stderr).contains("--yes"), "{}", text(&asked.stderr));
    let node = json!({ "metadata": { "name": "w1" }, "status": { "certificate": { "state": "revoked" } } });
    let (address, requests) = serve(Script::new(&[(200, node)]));
    let done = run(home.path(), &address, &["nodes", "revoke-cert", "w1", "--yes"]);
    assert_eq!((done.status.code(), text(&done.stdout).contains("node/w1 is shut out")), (Some(0), true));
    assert!(requests()[0].starts_with("POST /api/v1/nodes/w1/revoke-cert "));
}

#[test]
fn an_unknown_node_is_3() {
    let list = json!({ "apiVersion": "caravanserai/v1", "kind": "NodeList", "metadata": {}, "items": [] });
    for verb in [&["nodes", "reenroll", "w9"][..], &["nodes", "revoke-cert", "w9", "--yes"]] {
        let missing = problem(404, "unknown-node", "there is no node w9");
        let (address, _) = serve(Script::new(&[missing, (200, list.clone())]).repeat_last());
        assert_eq!(run(home().path(), &address, verb).status.code(), Some(3), "{verb:?}");
    }
}
