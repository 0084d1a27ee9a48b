//! Verbs about nodes: what is printed to add one, how one is, where it stands.

mod common;

use common::{Script, home, problem, run, serve, text};
use serde_json::json;

#[test]
fn adding_a_node_prints_commands_that_are_ready_to_paste() {
    let home = home();
    let minted = json!({
        "id": "jt-1", "token": "cara-join.x", "purpose": "node", "expires_at": "2023-11-14T22:28:20Z", "ttl_seconds": 60,
        "ca_fingerprint": "ab", "notes": ["the token is valid for 60 s: it must be between 1 minute and 24 hours"],
        "join_commands": { "binary": "cara-agent --name n1 --token cara-join.x", "docker": "docker run cara-join.x" },
    });
    let (address, requests) = serve(Script::new(&[(201, minted.clone()), (201, minted)]));
    let words = ["nodes", "add", "--name", "n1", "--advertise", "10.0.0.4", "--ttl", "5s"];
    let output = run(home.path(), &address, &words);
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("\n  cara-agent --name n1 --token cara-join.x\n"), "{out}");
    assert!(out.contains("\n  docker run cara-join.x\n"), "{out}");
    for words in ["note: the token is valid for 60 s", "2023-11-14T22:28:20Z", "next: caractrl get nodes n1 --watch"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("--advertise"), "it was said already: {said}");
    let output = run(home.path(), &address, &["nodes", "add", "-o", "json"]);
    assert!(text(&output.stdout).contains("\"join_commands\""), "{output:?}");
    let requests = requests();
    assert!(
        requests[0].ends_with("{\"ttl_seconds\":5,\"node_name\":\"n1\",\"node_address\":\"10.0.0.4\"}"),
        "{requests:?}"
    );
}

#[test]
fn health_is_a_table_of_conditions() {
    let home = home();
    let health = json!({ "node": "n1", "connection": "pending", "neverConnected": true, "conditions": [
        { "type": "Heartbeat", "status": "Unknown", "reason": "NeverConnected", "message": "next: look at the log",
          "lastTransitionTime": "2023-11-14T22:13:20Z" },
    ] });
    let script = Script::new(&[
        (200, health),
        problem(404, "unknown-node", "there is no node n2"),
        (200, json!({ "items": [{ "metadata": { "name": "n1" } }] })),
    ]);
    let (address, _) = serve(script);
    let output = run(home.path(), &address, &["nodes", "health", "n1"]);
    assert_eq!(
        text(&output.stdout),
        "TYPE\tSTATUS\tREASON\tSINCE\tLAST SIGN\tMESSAGE\n\
         Heartbeat\tUnknown\tNeverConnected\t2023-11-14T22:13:20Z\t-\tnext: look at the log\n",
        "{output:?}"
    );
    assert!(text(&output.stderr).contains("pending (never connected)"), "{output:?}");
    let output = run(home.path(), &address, &["nodes", "health", "n2"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(text(&output.stderr).contains("did you mean \"n1\"?"), "{output:?}");
}

#[test]
fn a_region_is_shown_set_and_cleared_and_a_list_is_cut() {
    let home = home();
    let node = |region: &str| json!({ "kind": "Node", "metadata": { "name": "n1" }, "status": { "region": region } });
    let list = json!({ "apiVersion": "v1", "kind": "NodeList", "revision": 1, "items": [node("eu-west")] });
    let script = Script::new(&[(200, node("eu-west")), (200, node("eu-north")), (200, node("")), (200, list)]);
    let (address, requests) = serve(script);
    assert_eq!(text(&run(home.path(), &address, &["nodes", "region", "n1"]).stdout), "eu-west\n");
    assert_eq!(text(&run(home.path(), &address, &["nodes", "region", "n1", "eu-north"]).stdout), "eu-north\n");
    assert_eq!(run(home.path(), &address, &["nodes", "region", "n1", "--clear"]).status.code(), Some(0));
    let words = ["nodes", "list", "--q", "rack 7", "--limit", "20", "--offset", "40", "-o", "name"];
    assert_eq!(text(&run(home.path(), &address, &words).stdout), "node/n1\n");
    let requests = requests();
    assert!(requests[1].starts_with("PUT /api/v1/nodes/n1/region "), "{requests:?}");
    assert!(
        requests[1].ends_with("{\"region\":\"eu-north\"}") && requests[2].ends_with("{\"region\":\"\"}"),
        "{requests:?}"
    );
    assert!(requests[3].starts_with("GET /api/v1/nodes?q=rack%207&limit=20&offset=40 "), "{requests:?}");
}
