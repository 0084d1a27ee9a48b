//! Waiting for what was asked for, with progress that a person can read: a line that is rewritten on a terminal, one
//! line per change in a pipe. Ctrl-C ends the waiting, not the work, and says so.

use std::sync::PoisonError;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::Client;
use crate::cmd::{Context, segment};
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;
use crate::out::{Ui, clean};
use crate::view::{list, ready, text};

/// Between two looks. A watch would be told sooner and break more often; half a second is what a person notices.
pub(crate) const POLL: Duration = Duration::from_millis(400);

/// Waits until a workload runs as it was applied (`applied` is the answer to that).
///
/// # Errors
/// 7 when it failed, 8 when the time is over, 130 after Ctrl-C.
pub(crate) async fn until_running(
    cx: &Context,
    client: &Client,
    kind: Kind,
    name: &str,
    applied: &Value,
) -> Outcome<Value> {
    let wanted = generation(applied);
    let uid = text(applied, "/metadata/uid");
    let title = format!("{}/{name}", kind.singular());
    let path = format!("{}/{}", kind.path(), segment(name));
    let mut progress = Progress::new(&cx.ui, &title);
    let started = cx.env.clock.monotonic();
    loop {
        let object: Value = match client.get(&path).await {
            Ok(object) => object,
            Err(error) if error.status() == Some(404) => return Err(vanished(&title)),
            Err(error) => return Err(error.into()),
        };
        if text(&object, "/metadata/uid") != uid {
            return Err(vanished(&title));
        }
        let seconds = (cx.env.clock.monotonic() - started).as_secs_f64();
        match state(&object, wanted) {
            State::Running => {
                progress.done(&format!("{} after {seconds:.1} s", story(&object)));
                return Ok(object);
            }
            State::Failed => {
                progress.done(&story(&object));
                return Err(failed(&title, kind, name, &object));
            }
            State::Underway => progress.set(&story(&object)),
        }
        rest(cx, started, &title, &format!("caractrl get {title}")).await?;
    }
}

/// Waits until an object is gone. `uid` tells it from a new one of the same name.
///
/// # Errors
/// 8 when the time is over, 130 after Ctrl-C.
pub(crate) async fn until_gone(cx: &Context, client: &Client, kind: Kind, name: &str, uid: &str) -> Outcome {
    let title = format!("{}/{name}", kind.singular());
    let path = format!("{}/{}", kind.path(), segment(name));
    let mut progress = Progress::new(&cx.ui, &title);
    let started = cx.env.clock.monotonic();
    loop {
        match client.get::<Value>(&path).await {
            Err(error) if error.status() == Some(404) => break,
            Err(error) => return Err(error.into()),
            Ok(object) if !uid.is_empty() && text(&object, "/metadata/uid") != uid => break,
            Ok(object) => progress.set(&story(&object)),
        }
        rest(cx, started, &title, &format!("caractrl get {title}, or delete it with --force if its node is lost"))
            .await?;
    }
    progress.clear();
    Ok(())
}

/// Where to look at work that goes on by itself.
pub(crate) struct Look {
    /// What it is, for people.
    pub title: &'static str,
    /// Where the API tells how far it is.
    pub path: &'static str,
    /// The command that tells it.
    pub next: &'static str,
}

/// Waits until there is no more `story` to tell of the view, which `begun` was first.
///
/// # Errors
/// 8 when the time is over, 130 after Ctrl-C.
pub(crate) async fn until_told<V: DeserializeOwned>(
    cx: &Context,
    client: &Client,
    look: &Look,
    begun: V,
    story: impl Fn(&V) -> Option<String>,
) -> Outcome<V> {
    let mut view = begun;
    let mut progress = Progress::new(&cx.ui, look.title);
    let started = cx.env.clock.monotonic();
    while let Some(story) = story(&view) {
        progress.set_calm(&story, &story);
        rest(cx, started, look.title, look.next).await?;
        view = client.get(look.path).await?;
    }
    progress.clear();
    Ok(view)
}

/// Sleeps until the next look, unless the time is over or Ctrl-C comes.
pub(crate) async fn rest(cx: &Context, started: Duration, title: &str, next: &str) -> Outcome {
    if cx.env.clock.monotonic() - started >= cx.wait_limit() {
        let what = format!("{title}: not there after {} s; it goes on", cx.wait_limit().as_secs());
        return Err(Failure::new(exit::TIMEOUT, "timeout", what).next(next));
    }
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {
            Err(Failure::new(exit::DETACHED, "detached", format!("{title}: no longer waiting; it goes on")).next(next))
        }
        () = cx.env.clock.sleep(POLL) => Ok(()),
    }
}

