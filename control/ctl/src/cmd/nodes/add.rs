//! `nodes add`: the commands for the new machine, with everything inside.

use cara_proto::rest::{JoinTokenRequest, MintedToken};

use super::super::Context;
use crate::cli::NodesAdd;
use crate::client::Client;
use crate::failure::Outcome;

pub(super) async fn run(cx: &Context, client: &Client, words: NodesAdd) -> Outcome {
    let NodesAdd { name, advertise, ttl, control_plane_addr } = words;
    let request = JoinTokenRequest {
        ttl: None,
        ttl_seconds: ttl.map(|ttl| ttl.as_secs()),
        node_name: name.clone(),
        control_plane_addr,
        node_address: advertise.clone(),
    };
    let minted: MintedToken = client.post("/nodes/join-tokens", &request).await?.json()?;
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&minted).unwrap_or_default());
    }
    notes(cx, &minted);
    cx.ui.note(&format!("A join token for one node, valid until {}. It is shown this once.", minted.expires_at));
    let commands = &minted.join_commands;
    cx.ui.data(&format!(
        "With the binary, on the new machine:\n  {}\n\nWith Docker, on the new machine (the image of \
         deploy/Dockerfile):\n  {}",
        commands.binary, commands.docker
    ));
    cx.ui.note("");
    if advertise.is_none() {
        cx.ui.note("If other nodes can't resolve its host name, add to the command: --advertise ADDRESS");
    }
    cx.ui.note("To check everything first and spend nothing, add: --preflight");
    let watch = format!("caractrl get nodes{} --watch", name.map(|name| format!(" {name}")).unwrap_or_default());
    cx.ui.note(&format!("next: {watch}"));
    Ok(())
}

/// What was not done as asked for.
pub(super) fn notes(cx: &Context, minted: &MintedToken) {
    minted.notes.iter().for_each(|note| cx.ui.note(&format!("note: {note}")));
}
