//! The binary as a process, and a server on loopback that answers from a script.

#![allow(dead_code)] // Each file of tests uses a part of it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// Answers in order.
pub struct Script {
    answers: Vec<(u16, Value)>,
    repeat_last: bool,
}

impl Script {
    /// As many answers as there will be requests.
    pub fn new(answers: &[(u16, Value)]) -> Self {
        Self { answers: answers.to_vec(), repeat_last: false }
    }

    /// The last answer is given for ever; such a server ends with the test.
    pub fn repeat_last(mut self) -> Self {
        self.repeat_last = true;
        self
    }
}

/// Runs the binary against `address`, without this machine's contexts and variables.
pub fn run(home: &Path, address: &str, arguments: &[&str]) -> Output {
    command(home, arguments).args(["--server", address]).output().expect("it starts")
}

/// The binary, ready to start.
pub fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caractrl"));
    command.args(arguments).env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

/// UTF-8, as everything that is printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A folder without contexts.
pub fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// A refusal.
pub fn problem(status: u16, code: &str, detail: &str) -> (u16, Value) {
    (status, json!({ "type": "", "title": "", "status": status, "code": code, "detail": detail, "hint": "do this" }))
}

/// Plays a script; no fixed port. The second value waits for its end and gives the requests, whole.
pub fn serve(script: Script) -> (String, impl FnOnce() -> Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    #[allow(clippy::disallowed_methods)] // The binary under test is a process; nothing here is simulated.
    let thread = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for (status, body) in &script.answers {
            requests.extend(answer(&listener, *status, body));
        }
        while let Some((status, body)) = script.answers.last().filter(|_| script.repeat_last) {
            answer(&listener, *status, body);
        }
        requests
    });
    (address, move || thread.join().expect("no panic"))
}

/// One request and its answer; nothing when the other side went away in the middle.
fn answer(listener: &TcpListener, status: u16, body: &Value) -> Option<String> {
    let (mut stream, _) = listener.accept().expect("accepted");
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !whole(&request) {
        let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
        request.extend_from_slice(&buffer[..n]);
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).ok()?;
    Some(text(&request))
}

fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    body.len() >= length.map_or(0, |l| l.trim().parse().expect("a number"))
}
