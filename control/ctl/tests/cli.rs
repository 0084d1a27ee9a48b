//! The binary as scripts see it: stdout, stderr, exit codes.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// Runs the binary without this machine's contexts and variables.
fn caractrl(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().expect("it starts")
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caractrl"));
    command.args(arguments).env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Answers `count` requests by `answer(request line)`; one thread of this test, no fixed port.
fn serve(
    count: usize,
    answer: impl Fn(&str) -> (u16, Value) + Send + 'static,
) -> (String, impl FnOnce() -> Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    #[allow(clippy::disallowed_methods)] // The binary under test is a process; nothing here is simulated.
    let thread = std::thread::spawn(move || {
        let mut lines = Vec::new();
        for _ in 0..count {
            let (mut stream, _) = listener.accept().expect("accepted");
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !whole(&request) {
                let n = stream.read(&mut buffer).expect("readable");
                assert_ne!(n, 0, "the request is cut");
                request.extend_from_slice(&buffer[..n]);
            }
            let line = text(&request).lines().next().expect("a request line").to_owned();
            let (status, body) = answer(&line);
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).expect("written");
            lines.push(line);
        }
        lines
    });
    (address, move || thread.join().expect("no panic"))
}

fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    body.len() >= length.map_or(0, |l| l.trim().parse().expect("a number"))
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn problem(status: u16, code: &str, detail: &str) -> (u16, Value) {
    (status, json!({ "type": "", "title": "", "status": status, "code": code, "detail": detail, "hint": "do this" }))
}