enum State {
    Running,
    Failed,
    Underway,
}

fn state(object: &Value, wanted: u64) -> State {
    let current = generation(object) >= wanted;
    match text(object, "/status/phase").as_str() {
        "Running" | "Stopped" if current => State::Running, // Stopped is what a suspended one shall be.
        "Failed" if current => State::Failed,
        _ => State::Underway,
    }
}

/// The generation of the placement; the phase is always that of the current one. 0 while there is none.
fn generation(object: &Value) -> u64 {
    object.pointer("/status/placement/generation").and_then(Value::as_u64).unwrap_or(0)
}

/// `Running on w1 (1/1)`, `Pending: w1 cordoned, w2 offline`.
fn story(object: &Value) -> String {
    let phase = text(object, "/status/phase");
    let node = text(object, "/status/placement/nodeName");
    let message = text(object, "/status/message");
    let rejected: Vec<String> = list(object, "/status/rejected")
        .iter()
        .map(|r| format!("{} {}", text(r, "/node"), text(r, "/reason")))
        .collect();
    let mut story = if phase.is_empty() { "waiting".to_owned() } else { phase };
    if !node.is_empty() {
        story = format!("{story} on {node} ({})", ready(object));
    }
    if !message.is_empty() {
        story = format!("{story}: {message}");
    } else if node.is_empty() && !rejected.is_empty() {
        story = format!("{story}: {}", rejected.join(", "));
    }
    clean(&story)
}

fn vanished(title: &str) -> Failure {
    Failure::new(exit::CONFLICT, "vanished", format!("{title} was deleted by somebody while it was waited for"))
}

fn failed(title: &str, kind: Kind, name: &str, object: &Value) -> Failure {
    Failure::new(exit::FAILED, "workload-failed", format!("{title} does not run"))
        .why(story(object))
        .next(format!("caractrl describe {} {name}; caractrl logs {title}", kind.singular()))
}

/// One line about one object.
pub(crate) struct Progress {
    title: String,
    bar: Option<ProgressBar>,
    ui: Ui,
    last: String,
}

impl Progress {
    /// Begins; on a terminal the line is there from now on.
    pub(crate) fn new(ui: &Ui, title: &str) -> Self {
        let bar = ui.err_tty.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {msg}  {elapsed}") {
                bar.set_style(style);
            }
            bar.set_prefix(title.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        *ui.live.lock().unwrap_or_else(PoisonError::into_inner) = bar.clone();
        Self { title: title.to_owned(), bar, ui: ui.clone(), last: String::new() }
    }

    fn set(&mut self, story: &str) {
        self.set_calm(story, story);
    }

    /// What goes on: `live` with numbers that change all the time, for a line that is rewritten; `calm` for a log, where
    /// each change is a line.
    pub(crate) fn set_calm(&mut self, live: &str, calm: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(live.to_owned());
        } else if self.last != calm {
            self.ui.note(&format!("{}  {calm}", self.title));
        }
        calm.clone_into(&mut self.last);
    }

    /// A line that stays, above the one that is rewritten.
    pub(crate) fn say(&self, line: &str) {
        self.ui.note(line);
    }

    fn done(&mut self, story: &str) {
        self.clear();
        self.ui.note(&format!("{}  {story}", self.title));
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            *self.ui.live.lock().unwrap_or_else(PoisonError::into_inner) = None;
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn running_counts_only_for_what_was_applied() {
        let object = |phase: &str, generation: u64| json!({ "status": { "phase": phase, "placement": { "generation": generation } } });
        assert!(matches!(state(&object("Running", 12), 12), State::Running));
        assert!(matches!(state(&object("Running", 11), 12), State::Underway));
        assert!(matches!(state(&object("Failed", 11), 12), State::Underway));
        assert!(matches!(state(&object("Failed", 12), 12), State::Failed));
        assert!(matches!(state(&object("Stopped", 12), 12), State::Running));
        assert!(matches!(state(&object("Pending", 0), 12), State::Underway));
    }

    #[test]
    fn the_story_says_why_it_waits() {
        let pending = json!({ "status": { "phase": "Pending", "rejected": [{ "node": "w1", "reason": "cordoned" }] } });
        assert_eq!(story(&pending), "Pending: w1 cordoned");
        assert_eq!(story(&crate::view::tests_sample("Running")), "Running on w1 (1/1)");
        assert_eq!(story(&json!({})), "waiting");
    }
}
