//! `get --watch`: the list, then a line for each change. The stream only says what changed; the object itself is read
//! anew, so that a gap in the stream costs a moment and never a wrong line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{Context, get, segment};
use crate::client::{Client, ClientError};
use crate::failure::Outcome;
use crate::kind::Kind;
use crate::out::Format;
use crate::view::{self, text};

/// Before a broken or ended stream is opened again.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) async fn run(cx: &Context, client: &Client, kind: Kind, name: Option<&str>) -> Outcome {
    if let Some(name) = name {
        get::object(cx, client, kind, name).await?; // A name that does not exist is told at once, not waited for.
    }
    let watching = follow(cx, client, kind, name);
    tokio::select! {
        biased;
        result = watching => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn follow(cx: &Context, client: &Client, kind: Kind, name: Option<&str>) -> Outcome {
    let mut shown = Shown::default();
    loop {
        let revision = relist(cx, client, kind, name, &mut shown).await?;
        let mut watch = match client.watch(&filter(kind, name), Some(revision)).await {
            Ok(watch) => watch,
            Err(ClientError::Problem(problem)) if problem.status == 410 => continue, // List again and go on from there.
            Err(error) => return Err(error.into()),
        };
        loop {
            match watch.next().await {
                Ok(Some(event)) => {
                    let event_kind = Kind::from_title(&event.kind);
                    let ours = kind == Kind::Workload && event_kind.is_some_and(|k| Kind::WORKLOADS.contains(&k));
                    if (ours || event_kind == Some(kind)) && name.is_none_or(|name| name == event.name) {
                        changed(cx, client, (kind, event_kind.unwrap_or(kind)), &event.name, &mut shown).await?;
                    }
                }
                Ok(None) => break,
                Err(ClientError::Quiet(_)) => break,
                Err(ClientError::Interrupted(_)) => {
                    cx.ui.note("note: the server that was watched through is gone; going on with another");
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        cx.env.clock.sleep(PAUSE).await;
    }
}

fn filter(kind: Kind, name: Option<&str>) -> String {
    let mut parts = Vec::new();
    if kind != Kind::Workload {
        parts.push(format!("kind={}", kind.title()));
    }
    parts.extend(name.map(|name| format!("name={}", segment(name))));
    parts.join("&")
}

/// What was printed last of each object, and whether the header was.
#[derive(Default)]
struct Shown {
    lines: BTreeMap<String, String>,
    header: bool,
}

/// Prints what differs from what was printed; gives the revision to go on from.
async fn relist(cx: &Context, client: &Client, kind: Kind, name: Option<&str>, shown: &mut Shown) -> Outcome<u64> {
    let list = get::fetch(cx, client, kind).await?;
    let wanted = |item: &&Value| name.is_none_or(|name| text(item, "/metadata/name") == name);
    let items: Vec<&Value> = list.items.iter().filter(wanted).collect();
    let present: Vec<String> = items.iter().map(|item| get::full_name(kind, item)).collect();
    let gone: Vec<String> = shown.lines.keys().filter(|title| !present.contains(title)).cloned().collect();
    for title in gone {
        deleted(cx, &title, shown);
    }
    if !shown.header && !items.is_empty() && !cx.ui.structured() && cx.ui.format != Format::Name {
        // The whole table at once, so that its columns are aligned.
        let items: Vec<Value> = items.iter().map(|item| (*item).clone()).collect();
        get::rows(cx, kind, &items);
        shown.header = true;
        for item in &items {
            shown.lines.insert(get::full_name(kind, item), line(cx, kind, item));
        }
        return Ok(list.revision);
    }
    for item in items {
        print(cx, kind, item, shown)?;
    }
    Ok(list.revision)
}

/// Reads and prints one object. `kinds` are the one that is watched, which decides the columns, and the object's own.
async fn changed(cx: &Context, client: &Client, kinds: (Kind, Kind), name: &str, shown: &mut Shown) -> Outcome {
    let (watched, kind) = kinds;
    match client.get::<Value>(&format!("{}/{}", kind.path(), segment(name))).await {
        Ok(object) => print(cx, watched, &object, shown),
        Err(error) if error.status() == Some(404) => {
            deleted(cx, &format!("{}/{name}", kind.singular()), shown);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints an object unless its line is the one that stands there already.
fn print(cx: &Context, kind: Kind, object: &Value, shown: &mut Shown) -> Outcome {
    let line = line(cx, kind, object);
    if shown.lines.insert(get::full_name(kind, object), line.clone()).as_ref() == Some(&line) {
        return Ok(());
    }
    if cx.ui.structured() || cx.ui.format == Format::Name {
        return get::show(cx, kind, object);
    }
    let header = !std::mem::replace(&mut shown.header, true) && cx.ui.headers;
    let table = view::table(kind, std::slice::from_ref(object), cx.ui.wide(), cx.now_ms());
    cx.ui.data(&table.render(cx.ui.out_tty, cx.ui.out_color, header));
    Ok(())
}

fn deleted(cx: &Context, title: &str, shown: &mut Shown) {
    if shown.lines.remove(title).is_some() {
        cx.ui.note(&format!("{title} deleted"));
    }
}

/// What an object looks like without the columns that change by themselves.
fn line(cx: &Context, kind: Kind, object: &Value) -> String {
    if cx.ui.structured() {
        return object.to_string();
    }
    let mut calm = object.clone();
    for pointer in ["/metadata", "/status"] {
        if let Some(map) = calm.pointer_mut(pointer).and_then(Value::as_object_mut) {
            map.remove("lastHeartbeat");
            map.remove("createdAt");
        }
    }
    view::table(kind, &[calm], cx.ui.wide(), 0).render(false, false, false)
}
