//! Verbs about one workload or one node: placement, lost nodes, volumes, suspension, the app's node.

mod common;

use common::{Script, home, problem, run, serve, text};
use serde_json::{Value, json};

/// First line and body of each request.
fn sent(requests: &[String]) -> Vec<(String, String)> {
    let body = |r: &String| r.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    requests.iter().map(|r| (r.lines().next().expect("a line").replace(" HTTP/1.1", ""), body(r))).collect()
}

#[test]
fn a_lost_node_is_given_up_only_with_confirm() {
    let home = home();
    let given_up = json!({ "node": "w3", "given_up": [{ "kind": "database", "name": "ledger", "volumes": ["data"] }], "moves": [] });
    let script = Script::new(&[
        problem(409, "confirmation-needed", "database/ledger (volume data) would be given up"),
        (200, given_up),
        problem(409, "node-online", "node w3 is online, so nothing on it is lost"),
    ]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["nodes", "lost", "w3"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(1)));
    let said = text(&output.stderr);
    assert!(said.contains("database/ledger (volume data) would be given up"), "{said}");
    assert!(said.contains("caractrl nodes lost w3 --confirm"), "{said}");
    let output = run(home.path(), &address, &["nodes", "lost", "w3", "--confirm", "--reason", "disk died"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("node/w3 is given up\n".to_owned(), Some(0)));
    assert!(text(&output.stderr).contains("given up: database/ledger (data)\n"), "{output:?}");
    let output = run(home.path(), &address, &["nodes", "lost", "w3"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(!text(&output.stderr).contains("--confirm"), "a confirmation would not help: {output:?}");
    let sent = sent(&requests());
    assert_eq!(sent[0], ("POST /api/v1/nodes/w3/lost".to_owned(), "{\"confirm\":false}".to_owned()));
    assert_eq!(sent[1].1, "{\"confirm\":true,\"reason\":\"disk died\"}");
}

#[test]
fn placement_shows_names_and_changes_the_selector_only() {
    let home = home();
    let place = |selector: Value| {
        json!({ "node_id": "n1", "node_name": "w1", "auto_placed": true, "node_selector": selector,
            "eligible_node_ids": ["n1", "n9"], "rejected": [{ "node": "w2", "reason": "cordoned" }] })
    };
    let nodes = json!({ "items": [{ "metadata": { "name": "w1", "uid": "n1" } }] });
    let script = Script::new(&[
        (200, place(json!({ "zone": "a", "disk": "hdd" }))),
        (200, place(json!({ "disk": "ssd" }))),
        (200, nodes),
    ]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["nodes", "placement", "app", "web", "disk=ssd", "zone-"]);
    assert_eq!(
        text(&output.stdout),
        "Workload:     app/web\nNode:         w1 (chosen by the scheduler)\nSelector:     disk=ssd\n\
         Eligible:     w1, n9\nNot eligible:\n  NODE  REASON\n  w2    cordoned\n",
        "{output:?}"
    );
    assert!(text(&output.stderr).contains("It stays where it is"), "{output:?}");
    let sent = sent(&requests());
    assert_eq!(sent[1], ("PUT /api/v1/apps/web/placement".into(), "{\"node_selector\":{\"disk\":\"ssd\"}}".into()));
    let output = run(home.path(), "http://127.0.0.1:1", &["nodes", "placement", "node", "w1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn kept_volumes_are_listed() {
    let home = home();
    let list = json!({ "items": [{ "workload": "database/ledger", "volume": "data", "data_generation": 4, "bytes": 2048,
        "state": "quarantined", "engine_name": "cara-ledger-data-4" }] });
    let (address, requests) = serve(Script::new(&[(200, list)]));
    let output = run(home.path(), &address, &["nodes", "volumes", "w1"]);
    assert_eq!(
        text(&output.stdout),
        "WORKLOAD\tVOLUME\tGENERATION\tSIZE\tSTATE\tENGINE NAME\n\
         database/ledger\tdata\t4\t2.0 KiB\tquarantined\tcara-ledger-data-4\n"
    );
    assert_eq!(sent(&requests())[0].0, "GET /api/v1/nodes/w1/volumes");
}

#[test]
fn a_kept_volume_is_removed_when_that_is_confirmed() {
    let home = home();
    let item = |state: &str| {
        json!({ "workload": "ledger", "volume": "data", "data_generation": 4, "bytes": 2048, "state": state,
            "engine_name": "cara-ledger-data-4" })
    };
    let list = json!({ "items": [item("quarantined")] });
    let needed = problem(409, "volume-needed", "volume cara-ledger-data-4 of node w1 can't be removed: it is needed");
    let script =
        [(200, list.clone()), (200, list.clone()), (200, list.clone()), needed, (200, list), (202, item("removing"))];
    let (address, requests) = serve(Script::new(&script));
    let remove = |words: &[&str]| run(home.path(), &address, &[&["nodes", "volumes", "w1"], words].concat());
    let output = remove(&["--remove", "cara-ledger-data-5"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(text(&output.stderr).contains("did you mean \"cara-ledger-data-4\"?"), "{output:?}");
    let output = remove(&["--remove", "cara-ledger-data-4"]);
    assert_eq!(output.status.code(), Some(2), "nobody can be asked: {output:?}");
    assert!(text(&output.stderr).contains("volume data of ledger, generation 4 of its data, 2.0 KiB"), "{output:?}");
    let output = remove(&["--remove", "cara-ledger-data-4", "--yes"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("it is needed"), "{output:?}");
    let output = remove(&["--remove", "cara-ledger-data-4", "--yes"]);
    assert_eq!(text(&output.stdout), "volume/cara-ledger-data-4 is being removed\n", "{output:?}");
    assert_eq!(sent(&requests()).pop().expect("sent").0, "DELETE /api/v1/nodes/w1/volumes/cara-ledger-data-4");
    assert_eq!(run(home.path(), &address, &["nodes", "volumes", "w1", "--yes"]).status.code(), Some(2));
}

#[test]
fn workloads_are_suspended_resumed_and_restarted_by_name() {
    let home = home();
    let object = json!({ "kind": "App", "metadata": { "name": "web" } });
    let near = json!({ "items": [{ "metadata": { "name": "shop" } }] });
    let script = Script::new(&[
        (200, object.clone()),
        (200, object.clone()),
        (200, object.clone()),
        problem(404, "unknown-workload", "there is no workload shpo"),
        (200, near),
    ]);
    let (address, requests) = serve(script);
    assert_eq!(text(&run(home.path(), &address, &["apps", "suspend", "web"]).stdout), "app/web suspended\n");
    assert_eq!(
        text(&run(home.path(), &address, &["db", "resume", "ledger", "-o", "name"]).stdout),
        "database/ledger\n"
    );
    let output = run(home.path(), &address, &["project", "restart", "shop", "-o", "json"]);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON"), object);
    let output = run(home.path(), &address, &["projects", "restart", "shpo"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("did you mean \"shop\"?"), "{output:?}");
    let lines: Vec<String> = sent(&requests()).into_iter().map(|(line, _)| line).collect();
    assert_eq!(
        lines[..3],
        ["POST /api/v1/apps/web/suspend", "POST /api/v1/databases/ledger/resume", "POST /api/v1/projects/shop/restart"]
    );
}

#[test]
fn an_app_is_put_on_a_node_with_or_without_its_volumes() {
    let home = home();
    let view = |status: &str, step: &str| {
        json!({ "id": "m7", "service_name": "blog", "from": "n1", "to": "n2", "status": status, "error": null,
            "steps": [{ "name": "stop_app", "status": step, "error": null }] })
    };
    let at_once = json!({ "service_name": "web", "from": "n1", "to": "n2", "status": "succeeded",
        "steps": [{ "name": "update_placement", "status": "succeeded" }] });
    let script = Script::new(&[
        (200, view("running", "pending")),
        (200, view("succeeded", "succeeded")),
        (200, at_once),
        (202, view("running", "running")),
        (200, view("running", "running")),
        (200, view("succeeded", "succeeded")),
    ]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["apps", "set-node", "web", "w2"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("app/web is on w2\n".to_owned(), Some(0)));
    assert!(text(&output.stderr).contains("stop_app          succeeded\n"), "{output:?}");
    let output = run(home.path(), &address, &["apps", "clear-node", "web"]);
    assert_eq!(text(&output.stdout), "app/web is placed by the scheduler\n");
    assert!(text(&output.stderr).contains("update_placement  succeeded\n"), "{output:?}");
    let output = run(home.path(), &address, &["apps", "set-node", "blog", "w2", "--with-volumes", "--yes"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("app/blog is on w2\n".to_owned(), Some(0)), "{output:?}");
    assert_eq!(text(&output.stderr).matches("stop_app          succeeded\n").count(), 1, "{output:?}");
    let sent = sent(&requests());
    assert_eq!(sent[0], ("PUT /api/v1/apps/web/node".into(), "{\"node_id\":\"w2\"}".into()));
    assert_eq!(sent[1].0, "GET /api/v1/apps/web/moves/m7");
    assert_eq!(sent[2], ("PUT /api/v1/apps/web/node".into(), "{\"node_id\":\"\"}".into()));
    assert_eq!(sent[3], ("POST /api/v1/apps/blog/move-with-volumes".into(), "{\"node_id\":\"w2\"}".into()));
    assert_eq!(sent[4].0, "GET /api/v1/apps/blog/moves/m7");
    // Nobody listens there: a request would be another error.
    let output = run(home.path(), "http://127.0.0.1:1", &["apps", "set-node", "blog", "w2", "--with-volumes"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
