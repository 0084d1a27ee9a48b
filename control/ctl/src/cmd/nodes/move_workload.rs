//! `nodes move`: plan, question, move, and its life to the end.

use cara_proto::rest::{MovePlan, MoveRequest, MoveView};
use serde_json::Value;

use crate::cli::Move as Words;
use crate::client::Client;
use crate::cmd::ask::agree;
use crate::cmd::{Context, answer, segment, with_suggestion, workload};
use crate::failure::{Failure, Outcome};
use crate::follow;
use crate::kind::Kind;
use crate::out::clean;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, words: &Words) -> Outcome {
    let (kind, name) = workload(&words.kind, words.name.as_deref())?;
    let title = format!("{}/{name}", kind.singular());
    let planned = ask_for(client, kind, &name, words, true).await?;
    let plan: MovePlan = answer::typed(&planned)?;
    let text = view::moves::plan(&title, &plan);
    if words.dry_run {
        return answer::one(cx, &planned, &title, &text);
    }
    cx.ui.note(text.trim_end());
    agree(cx, &format!("the move of {title} to {}", clean(&plan.to_node)), words.yes)?;
    let started = ask_for(client, kind, &name, words, false).await?;
    let begun: MoveView = answer::typed(&started)?;
    if begun.to_node != plan.to_node {
        let (now, before) = (clean(&begun.to_node), clean(&plan.to_node));
        cx.ui.note(&format!("note: it goes to {now}, not {before}: the cluster has changed since the plan"));
    }
    let id = clean(&begun.id);
    if words.detach {
        cx.ui.note(&format!(
            "{title} is being moved; `caractrl nodes moves {id}` shows it, `caractrl nodes cancel-move {id}` takes it back"
        ));
        return answer::one(cx, &started, &format!("move/{id}"), &format!("move/{id} started"));
    }
    let value = follow::a_move(cx, client, &begun.id, &title).await?;
    answer::one(cx, &value, &format!("move/{id}"), &format!("{title} moved to {}", clean(&begun.to_node)))
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
        shutdown_delay_s: words.shutdown_delay,
        dry_run,
    }
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
            shutdown_delay: None,
            dry_run: false,
        }
    }

    #[test]
    fn what_is_not_said_is_left_to_the_server() {
        assert_eq!(body(&words(), false), MoveRequest::default());
        let all = Words {
            to: Some("w2".into()),
            verify_timeout: Some(300),
            attempts: Some(5),
            interval: Some(3),
            shutdown_delay: Some(9),
            ..words()
        };
        let expect = MoveRequest {
            node_id: "w2".into(),
            verify_timeout_s: Some(300),
            attempts: Some(5),
            interval_s: Some(3),
            shutdown_delay_s: Some(9),
            dry_run: true,
        };
        assert_eq!(body(&all, true), expect);
    }
}
