//! `GET /api/v1/watch`: committed changes as server-sent events, resumable on any server.
//!
//! The id of a message is its revision. Only the last message of a revision carries it: a stream that breaks in the
//! middle of a revision resumes before it, so that nothing is missed (its first messages come twice then). When the
//! events after the given revision are gone, the answer is 410 `compacted` and the client lists again.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Asker;
use crate::api::SharedApi;
use crate::api::actor::Actor;
use crate::error::ApiError;
use crate::machine::Compacted;
use crate::wire::watch_event;

/// Events taken at once: a watcher that lags catches up in steps, and holds no more than this.
const BATCH: usize = 256;
/// A comment this often keeps proxies from closing a quiet stream.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What to watch.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct WatchQuery {
    /// Events after this revision; absent = from now on. `Last-Event-ID` wins.
    since: Option<u64>,
    /// Only changes of this kind of object.
    #[serde(default)]
    kind: String,
    /// Only changes of the object of this name.
    #[serde(default)]
    name: String,
}

struct Watcher {
    api: SharedApi,
    query: WatchQuery,
    /// Sees what is within their reach, for as long as their token is valid.
    actor: Actor,
    after: u64,
    changed: tokio::sync::watch::Receiver<u64>,
    shutdown: tokio::sync::watch::Receiver<bool>,
    ready: VecDeque<Bytes>,
}

/// Opens a stream.
pub async fn watch(
    State(api): State<SharedApi>,
    headers: HeaderMap,
    Query(query): Query<WatchQuery>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, ApiError> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let again = u64::from(cara_env::planted("watch-repeats-after-reconnect"));
    let last = last.map(|last: u64| last.saturating_sub(again));
    let now = api.raft.with_state(|machine| machine.applied());
    let after = last.or(query.since).unwrap_or(now);
    api.raft.with_state(|machine| machine.events_after(after, 1).map(drop)).map_err(gone)?;
    let (changed, shutdown) = (api.changed.clone(), api.shutdown.clone());
    // The first bytes go out at once, so that the client knows that it watches, and from where.
    let hello = Bytes::from(format!(": watching after revision {after}\n\n"));
    let ready = VecDeque::from([hello]);
    let watcher = Watcher { api, query, actor: asker.actor, after, changed, shutdown, ready };
    let stream = futures_util::stream::unfold(watcher, |mut watcher| async move {
        let bytes = watcher.next().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), watcher))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn gone(compacted: Compacted) -> ApiError {
    ApiError::Missing {
        code: "compacted",
        detail: format!("events are kept from revision {} on", compacted.oldest),
        hint: "list again, and watch from the list's revision",
    }
}

impl Watcher {
    /// The next bytes; none ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            self.changed.borrow_and_update();
            if !self.api.is_token_valid(&self.actor.token) {
                return None; // Whoever asks again is told why.
            }
            match self.collect() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(compacted) => {
                    // The client was too slow: say so in the stream, and end it.
                    self.after = u64::MAX;
                    return Some(Bytes::from(format!(
                        "event: compacted\ndata: {{\"oldest\":{}}}\n\n",
                        compacted.oldest
                    )));
                }
            }
            let env = self.api.env.clone();
            let keepalive = env.clock.sleep(KEEPALIVE);
            let stop = tokio::select! {
                biased;
                stop = async { self.shutdown.wait_for(|stop| *stop).await.map(|_| true).unwrap_or(true) } => stop,
                changed = self.changed.changed() => changed.is_err(),
                () = keepalive => { self.ready.push_back(Bytes::from_static(b": alive\n\n")); false }
            };
            if stop || self.after == u64::MAX {
                return None;
            }
        }
    }

    /// Moves the next events to `ready`; false when there are none.
    fn collect(&mut self) -> Result<bool, Compacted> {
        if self.after == u64::MAX {
            return Ok(false);
        }
        let (after, query, reach) = (self.after, &self.query, &self.actor.reach);
        let found = self.api.raft.with_state(|machine| {
            let events = machine.events_after(after, BATCH)?;
            let last = events.last().map(|logged| logged.revision);
            let shown = events.iter().filter(|logged| reach.shows(&logged.event));
            Ok((last, shown.map(|logged| watch_event(machine.state(), logged)).collect::<Vec<_>>()))
        })?;
        let (Some(last), found) = found else { return Ok(false) };
        let matching: Vec<_> = found
            .into_iter()
            .filter(|e| query.kind.is_empty() || e.kind.eq_ignore_ascii_case(&query.kind))
            .filter(|e| query.name.is_empty() || e.name == query.name)
            .collect();
        let mut text = String::new();
        for (at, event) in matching.iter().enumerate() {
            if matching.get(at + 1).is_none_or(|next| next.revision != event.revision) {
                let _ = writeln!(text, "id: {}", event.revision);
            }
            let json = serde_json::to_string(event).unwrap_or_default();
            let _ = write!(text, "event: change\ndata: {json}\n\n");
        }
        self.after = last;
        if !text.is_empty() {
            self.ready.push_back(Bytes::from(text));
        }
        Ok(true)
    }
}
