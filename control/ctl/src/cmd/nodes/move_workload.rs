//! `nodes move`: plan, question, move, and its life to the end.

use cara_proto::rest::{MovePlan, MoveRequest, MoveView};
use serde_json::Value;

use crate::cli::Move as Words;
use crate::client::Client;
use crate::cmd::ask::agree;
use crate::cmd::{Context, segment, target, with_suggestion};
use crate::failure::{Failure, Outcome, exit};
use crate::follow;
use crate::kind::Kind;
use crate::out::{Format, clean};
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, words: &Words) -> Outcome {
    let (kind, name) = workload(&words.kind, words.name.as_deref())?;
    let title = format!("{}/{name}", kind.singular());
    let planned = ask_for(client, kind, &name, words, true).await?;
    let plan: MovePlan = typed(&planned)?;
    let text = view::moves::plan(&title, &plan);
    if words.dry_run {
        if cx.ui.structured() {
            return cx.ui.value(&planned);
        }
        cx.ui.data(&text);
        return Ok(());
    }
    cx.ui.note(text.trim_end());
    agree(cx, &format!("the move of {title} to {}", clean(&plan.to_node)), words.yes)?;
    let answer = ask_for(client, kind, &name, words, false).await?;
    let begun: MoveView = typed(&answer)?;
    if begun.to_node != plan.to_node {
        let (now, before) = (clean(&begun.to_node), clean(&plan.to_node));
        cx.ui.note(&format!("note: it goes to {now}, not {before}: the cluster has changed since the plan"));
    }
    let id = clean(&begun.id);
    if words.detach {
        cx.ui.note(&format!(
            "{title} is being moved; `caractrl nodes moves {id}` shows it, `caractrl nodes cancel-move {id}` takes it back"
        ));
        return said(cx, &answer, &format!("move/{id}"), &format!("move/{id} started"));
    }
    let value = follow::a_move(cx, client, &begun.id, &title).await?;
    said(cx, &value, &format!("move/{id}"), &format!("{title} moved to {}", clean(&begun.to_node)))
}

/// The kind and the name of one workload.
///
/// # Errors
/// 2 when it is no such kind, or a name is missing.
pub(super) fn workload(kind: &str, name: Option<&str>) -> Outcome<(Kind, String)> {
    let (kind, name) = target(kind, name)?;
    only_workloads(kind)?;
    let name = name.ok_or_else(|| {
        let (one, many) = (kind.singular(), kind.plural());
        Failure::usage(format!("which {one}?")).next(format!("`caractrl get {many}` lists them"))
    })?;
    Ok((kind, name))
}

/// A kind of workload.
///
/// # Errors
/// 2 when it is none.
pub(super) fn workload_kind(word: &str) -> Outcome<Kind> {
    let kind = word.parse()?;
    only_workloads(kind)?;
    Ok(kind)
}

fn only_workloads(kind: Kind) -> Outcome {
    if Kind::WORKLOADS.contains(&kind) {
        return Ok(());
    }
    let names = Kind::WORKLOADS.iter().map(|kind| kind.singular()).collect::<Vec<_>>().join(", ");
    Err(Failure::usage(format!("{} is not one of {names}", kind.singular())))
}

/// Sends the request; a missing workload or node is looked for among its neighbours.
async fn ask_for(client: &Client, kind: Kind, name: &str, words: &Words, dry_run: bool) -> Outcome<Value> {
    let path = format!("{}/{}/move", kind.path(), segment(name));
    match client.post(&path, &body(words, dry_run)).await {
        Ok(answer) => Ok(answer.json()?),
        Err(error) => {
            let failure = Failure::from(error);
            Err(match (&words.to, failure.code.as_str()) {
                (Some(node), "unknown-node") => with_suggestion(client, Kind::Node, node, failure).await,
                _ => with_suggestion(client, kind, name, failure).await,
            })
        }
    }
}

/// What isn't said is left to the server.
fn body(words: &Words, dry_run: bool) -> MoveRequest {
    MoveRequest {
        node_id: words.to.clone().unwrap_or_default(),
        verify_timeout_s: words.verify_timeout,
        attempts: words.attempts,
        interval_s: words.interval,
        dry_run,
    }
}

/// A typed reading of an answer.
pub(super) fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> Outcome<T> {
    serde_json::from_value(value.clone()).map_err(|e| {
        Failure::new(exit::OTHER, "malformed-answer", "the server's answer can't be understood").why(e.to_string())
    })
}

/// The result on stdout, in the wanted format.
pub(super) fn said(cx: &Context, value: &Value, name: &str, text: &str) -> Outcome {
    match cx.ui.format {
        Format::Json | Format::Yaml => return cx.ui.value(value),
        Format::Name => cx.ui.data(name),
        Format::Table | Format::Wide => cx.ui.data(text),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        Words {
            kind: "app".into(),
            name: Some("web".into()),
            to: None,
            yes: false,
            detach: false,
            verify_timeout: None,
            attempts: None,
            interval: None,
            dry_run: false,
        }
    }

    #[test]
    fn what_is_not_said_is_left_to_the_server() {
        assert_eq!(body(&words(), false), MoveRequest::default());
        let all =
            Words { to: Some("w2".into()), verify_timeout: Some(300), attempts: Some(5), interval: Some(3), ..words() };
        let expect = MoveRequest {
            node_id: "w2".into(),
            verify_timeout_s: Some(300),
            attempts: Some(5),
            interval_s: Some(3),
            dry_run: true,
        };
        assert_eq!(body(&all, true), expect);
    }

    #[test]
    fn only_workloads_move() {
        assert_eq!(workload("db/ledger", None), Ok((Kind::Database, "ledger".to_owned())));
        let failure = workload("node", Some("w1")).expect_err("no workload");
        assert_eq!((failure.exit, failure.what.as_str()), (2, "node is not one of app, project, database"));
        assert_eq!(workload("ap", Some("web")).expect_err("no kind").next, "did you mean \"app\"?");
        assert_eq!(workload("app", None).expect_err("no name").what, "which app?");
        assert!(workload_kind("workloads").is_err());
    }
}
