//! Moves and drains as scripts and operators see them: what is sent, what is printed, how it ends.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use common::{Script, command, home, problem, run, serve, text};
use serde_json::{Value, json};

/// A database's move as the API tells it.
fn a_move(phase: &str, status: &str) -> Value {
    json!({
        "id": "m1", "kind": "database", "name": "ledger", "from": "n1", "from_node": "w1", "to": "n2", "to_node": "w2",
        "auto_target": true, "drain_id": null, "stateful": true, "phase": phase, "status": status, "attempt": 1,
        "round": 1, "steps": [], "started_at": "2026-01-01T00:00:00Z", "finished_at": null, "downtime_ms": null,
        "error": null, "cancellable": true, "transfer": null, "waiting_for": null,
    })
}

fn step(phase: &str, outcome: &str, detail: &str) -> Value {
    json!({ "phase": phase, "outcome": outcome, "detail": detail, "at": "2026-01-01T00:00:02Z", "attempt": 1 })
}

fn plan() -> Value {
    json!({
        "kind": "database", "name": "ledger", "from_node": "w1", "to_node": "w2", "auto_target": true, "stateful": true,
        "phases": ["preflight", "stop_source", "copy_volumes"], "bytes": 1_395_864_371u64, "predicted_downtime_ms": 2_000,
        "rejected": [{ "node": "w3", "reason": "cordoned" }], "warnings": [],
    })
}

fn moved() -> Value {
    let mut mv = a_move("done", "succeeded");
    mv["steps"] = json!([step("preflight", "ok", "target is ready"), step("stop_source", "ok", "source is stopped")]);
    mv["finished_at"] = json!("2026-01-01T00:00:09.8Z");
    mv["downtime_ms"] = json!(1_749);
    mv
}

#[test]
fn a_move_shows_its_plan_its_phases_and_the_measured_downtime() {
    let home = home();
    let mut copying = a_move("preflight", "running");
    copying["transfer"] =
        json!({ "bytes_total": 1000, "bytes_done": 250, "bytes_sent": 250, "rate_bytes_per_second": 10, "round": 1 });
    let mut stopping = a_move("stop_source", "running");
    stopping["steps"] = json!([step("preflight", "ok", "target is ready")]);
    let script = Script::new(&[
        (200, plan()),
        (202, a_move("preflight", "running")),
        (200, copying),
        (200, stopping),
        (200, moved()),
    ]);
    let (address, requests) = serve(script);
    let arguments =
        ["nodes", "move", "db", "ledger", "--yes", "--attempts", "2", "--interval", "1s", "--verify-timeout", "5m"];
    let output = run(home.path(), &address, &arguments);
    assert_eq!((text(&output.stdout), output.status.code()), ("database/ledger moved to w2\n".to_owned(), Some(0)));
    let said = text(&output.stderr);
    for line in [
        "Plan:         move database/ledger: w1 -> w2\n",
        "To copy:      1.3 GiB\n",
        "Downtime:     about 2.0 s (predicted)\n",
        "  w3    cordoned\n",
        "database/ledger  preflight  copying, round 1: 20% of 1.0 KiB\n",
        "preflight     ok      +2.0 s    target is ready\n",
        "stop_source   ok      +2.0 s    source is stopped\n",
        "database/ledger moved from w1 to w2 in 9.8 s; measured downtime 1.7 s\n",
    ] {
        assert!(said.contains(line), "{said:?} lacks {line:?}");
    }
    assert_eq!(said.matches("target is ready").count(), 1, "{said}");
    let requests = requests();
    assert!(
        requests[0].starts_with("POST /api/v1/databases/ledger/move ")
            && requests[0].ends_with("{\"verify_timeout_s\":300,\"attempts\":2,\"interval_s\":1,\"dry_run\":true}"),
        "{}",
        requests[0]
    );
    assert!(
        requests[1].ends_with("{\"verify_timeout_s\":300,\"attempts\":2,\"interval_s\":1,\"dry_run\":false}"),
        "{}",
        requests[1]
    );
    assert!(requests[2].starts_with("GET /api/v1/node-moves/m1 "), "{}", requests[2]);
}

#[test]
fn a_move_that_is_rolled_back_is_7_with_the_cause_and_the_next_step() {
    let home = home();
    let mut over = a_move("rollback", "rolled_back");
    over["error"] = json!("target failed: no such image");
    let (address, requests) = serve(Script::new(&[(200, plan()), (202, a_move("preflight", "running")), (200, over)]));
    let output = run(home.path(), &address, &["nodes", "move", "database/ledger", "--to", "w2", "--yes"]);
    assert_eq!(output.status.code(), Some(7));
    let said = text(&output.stderr);
    assert!(said.contains("error[move-rolled-back]: database/ledger was not moved; w1 has it, as before"), "{said}");
    assert!(said.contains("why: target failed: no such image") && said.contains("caractrl nodes moves m1"), "{said}");
    requests();
}

