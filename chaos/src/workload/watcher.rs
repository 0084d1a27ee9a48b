//! A watcher follows all changes over `GET /api/v1/watch`, from one server after the other, and writes down what it sees.

use std::sync::Arc;
use std::time::Duration;

use cara_checker::watch::{Change, Seen};
use cara_env::Env;
use cara_netsim::Boot;
use serde_json::Value;

use super::rest::{Ask, Lines, Rest};
use super::{Phase, pick};
use crate::world::{Shared, address};

/// A stream is given up after this much silence: the server sends a comment more often.
const SILENCE: Duration = Duration::from_secs(20);
/// Asking for the list, after events were compacted.
const LIST: Duration = Duration::from_secs(11);
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(300);
/// A watcher that has seen so much has proved enough; it goes on watching and stops writing down.
pub const SEEN_MAX: usize = 20_000;

/// A watcher's process.
pub async fn watch(boot: Boot, shared: Arc<Shared>, servers: Vec<String>) -> Result<(), String> {
    let env = boot.env;
    while shared.phase() == Phase::Setup {
        env.clock.sleep(Duration::from_millis(50)).await;
    }
    let founded = shared.founded().ok_or("no cluster was founded")?;
    let rest = Rest::new(&env, &founded.ca_fingerprint, &founded.token);
    let mut watcher = Watcher { name: boot.name, env: env.clone(), shared, after: None };
    loop {
        let server = pick(&*env.rng, &servers);
        watcher.once(&rest, &server).await;
        env.clock.sleep(AGAIN).await;
    }
}

struct Watcher {
    name: String,
    env: Env,
    shared: Arc<Shared>,
    /// All events up to this revision were seen; none before the first stream.
    after: Option<u64>,
}

impl Watcher {
    fn note(&self, seen: Seen) {
        let mut history = self.shared.history();
        let list = history.watched.entry(self.name.clone()).or_default();
        if list.len() < SEEN_MAX {
            list.push((self.env.clock.monotonic(), seen));
        }
    }

    /// One stream, from its begin to its end.
    async fn once(&mut self, rest: &Rest, server: &str) {
        let ask = self.ask();
        let Ok(opened) = rest.stream(&address(server), &ask, SILENCE).await else { return };
        let mut lines = match opened {
            Ok(lines) => lines,
            Err(told) if told.status == http::StatusCode::GONE => {
                self.list_again(rest, server).await;
                return;
            }
            Err(_) => return, // No leader, shutting down: try the next one.
        };
        self.follow(rest, server, &mut lines).await;
        self.note(Seen::Ended);
    }

    /// Both ways to go on: programs give the revision, browsers repeat the id of the last message.
    fn ask(&self) -> Ask {
        let Some(after) = self.after else { return Ask::get("/api/v1/watch") };
        match self.env.rng.below(2) {
            0 => Ask::get(format!("/api/v1/watch?since={after}")),
            _ => Ask { last_event_id: Some(after), ..Ask::get("/api/v1/watch") },
        }
    }

    async fn follow(&mut self, rest: &Rest, server: &str, lines: &mut Lines) {
        let (mut id, mut compacted) = (None, false);
        while let Some(line) = lines.next(SILENCE).await {
            if let Some(after) = line.strip_prefix(": watching after revision ").and_then(|text| text.parse().ok()) {
                // It goes on where it was, whatever the server makes of that; the server's word counts only at the begin.
                let from = *self.after.get_or_insert(after);
                self.note(Seen::Connected { from: Some(from) });
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = text.parse::<u64>().ok();
            } else if line == "event: compacted" {
                compacted = true;
            } else if let Some(text) = line.strip_prefix("data: ") {
                if compacted {
                    self.list_again(rest, server).await;
                    return;
                }
                let event: Value = serde_json::from_str(text).unwrap_or_default();
                let word = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
                let object = format!("{}/{}", word("kind"), word("name"));
                // The message tells of the object as it is now, and differs from watcher to watcher.
                let change = Change { object, what: word("event") };
                self.note(Seen::Event { revision: event["revision"].as_u64().unwrap_or_default(), change });
                self.after = id.take().or(self.after);
            }
        }
    }

    /// Events are gone: a list says where to go on.
    async fn list_again(&mut self, rest: &Rest, server: &str) {
        let Ok(told) = rest.ask(&address(server), &Ask::get("/api/v1/workloads"), LIST).await else { return };
        if let Some(revision) = told.json()["revision"].as_u64() {
            self.note(Seen::Compacted);
            self.note(Seen::Listed { revision });
            self.after = Some(revision);
        }
    }
}
