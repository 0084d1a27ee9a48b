//! `nodes drains` and `nodes cancel-drain`: looking at a node's drains, and stopping one.

use cara_proto::rest::{DrainView, Items};
use serde_json::{Value, json};

use super::about;
use super::move_workload::{said, typed};
use crate::client::Client;
use crate::cmd::{Context, segment};
use crate::failure::{Failure, Outcome, exit};
use crate::follow;
use crate::out::{Format, clean};
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, node: &str, follow: bool) -> Outcome {
    let value: Value = about(client, node, client.get_raw(&super::path(node, "/drains"))).await?.json()?;
    let drains = typed::<Items<DrainView>>(&value)?.items;
    if follow {
        let running = drains.iter().find(|drain| drain.status == "running").ok_or_else(|| idle(node))?;
        let value = follow::a_drain(cx, client, &running.id, node).await?;
        return said(cx, &value, &format!("drain/{}", clean(&running.id)), &format!("node/{node} drained"));
    }
    if cx.ui.structured() {
        return cx.ui.value(&value);
    }
    if cx.ui.format == Format::Name {
        let names: Vec<String> = drains.iter().map(|drain| format!("drain/{}", clean(&drain.id))).collect();
        cx.ui.data(&names.join("\n"));
        return Ok(());
    }
    cx.ui.table(&view::drains::table(&drains, cx.now_ms()));
    for item in drains.first().map(|newest| newest.blocked.as_slice()).unwrap_or_default() {
        cx.ui.note(&format!("blocked  {}", follow::blocked(item)));
    }
    if drains.is_empty() && cx.ui.out_tty {
        cx.ui.note(&format!("{node} was never drained. next: `caractrl nodes drain {node}`"));
    }
    Ok(())
}

fn idle(node: &str) -> Failure {
    Failure::new(exit::NOT_FOUND, "no-drain", format!("no drain of {node} runs"))
        .next(format!("`caractrl nodes drains {node}` lists those that are over"))
}

/// Asks for a drain to stop; the move that is under way comes to its end.
pub(super) async fn cancel(cx: &Context, client: &Client, id: &str) -> Outcome {
    let answer = client.post(&format!("/node-drains/{}/cancel", segment(id)), &json!({})).await.map_err(|error| {
        let failure = Failure::from(error);
        let unknown = failure.exit == exit::NOT_FOUND;
        if unknown { failure.next("`caractrl nodes drains NODE` lists them") } else { failure }
    })?;
    let value: Value = answer.json()?;
    let drain: DrainView = typed(&value)?;
    if !drain.node_name.is_empty() {
        let node = clean(&drain.node_name);
        cx.ui.note(&format!("{node} stays cordoned; `caractrl nodes uncordon {node}` takes workloads again"));
    }
    let id = clean(id);
    said(cx, &value, &format!("drain/{id}"), &format!("drain/{id} is being stopped"))
}
