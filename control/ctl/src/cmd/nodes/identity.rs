//! `nodes reenroll` and `nodes revoke-cert`: brings a node back under a new identity, or shuts it out.

use cara_proto::rest::ReenrollToken;
use serde_json::{Value, json};

use super::about;
use crate::cli::{Reenroll, RevokeCert};
use crate::client::Client;
use crate::cmd::{Context, answer, ask};
use crate::failure::Outcome;
use crate::out::clean;

/// Prints the one command to run on the node's machine.
pub(super) async fn reenroll(cx: &Context, client: &Client, words: &Reenroll) -> Outcome {
    let path = super::path(&words.node, "/reenroll-token");
    let value: Value = about(client, &words.node, client.post(&path, &json!({}))).await?.json()?;
    if cx.ui.structured() {
        return cx.ui.value(&value);
    }
    let token = answer::typed::<ReenrollToken>(&value)?;
    cx.ui.note(&format!(
        "Run this on the machine of {}, until {}. The token in it is shown this once, and works for this node only.",
        clean(&words.node),
        token.expires_at
    ));
    cx.ui.data(&token.agent_command);
    cx.ui.note(
        "\nIf its data folder is elsewhere, change --data-dir; with Docker, put `docker exec cara-agent` in front. A running \
         agent takes the new identity up by itself, another one when it is started.",
    );
    Ok(())
}

/// Shuts a node out, after asking.
pub(super) async fn revoke(cx: &Context, client: &Client, words: &RevokeCert) -> Outcome {
    let node = words.node.as_str();
    let what = format!(
        "Shutting {} out (its session ends, its workloads run on unmanaged; only caractrl nodes reenroll brings it back)",
        clean(node)
    );
    ask::agree(cx, &what, words.yes)?;
    let value: Value =
        about(client, node, client.post(&super::path(node, "/revoke-cert"), &json!({}))).await?.json()?;
    let name = format!("node/{node}");
    answer::one(cx, &value, &name, &format!("{name} is shut out: its certificate is revoked"))
}
