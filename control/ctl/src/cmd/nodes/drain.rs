//! `nodes drain`: plan, question, and every move until the node is empty.

use cara_proto::rest::{DrainPlan, DrainView};
use serde_json::{Value, json};

use crate::cli::Drain as Words;
use crate::client::Client;
use crate::cmd::ask::agree;
use crate::cmd::{Context, answer, segment, with_suggestion};
use crate::failure::{Failure, Outcome};
use crate::follow;
use crate::kind::Kind;
use crate::out::clean;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, words: &Words) -> Outcome {
    let node = &words.node;
    let planned = ask_for(client, words, true).await?;
    let text = view::drains::plan(node, &answer::typed::<DrainPlan>(&planned)?);
    if words.dry_run {
        return answer::one(cx, &planned, &format!("node/{node}"), &text);
    }
    cx.ui.note(text.trim_end());
    agree(cx, &format!("the drain of {node}"), words.yes)?;
    let started = ask_for(client, words, false).await?;
    let begun: DrainView = answer::typed(&started)?;
    let id = clean(&begun.id);
    if words.detach {
        cx.ui.note(&format!(
            "{node} is being drained; `caractrl nodes drains {node}` shows it, `caractrl nodes cancel-drain {id}` stops it"
        ));
        return answer::one(cx, &started, &format!("drain/{id}"), &format!("drain/{id} started"));
    }
    let value = follow::a_drain(cx, client, &begun.id, node).await?;
    answer::one(cx, &value, &format!("drain/{id}"), &format!("node/{node} drained"))
}

async fn ask_for(client: &Client, words: &Words, dry_run: bool) -> Outcome<Value> {
    match client.post(&path(words, dry_run), &json!({})).await {
        Ok(answer) => Ok(answer.json()?),
        Err(error) => Err(suggested(client, words, error.into()).await),
    }
}

/// Whichever of the two nodes the refusal is about.
async fn suggested(client: &Client, words: &Words, failure: Failure) -> Failure {
    let target = words.target.as_deref().filter(|target| failure.what.contains(*target));
    let unknown = target.unwrap_or(&words.node);
    with_suggestion(client, Kind::Node, unknown, failure).await
}

fn path(words: &Words, dry_run: bool) -> String {
    let target = words.target.as_deref().map(|target| format!("target_node_id={}", segment(target)));
    let query: Vec<String> = target.into_iter().chain(dry_run.then(|| "dry_run=true".to_owned())).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    super::path(&words.node, &format!("/drain{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_and_the_dry_run_are_in_the_query() {
        let words = |target: Option<&str>| Words {
            node: "w1".into(),
            target: target.map(str::to_owned),
            yes: false,
            detach: false,
            wait: false,
            dry_run: false,
        };
        assert_eq!(path(&words(None), false), "/nodes/w1/drain");
        assert_eq!(path(&words(None), true), "/nodes/w1/drain?dry_run=true");
        assert_eq!(path(&words(Some("w2")), true), "/nodes/w1/drain?target_node_id=w2&dry_run=true");
    }
}
