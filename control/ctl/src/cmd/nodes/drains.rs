//! `nodes drains` and `nodes cancel-drain`: looking at a node's drains, and stopping one.

use cara_proto::rest::{DrainView, Items};
use serde_json::{Value, json};

use super::about;
use crate::client::Client;
use crate::cmd::{Context, answer, segment};
use crate::failure::{Failure, Outcome, exit};
use crate::follow;
use crate::out::clean;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, node: &str, follow: bool) -> Outcome {
    let value: Value = about(client, node, client.get_raw(&super::path(node, "/drains"))).await?.json()?;
    let drains = answer::typed::<Items<DrainView>>(&value)?.items;
    if follow {
        let running = drains.iter().find(|drain| drain.status == "running").ok_or_else(|| idle(node))?;
        let value = follow::a_drain(cx, client, &running.id, node).await?;
        return answer::one(cx, &value, &format!("drain/{}", clean(&running.id)), &format!("node/{node} drained"));
    }
    let names: Vec<String> = drains.iter().map(|drain| format!("drain/{}", clean(&drain.id))).collect();
    let when_empty = format!("{node} was never drained. next: `caractrl nodes drain {node}`");
    answer::many(cx, &value, &names, &view::drains::table(&drains, cx.now_ms()), &when_empty)?;
    for item in drains.first().map(|newest| newest.blocked.as_slice()).unwrap_or_default() {
        cx.ui.note(&format!("blocked  {}", follow::blocked(item)));
    }
    Ok(())
}

fn idle(node: &str) -> Failure {
    Failure::new(exit::NOT_FOUND, "no-drain", format!("no drain of {node} runs"))
        .next(format!("`caractrl nodes drains {node}` lists those that are over"))
}

/// Asks for a drain to stop; the move that is under way comes to its end.
pub(super) async fn cancel(cx: &Context, client: &Client, id: &str) -> Outcome {
    let accepted = client.post(&format!("/node-drains/{}/cancel", segment(id)), &json!({})).await.map_err(|error| {
        let failure = Failure::from(error);
        let unknown = failure.exit == exit::NOT_FOUND;
        if unknown { failure.next("`caractrl nodes drains NODE` lists them") } else { failure }
    })?;
    let value: Value = accepted.json().unwrap_or_default(); // It was accepted, whatever was said of it.
    let node = clean(&view::text(&value, "/node_name"));
    if !node.is_empty() {
        cx.ui.note(&format!("{node} stays cordoned; `caractrl nodes uncordon {node}` takes workloads again"));
    }
    let id = clean(id);
    answer::one(cx, &value, &format!("drain/{id}"), &format!("drain/{id} is being stopped"))
}