#[test]
fn wrong_usage_is_2_and_help_is_0() {
    let home = home();
    assert_eq!(caractrl(home.path(), &["frobnicate"]).status.code(), Some(2));
    assert_eq!(caractrl(home.path(), &["--help"]).status.code(), Some(0));
    let output = caractrl(home.path(), &["get", "ndoes"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "error[usage]: there is no kind \"ndoes\"\n  next: did you mean \"nodes\"?\n");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn a_server_is_removed_by_name_or_id_and_the_plan_is_told() {
    let home = home();
    let cluster = json!({ "clusterId": "c", "answeredBy": "s1", "leader": "s1", "term": 2, "votersAlive": 3, "voters": 3,
        "canLose": 1, "servers": [
            { "id": 2, "name": "s2", "address": "x:1", "role": "follower", "voter": true, "matched": 1, "lag": 0 },
    ]});
    let (address, requests) = serve(3, move |line| match line.starts_with("DELETE") {
        true => (204, Value::Null),
        false => (200, cluster.clone()),
    });
    let output = caractrl(home.path(), &["servers", "remove", "s2", "--yes", "--server", &address]);
    assert_eq!((text(&output.stdout), output.status.code()), ("server/s2 removed\n".to_owned(), Some(0)));
    assert!(text(&output.stderr).contains("2 voters remain and can lose 0"), "{}", text(&output.stderr));
    let output = caractrl(home.path(), &["servers", "remove", "s3", "--server", &address]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("did you mean \"s2\"?"), "{}", text(&output.stderr));
    assert_eq!(requests()[1], "DELETE /api/v1/servers/2 HTTP/1.1");
}

#[test]
fn without_a_cluster_it_says_how_to_get_one() {
    let home = home();
    let output = caractrl(home.path(), &["nodes"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.starts_with("error[no-cluster]:") && said.contains("caractrl dev"), "{said}");
}

#[test]
fn a_piped_table_is_tabs_and_json_is_the_api() {
    let home = home();
    let list = json!({ "apiVersion": "caravanserai/v1", "kind": "NodeList", "revision": 7, "items": [
        { "kind": "Node", "metadata": { "name": "w1" }, "status": { "state": "Ready", "connection": "online", "workloads": 2 } },
    ]});
    let answer = list.clone();
    let (address, requests) = serve(3, move |_| (200, answer.clone()));
    let output = caractrl(home.path(), &["--server", &address, "get", "no"]);
    assert_eq!(
        text(&output.stdout),
        "NAME\tSTATE\tCONNECTION\tADDRESS\tWORKLOADS\tBEAT\tCERT\tAGE\nw1\tReady\tonline\t-\t2\t-\t-\t-\n"
    );
    let output = caractrl(home.path(), &["get", "nodes", "-o", "json", "--server", &address]);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON"), list);
    let output = caractrl(home.path(), &["nodes", "list", "-o", "name", "--server", &address]);
    assert_eq!((text(&output.stdout), output.status.code()), ("node/w1\n".to_owned(), Some(0)));
    assert_eq!(requests(), ["GET /api/v1/nodes HTTP/1.1"; 3]);
}

#[test]
fn refusals_have_their_exit_codes_and_say_what_is_next() {
    let home = home();
    for (status, exit) in [(400, 2), (401, 5), (404, 3), (409, 4), (500, 1)] {
        // A missing node is looked for among its neighbours.
        let count = if status == 404 { 2 } else { 1 };
        let (address, requests) = serve(count, move |line| match line.contains("cordon") {
            true => problem(status, "the-code", "the detail"),
            false => (200, json!({ "items": [{ "metadata": { "name": "w10" } }] })),
        });
        let output = caractrl(home.path(), &["nodes", "cordon", "w1", "--server", &address]);
        assert_eq!(output.status.code(), Some(exit), "HTTP {status}: {}", text(&output.stderr));
        let next = if status == 404 { "did you mean \"w10\"?" } else { "do this" };
        assert_eq!(text(&output.stderr), format!("error[the-code]: the detail\n  next: {next}\n"));
        requests();
    }
}

#[test]
fn nobody_there_is_6() {
    let home = home();
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        format!("http://{}", listener.local_addr().expect("bound"))
    };
    let output = caractrl(home.path(), &["get", "nodes", "--server", &address, "--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(6));
    assert!(text(&output.stderr).contains("error[unreachable]"), "{}", text(&output.stderr));
}

#[test]
fn apply_creates_configures_and_leaves_unchanged() {
    let home = home();
    let file = home.path().join("apps.yaml");
    let manifest = |name: &str, image: &str| {
        format!("---\napiVersion: caravanserai/v1\nkind: App\nmetadata: {{name: {name}}}\nspec: {{image: {image}}}\n")
    };
    std::fs::write(&file, manifest("new", "a") + &manifest("old", "b") + &manifest("same", "c")).expect("written");
    let object = |name: &str, image: &str| json!({ "kind": "App", "metadata": { "name": name, "uid": name }, "spec": { "image": image } });
    let posts = std::sync::atomic::AtomicUsize::new(0);
    let (address, requests) = serve(7, move |line| {
        if line.starts_with("POST") {
            let first = posts.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            return if first { (201, object("new", "a")) } else { problem(409, "already-exists", "it is there") };
        }
        match (line.contains("/old"), line.starts_with("PUT")) {
            (true, false) => (200, object("old", "a")),
            (true, true) => (200, object("old", "b")),
            (false, _) => (200, object("same", "c")),
        }
    });
    let path = file.to_str().expect("UTF-8");
    let output = caractrl(home.path(), &["apply", "-f", path, "--server", &address]);
    assert_eq!(
        text(&output.stdout),
        "app/new created\napp/old configured\napp/same unchanged\n",
        "{}",
        text(&output.stderr)
    );
    assert_eq!(requests().len(), 7);
}

#[test]
fn a_wrong_manifest_is_2_names_the_line_and_sends_nothing() {
    let home = home();
    let file = home.path().join("bad.yaml");
    let right = "apiVersion: caravanserai/v1\nkind: App\nmetadata: {name: a}\nspec: {image: x}\n";
    let wrong = "apiVersion: caravanserai/v1\nkind: App\nmetadata: {name: b}\nspec:\n  imag: x\n";
    std::fs::write(&file, format!("{right}---\n{wrong}")).expect("written");
    let path = file.to_str().expect("UTF-8");
    // Nobody listens there: a request would be another error.
    let output = caractrl(home.path(), &["apply", "-f", path, "--server", "http://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("{path}:10:3: unknown field \"imag\", did you mean \"image\"?")), "{said}");
    assert!(said.contains("nothing was sent"), "{said}");
}

#[test]
fn stdin_and_folders_are_manifests_too() {
    let home = home();
    let right = "apiVersion: caravanserai/v1\nkind: App\nmetadata: {name: a}\nspec: {image: x}\n";
    let mut child = command(home.path(), &["apply", "-f", "-", "--dry-run", "client"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("piped").write_all(right.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((text(&output.stdout), output.status.code()), ("app/a is well formed (not sent)\n".to_owned(), Some(0)));

    let folder = home.path().join("manifests");
    std::fs::create_dir(&folder).expect("created");
    let path = folder.to_str().expect("UTF-8");
    assert_eq!(caractrl(home.path(), &["apply", "-f", path, "--dry-run", "client"]).status.code(), Some(2));
    std::fs::write(folder.join("b.yml"), right.replace("name: a", "name: b")).expect("written");
    std::fs::write(folder.join("a.yaml"), right).expect("written");
    std::fs::write(folder.join("readme.txt"), "no manifest").expect("written");
    let output = caractrl(home.path(), &["apply", "-f", path, "--dry-run", "client"]);
    assert_eq!(text(&output.stdout), "app/a is well formed (not sent)\napp/b is well formed (not sent)\n");
    // What others need comes first, whatever the names of the files.
    let database = "apiVersion: caravanserai/v1\nkind: Database\nmetadata: {name: z}\nspec: {engine: redis}\n";
    std::fs::write(folder.join("z.yaml"), database).expect("written");
    let output = caractrl(home.path(), &["apply", "-f", path, "--dry-run", "client"]);
    assert!(text(&output.stdout).starts_with("database/z is well formed"), "{output:?}");
    // The same object twice is a mistake, not an update.
    std::fs::write(folder.join("c.yaml"), right).expect("written");
    let output = caractrl(home.path(), &["apply", "-f", path, "--dry-run", "client"]);
    assert!(text(&output.stderr).contains("already described"), "{}", text(&output.stderr));
}

#[test]
fn delete_waits_until_it_is_gone() {
    let home = home();
    let object =
        json!({ "kind": "App", "metadata": { "name": "a", "uid": "u" }, "status": { "phase": "Terminating" } });
    let gets = std::sync::atomic::AtomicUsize::new(0);
    let (address, requests) = serve(4, move |line| {
        if line.starts_with("DELETE") {
            return (202, object.clone());
        }
        match gets.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 | 1 => (200, object.clone()),
            _ => problem(404, "unknown-workload", "gone"),
        }
    });
    let output = caractrl(home.path(), &["delete", "app", "a", "--server", &address]);
    assert_eq!((text(&output.stdout), output.status.code()), ("app/a deleted\n".to_owned(), Some(0)));
    assert!(text(&output.stderr).contains("app/a  Terminating"), "{}", text(&output.stderr));
    assert_eq!(requests()[1], "DELETE /api/v1/apps/a HTTP/1.1");
}

#[test]
fn a_node_is_deleted_only_when_that_is_confirmed() {
    let home = home();
    let output = caractrl(home.path(), &["nodes", "delete", "w1", "--server", "http://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("add --yes"), "{}", text(&output.stderr));
}

#[test]
fn wait_says_how_it_failed() {
    let home = home();
    let file = home.path().join("a.yaml");
    std::fs::write(&file, "apiVersion: caravanserai/v1\nkind: App\nmetadata: {name: a}\nspec: {image: x}\n")
        .expect("written");
    let object = |phase: &str| {
        json!({ "kind": "App", "metadata": { "name": "a", "uid": "u" }, "spec": { "image": "x" }, "status": {
            "phase": phase, "message": "no such image", "placement": { "nodeName": "w1", "generation": 1 } } })
    };
    let (address, requests) = serve(2, move |line| match line.starts_with("POST") {
        true => (201, object("Scheduled")),
        false => (200, object("Failed")),
    });
    let path = file.to_str().expect("UTF-8");
    let output = caractrl(home.path(), &["apply", "--wait", "-f", path, "--server", &address]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no such image"), "{}", text(&output.stderr));
    requests();
}

#[test]
fn contexts_are_saved_privately_and_used() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let (address, requests) = serve(1, |_| (200, json!({ "items": [], "apiVersion": "", "kind": "", "revision": 1 })));
    let run = |arguments: &[&str]| caractrl(home.path(), arguments);
    let output = run(&["ctx", "set", "lab", "--server", &address, "--token", "secret"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let file = home.path().join(".config/caravanserai/config.toml");
    assert_eq!(std::fs::metadata(&file).expect("saved").permissions().mode() & 0o777, 0o600);
    let listed = text(&run(&["ctx"]).stdout);
    assert_eq!(listed, format!("CURRENT\tNAME\tSERVERS\tTOKEN\n*\tlab\t{address}\tsaved\n"));
    assert!(!listed.contains("secret"));
    assert_eq!(run(&["get", "nodes"]).status.code(), Some(0));
    requests();
    assert_eq!(run(&["ctx", "use", "lba"]).status.code(), Some(3));
    assert_eq!(run(&["ctx", "set", "bad", "--server", "http://10.0.0.1:1"]).status.code(), Some(2));
    assert_eq!(run(&["ctx", "remove", "lab"]).status.code(), Some(0));
}

#[test]
fn dev_says_how_to_build_what_is_missing() {
    let home = home();
    let alone = home.path().join("bin/inner/caractrl");
    std::fs::create_dir_all(alone.parent().expect("a folder")).expect("created");
    std::fs::copy(env!("CARGO_BIN_EXE_caractrl"), &alone).expect("copied");
    let output = Command::new(&alone).arg("dev").env_clear().stdin(Stdio::null()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cargo build -p cara-control -p cara-agent"), "{}", text(&output.stderr));
}