#[test]
fn without_a_terminal_and_without_yes_the_plan_is_all_that_happens() {
    let home = home();
    let (address, requests) = serve(Script::new(&[(200, plan())]));
    let output = run(home.path(), &address, &["nodes", "move", "database", "ledger"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("Plan:") && said.contains("next: add --yes"), "{said}");
    assert_eq!(requests().len(), 1);
}

#[test]
fn a_dry_run_is_data_and_detach_gives_the_id() {
    let home = home();
    let (address, requests) =
        serve(Script::new(&[(200, plan()), (200, plan()), (200, plan()), (202, a_move("preflight", "running"))]));
    let output = run(home.path(), &address, &["nodes", "move", "database", "ledger", "--dry-run"]);
    assert!(text(&output.stdout).starts_with("Plan:         move database/ledger: w1 -> w2\n"), "{output:?}");
    let output = run(home.path(), &address, &["nodes", "move", "database", "ledger", "--dry-run", "-o", "json"]);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON"), plan());
    let output =
        run(home.path(), &address, &["nodes", "move", "database", "ledger", "--yes", "--detach", "-o", "name"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("move/m1\n".to_owned(), Some(0)));
    assert!(text(&output.stderr).contains("caractrl nodes cancel-move m1"), "{output:?}");
    requests();
}

#[test]
fn a_target_that_does_not_exist_is_looked_for_among_the_nodes() {
    let home = home();
    let nodes = json!({ "items": [{ "metadata": { "name": "w2" } }] });
    let (address, requests) = serve(Script::new(&[problem(404, "unknown-node", "there is no node w22"), (200, nodes)]));
    let output = run(home.path(), &address, &["nodes", "move", "app", "web", "--to", "w22", "--yes"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("did you mean \"w2\"?"), "{output:?}");
    assert!(requests()[1].starts_with("GET /api/v1/nodes "));
}

/// Waits for a line of the child's talk; the rest of it goes on to be read, so that the child never blocks.
fn wait_for(child: &mut Child, part: &str) -> String {
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut said = String::new();
    for line in lines.by_ref() {
        said.push_str(&line.expect("UTF-8"));
        said.push('\n');
        if said.contains(part) {
            interrupt(child);
            break;
        }
    }
    said.extend(lines.map(|line| line.expect("UTF-8") + "\n"));
    said
}

fn interrupt(child: &Child) {
    let status = std::process::Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(status.expect("a shell").success());
}

#[test]
fn ctrl_c_detaches_and_says_how_to_look_again() {
    let home = home();
    let mut waiting = a_move("verify", "running");
    waiting["waiting_for"] = json!("it to become healthy");
    let script = Script::new(&[(200, plan()), (202, a_move("preflight", "running")), (200, waiting)]).repeat_last();
    let (address, _requests) = serve(script);
    let mut child = command(home.path(), &["nodes", "move", "database", "ledger", "--yes", "--server", &address])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = wait_for(&mut child, "it to become healthy");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(130), ""), "{said}");
    for part in ["no longer following; it goes on", "caractrl nodes moves m1", "caractrl nodes cancel-move m1"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_timeout_ends_the_following_only() {
    let home = home();
    let (address, _requests) = serve(Script::new(&[(200, a_move("verify", "running"))]).repeat_last());
    let output = run(home.path(), &address, &["nodes", "moves", "m1", "--follow", "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    assert!(text(&output.stderr).contains("it goes on"), "{output:?}");
}

#[test]
fn moves_are_listed_filtered_shown_and_taken_back() {
    let home = home();
    let list = json!({ "items": [moved()] });
    let script = Script::new(&[
        (200, list.clone()),
        (200, list),
        (200, moved()),
        (202, a_move("rollback", "running")),
        problem(409, "move-committed", "move m1 is at stop_old: the target has the workload already"),
    ]);
    let (address, requests) = serve(script);
    let filters = ["nodes", "moves", "--kind", "db", "--resource", "ledger", "--status", "succeeded", "--limit", "3"];
    let output = run(home.path(), &address, &filters);
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("ID\tWORKLOAD\tFROM\tTO\tSTATUS\tPHASE\tDOWNTIME\tAGE\nm1\tdatabase/ledger\tw1\tw2\tsucceeded\tdone\t1.7 s\t"), "{stdout}");
    let output = run(home.path(), &address, &["nodes", "moves", "-o", "name"]);
    assert_eq!(text(&output.stdout), "move/m1\n");
    let output = run(home.path(), &address, &["nodes", "moves", "m1"]);
    assert!(text(&output.stdout).contains("Downtime:     measured downtime 1.7 s\n"), "{output:?}");
    let output = run(home.path(), &address, &["nodes", "cancel-move", "m1"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("move/m1 is being taken back\n".to_owned(), Some(0)));
    let output = run(home.path(), &address, &["nodes", "cancel-move", "m1"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("the target has the workload already"), "{output:?}");
    let lines: Vec<String> = requests().iter().map(|r| r.lines().next().expect("a line").to_owned()).collect();
    assert_eq!(lines[0], "GET /api/v1/node-moves?kind=database&resource=ledger&status=succeeded&limit=3 HTTP/1.1");
    assert_eq!(lines[3], "POST /api/v1/node-moves/m1/cancel HTTP/1.1");
    assert_eq!(run(home.path(), "http://127.0.0.1:1", &["nodes", "moves", "--status", "faild"]).status.code(), Some(2));
}

#[test]
fn a_drain_tells_every_move_and_what_is_blocked() {
    let home = home();
    let plan = json!({
        "plan": [{ "kind": "database", "name": "ledger", "to": "n2", "to_node": "w2" }],
        "blocked": [{ "kind": "app", "name": "cache", "reason": "no node can take it",
            "reasons": [{ "node": "w2", "reason": "offline" }] }],
    });
    let drain = |status: &str, moves: &[&str], done: u64| {
        let mut drain = plan.clone();
        let more = json!({ "id": "d1", "node": "n1", "node_name": "w1", "target": null, "status": status, "moves": moves,
            "done": done, "total": 1, "error": (status == "failed").then_some("1 workload stays"),
            "started_at": "2026-01-01T00:00:00Z", "finished_at": null });
        drain.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        drain
    };
    let script = Script::new(&[
        (200, plan.clone()),
        (202, drain("running", &[], 0)),
        (200, drain("running", &["m1"], 0)),
        (200, a_move("preflight", "running")),
        (200, drain("failed", &["m1"], 1)),
        (200, moved()),
    ]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["nodes", "drain", "w1", "--target", "w2", "--yes"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(7)));
    let said = text(&output.stderr);
    for part in [
        "Plan:         drain w1: 1 to move, 1 blocked",
        "  app/cache  w2 offline\n",
        "1/1  database/ledger  w1 -> w2\n",
        "     stop_source   ok      +2.0 s    source is stopped\n",
        "     database/ledger moved from w1 to w2 in 9.8 s; measured downtime 1.7 s\n",
        "blocked  app/cache: w2 offline\n",
        "error[drain-failed]: w1 is not empty: 1 of 1 moved; it stays cordoned\n",
        "caractrl nodes uncordon w1",
    ] {
        assert!(said.contains(part), "{said:?} lacks {part:?}");
    }
    let requests = requests();
    assert!(requests[0].starts_with("POST /api/v1/nodes/w1/drain?target_node_id=w2&dry_run=true "), "{}", requests[0]);
    assert!(requests[1].starts_with("POST /api/v1/nodes/w1/drain?target_node_id=w2 "), "{}", requests[1]);
    assert!(requests[2].starts_with("GET /api/v1/node-drains/d1 "), "{}", requests[2]);
}

#[test]
fn an_empty_node_is_drained_and_its_history_is_listed() {
    let home = home();
    let plan = json!({ "plan": [], "blocked": [] });
    let over = json!({ "id": "d1", "node": "n1", "node_name": "w1", "status": "succeeded", "moves": [], "done": 0, "total": 0, "plan": [],
        "blocked": [], "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:01Z" });
    let items = json!({ "items": [over] });
    let script = Script::new(&[
        (200, plan),
        (202, over.clone()),
        (200, over.clone()),
        (200, items.clone()),
        (200, items),
        (202, over),
    ]);
    let (address, requests) = serve(script);
    let output = run(home.path(), &address, &["nodes", "drain", "w1", "--yes"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("node/w1 drained\n".to_owned(), Some(0)));
    assert!(text(&output.stderr).contains("w1 is empty: 0 of 0 moved in 1.0 s"), "{output:?}");
    let output = run(home.path(), &address, &["nodes", "drains", "w1"]);
    assert!(text(&output.stdout).contains("\nd1\tw1\t-\tsucceeded\t0/0\t0\t1.0 s\t"), "{output:?}");
    let output = run(home.path(), &address, &["nodes", "drains", "w1", "--follow"]);
    assert_eq!(output.status.code(), Some(3), "nothing runs that could be followed: {output:?}");
    let output = run(home.path(), &address, &["nodes", "cancel-drain", "d1"]);
    assert_eq!((text(&output.stdout), output.status.code()), ("drain/d1 is being stopped\n".to_owned(), Some(0)));
    requests();
}
