//! `get`: lists, single objects, watching.

use cara_proto::rest::{ClusterView, List};
use serde_json::{Value, json};

use super::{Context, segment, target, with_suggestion};
use crate::cli::Get;
use crate::client::{Answer, Client};
use crate::failure::{Failure, Outcome};
use crate::kind::Kind;
use crate::out::Format;
use crate::view;

pub(super) async fn run(cx: &Context, args: &Get) -> Outcome {
    let (kind, name) = target(&args.kind, args.name.as_deref())?;
    let client = cx.client()?;
    match (args.watch, kind) {
        (true, Kind::Server | Kind::Token | Kind::ApiToken) => {
            Err(Failure::usage(format!("{} can't be watched", kind.plural()))
                .next("watch nodes, apps, projects, databases or workloads"))
        }
        (true, _) => super::watch::run(cx, &client, kind, name.as_deref()).await,
        (false, _) => once(cx, &client, kind, name.as_deref()).await,
    }
}

async fn once(cx: &Context, client: &Client, kind: Kind, name: Option<&str>) -> Outcome {
    if kind == Kind::Server {
        return super::servers::list(cx, client).await;
    }
    match name {
        Some(name) => {
            let object = object(cx, client, kind, name).await?;
            show(cx, kind, &object)
        }
        None => list(cx, client, kind).await,
    }
}

/// Prints a list in the wanted format.
pub(super) async fn list(cx: &Context, client: &Client, kind: Kind) -> Outcome {
    list_of(cx, client, kind, "").await
}

/// The same of what a query (`?...`) leaves of it.
pub(super) async fn list_of(cx: &Context, client: &Client, kind: Kind, query: &str) -> Outcome {
    let list = fetch_of(cx, client, kind, query).await?;
    if cx.ui.structured() {
        let value = json!({
            "apiVersion": list.api_version, "kind": list.kind, "revision": list.revision, "items": list.items,
        });
        return cx.ui.value(&value);
    }
    rows(cx, kind, &list.items);
    if list.items.is_empty() && cx.ui.out_tty {
        cx.ui.note(&format!("There are no {}.{}", kind.plural(), first_step(kind)));
    }
    Ok(())
}

fn first_step(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => " next: `caractrl nodes add` prints the command that adds one",
        Kind::App | Kind::Project | Kind::Database | Kind::Workload => " next: `caractrl apply -f FILE`",
        Kind::Token => " next: `caractrl nodes join-token` makes one",
        Kind::Server | Kind::ApiToken => "",
    }
}

/// Prints one object in the wanted format.
pub(super) fn show(cx: &Context, kind: Kind, object: &Value) -> Outcome {
    if cx.ui.structured() {
        return cx.ui.value(object);
    }
    rows(cx, kind, std::slice::from_ref(object));
    Ok(())
}

/// Prints objects as lines: a table, or their names.
pub(super) fn rows(cx: &Context, kind: Kind, items: &[Value]) {
    if cx.ui.format == Format::Name {
        let names: Vec<String> = items.iter().map(|item| full_name(kind, item)).collect();
        return cx.ui.data(&names.join("\n"));
    }
    cx.ui.table(&view::table(kind, items, cx.ui.wide(), cx.now_ms()));
}

/// `app/hello`.
pub(super) fn full_name(kind: Kind, item: &Value) -> String {
    let kind = Kind::from_title(&view::text(item, "/kind")).unwrap_or(kind);
    let name = view::text(item, "/metadata/name");
    let name = if name.is_empty() { view::text(item, "/id") } else { name };
    format!("{}/{}", kind.singular(), crate::out::clean(&name))
}

/// Reads one object; `Workload` looks through its kinds.
pub(super) async fn object(cx: &Context, client: &Client, kind: Kind, name: &str) -> Outcome<Value> {
    if kind == Kind::Token {
        let tokens = fetch(cx, client, kind).await?;
        let found = tokens.items.into_iter().find(|token| view::text(token, "/id") == name);
        return found.ok_or_else(|| {
            Failure::new(crate::failure::exit::NOT_FOUND, "not-found", format!("there is no join token {name:?}"))
        });
    }
    let kinds: &[Kind] = if kind == Kind::Workload { &Kind::WORKLOADS } else { std::slice::from_ref(&kind) };
    let mut last = None;
    for kind in kinds {
        match client.get_raw(&format!("{}/{}", kind.path(), segment(name))).await {
            Ok(answer) => {
                banner(cx, &answer);
                return Ok(answer.json()?);
            }
            Err(error) if error.status() == Some(404) => last = Some((*kind, Failure::from(error))),
            Err(error) => return Err(error.into()),
        }
    }
    let (kind, failure) = last.expect("there is at least one kind");
    Err(with_suggestion(client, kind, name, failure).await)
}

/// Reads a list.
pub(super) async fn fetch(cx: &Context, client: &Client, kind: Kind) -> Outcome<List<Value>> {
    fetch_of(cx, client, kind, "").await
}

async fn fetch_of(cx: &Context, client: &Client, kind: Kind, query: &str) -> Outcome<List<Value>> {
    let answer = client.get_raw(&format!("{}{query}", kind.path())).await?;
    banner(cx, &answer);
    Ok(answer.json()?)
}

/// Says on stderr that an answer may be old.
pub(super) fn banner(cx: &Context, answer: &Answer) {
    if !cx.global.stale {
        return;
    }
    let age = answer.header("cara-staleness-ms");
    let age = if age.is_empty() { String::new() } else { format!(", {age} ms behind") };
    let (server, revision) = (answer.header("cara-answered-by"), answer.header("cara-revision"));
    cx.ui.note(&format!("note: this may be old: revision {revision} as {server} knows it{age}"));
}

/// The cluster as one server sees it.
pub(super) async fn cluster(cx: &Context, client: &Client) -> Outcome<ClusterView> {
    let answer = client.get_raw("/servers").await?;
    banner(cx, &answer);
    Ok(answer.json()?)
}
