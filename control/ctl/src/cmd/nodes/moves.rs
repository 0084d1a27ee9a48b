//! `nodes moves` and `nodes cancel-move`: looking at moves, and taking one back.

use cara_proto::rest::{Items, MoveView};
use serde_json::{Value, json};

use crate::cli::Moves as Words;
use crate::client::Client;
use crate::cmd::{Context, answer, segment, workload_kind};
use crate::failure::{Failure, Outcome, exit};
use crate::follow;
use crate::out::clean;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, words: &Words) -> Outcome {
    match &words.id {
        Some(id) => one(cx, client, id, words.follow).await,
        None => many(cx, client, words).await,
    }
}

async fn one(cx: &Context, client: &Client, id: &str, follow: bool) -> Outcome {
    let path = format!("/node-moves/{}", segment(id));
    let mut value: Value = client.get(&path).await.map_err(|error| listed(error.into()))?;
    if follow {
        let mv: MoveView = answer::typed(&value)?;
        value = follow::a_move(cx, client, id, &follow::move_title(&mv)).await?;
    }
    let mv: MoveView = answer::typed(&value)?;
    answer::one(cx, &value, &format!("move/{}", clean(&mv.id)), &view::moves::full(&mv, cx.now_ms()))
}

async fn many(cx: &Context, client: &Client, words: &Words) -> Outcome {
    let value: Value = client.get(&path(words)?).await?;
    let moves = answer::typed::<Items<MoveView>>(&value)?.items;
    let names: Vec<String> = moves.iter().map(|mv| format!("move/{}", clean(&mv.id))).collect();
    let table = view::moves::table(&moves, cx.ui.wide(), cx.now_ms());
    let when_empty = "There are no such moves. next: `caractrl nodes move app NAME` begins one";
    answer::many(cx, &value, &names, &table, when_empty)
}

fn path(words: &Words) -> Outcome<String> {
    let kind = words.kind.as_deref().map(workload_kind).transpose()?;
    let parts = [
        ("kind", kind.map(|kind| kind.singular().to_owned())),
        ("resource", words.resource.as_deref().map(segment)),
        ("status", words.status.clone()),
        ("limit", words.limit.map(|limit| limit.to_string())),
    ];
    let query: Vec<String> = parts.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?))).collect();
    Ok(if query.is_empty() { "/node-moves".to_owned() } else { format!("/node-moves?{}", query.join("&")) })
}

/// Asks for a move to be taken back; what was accepted is carried out by the cluster.
pub(super) async fn cancel(cx: &Context, client: &Client, id: &str) -> Outcome {
    let path = format!("/node-moves/{}/cancel", segment(id));
    let accepted = client.post(&path, &json!({})).await.map_err(|error| listed(error.into()))?;
    let value: Value = accepted.json().unwrap_or_default(); // It was accepted, whatever was said of it.
    cx.ui.note(&format!("`caractrl nodes moves {id} --follow` shows how it is taken back"));
    let id = clean(id);
    answer::one(cx, &value, &format!("move/{id}"), &format!("move/{id} is being taken back"))
}

/// Says where ids come from when there is none like this.
fn listed(failure: Failure) -> Failure {
    if failure.exit == exit::NOT_FOUND { failure.next("`caractrl nodes moves` lists them") } else { failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_the_query() {
        let none = Words { id: None, kind: None, resource: None, status: None, limit: None, follow: false };
        assert_eq!(path(&none), Ok("/node-moves".to_owned()));
        let all = Words {
            kind: Some("db".into()),
            resource: Some("led&ger".into()),
            status: Some("failed".into()),
            limit: Some(7),
            ..none
        };
        let expect = "/node-moves?kind=database&resource=led%26ger&status=failed&limit=7";
        assert_eq!(path(&all), Ok(expect.to_owned()));
        let wrong = Words { kind: Some("node".into()), ..all };
        assert_eq!(path(&wrong).expect_err("no workload").exit, 2);
    }
}
