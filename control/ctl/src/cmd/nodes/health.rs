//! `nodes health`: a node's conditions.

use cara_proto::rest::NodeHealth;

use super::super::Context;
use super::{about, path};
use crate::client::Client;
use crate::failure::Outcome;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, node: &str) -> Outcome {
    let answer = about(client, node, client.get_raw(&path(node, "/health"))).await?;
    if cx.ui.structured() {
        return cx.ui.value(&answer.json()?);
    }
    let health: NodeHealth = answer.json()?;
    cx.ui.table(&view::conditions(&health.conditions));
    if health.never_connected {
        cx.ui.note("pending (never connected)");
    }
    cx.ui.note(&format!("what happened before: caractrl nodes events {node}"));
    Ok(())
}
