//! The replacement of the CA as scripts and operators see it.

mod common;

use common::{Script, home, problem, run, serve, text};
use serde_json::{Value, json};

fn ca(number: u64, phase: &str, held_back: &Value) -> Value {
    json!({
        "number": number, "fingerprint": format!("f{number}"), "phase": phase, "nextFingerprint": "f2",
        "startedAt": "2026-01-01T00:00:00Z", "formerFingerprints": [], "heldBack": held_back,
    })
}

#[test]
fn it_waits_until_everybody_has_followed_and_says_how_to_pin_the_new_one() {
    let home = home();
    let waits = json!([{ "kind": "server", "name": "s2", "lack": "trust" }]);
    let script = Script::new(&[
        (200, ca(1, "stable", &json!([]))),
        (202, ca(1, "distribute", &waits)),
        (200, ca(1, "renew", &json!([{ "kind": "node", "name": "w1", "lack": "use" }]))),
        (200, ca(2, "stable", &json!([]))),
    ]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["cluster", "rotate-ca", "--yes"]);
    let said = text(&output.stderr);
    assert_eq!((text(&output.stdout), output.status.code()), ("the CA is replaced: CA 2\n".into(), Some(0)), "{said}");
    for line in [
        "plan: replace CA 1 by CA 2; every certificate is renewed\n",
        "ca  distribute: 1 to go (server/s2)\n",
        "ca  renew: 1 to go (node/w1)\n",
        "caractrl ctx set NAME --ca-fingerprint f2\n",
    ] {
        assert!(said.contains(line), "{said:?} lacks {line:?}");
    }
    let requests = requests();
    assert!(requests[1].starts_with("POST /api/v1/cluster/ca/rotate "), "{}", requests[1]);
    assert!(requests[1].ends_with("{\"force\":false}"), "{}", requests[1]);
}

#[test]
fn who_holds_it_back_is_told_and_nothing_is_begun_unasked() {
    let home = home();
    let waits = json!([{ "kind": "node", "name": "w1", "lack": "certificate" }]);
    let (address, _) = serve(Script::new(&[(200, ca(1, "renew", &waits))]));
    let output = run(home.path(), &address, &["cluster", "rotate-ca", "--status"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("node\tw1\ta certificate of the next CA\n"), "{shown}");
    assert!(text(&output.stderr).contains("--force"));

    let (address, _) = serve(Script::new(&[(200, ca(1, "stable", &json!([])))]));
    let output = run(home.path(), &address, &["cluster", "rotate-ca"]);
    assert_eq!(output.status.code(), Some(2), "nobody can be asked");

    let refused = problem(409, "ca-rotation-running", "the CA is being replaced already (renew)");
    let (address, _) = serve(Script::new(&[(200, ca(1, "renew", &waits)), refused]));
    let output = run(home.path(), &address, &["cluster", "rotate-ca", "--yes", "--detach"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
}
