//! `cluster rotate-sealing-key`: replaces the sealing key, and tells how far that is and which servers hold it back.

use cara_proto::rest::{SealingKeyRotateRequest, SealingKeyView};

use super::Context;
use super::ask::confirm_replacement;
use crate::cli::RotateSealingKey;
use crate::failure::Outcome;
use crate::wait::{Look, until_told};

const LOOK: Look =
    Look { title: "sealing key", path: "/cluster/sealing-key", next: "caractrl cluster rotate-sealing-key --status" };

pub(super) async fn run(cx: &Context, args: &RotateSealingKey) -> Outcome {
    let client = cx.client()?;
    let view: SealingKeyView = client.get(LOOK.path).await?;
    if args.status {
        return show(cx, &view);
    }
    let key = short(&view.key_id);
    cx.ui.note(&format!(
        "plan: replace sealing key {key}; every server gets the next one before anything is sealed under it"
    ));
    confirm_replacement(cx, "the sealing key", "rotate", args.yes)?;
    let request = SealingKeyRotateRequest { anew: args.anew };
    let begun: SealingKeyView = client.post("/cluster/sealing-key/rotate", &request).await?.json()?;
    if args.detach {
        cx.ui.data(&format!("the sealing key is being replaced; see how far it is: {}", LOOK.next));
        return Ok(());
    }
    let view = until_told(cx, &client, &LOOK, begun, story).await?;
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&view).unwrap_or_default());
    }
    cx.ui.data(&format!("the sealing key is replaced: {}", short(&view.key_id)));
    cx.ui.note("next: if the key before may be in other hands, replace the CA as well: caractrl cluster rotate-ca");
    Ok(())
}

/// How far it is; nothing once it is over.
fn story(view: &SealingKeyView) -> Option<String> {
    let left = view.held_back.len();
    (view.phase != "stable").then(|| format!("{}: {left} to go{}", view.phase, named(view)))
}

/// A cluster has few servers: all of them.
fn named(view: &SealingKeyView) -> String {
    if view.held_back.is_empty() { String::new() } else { format!(" ({})", view.held_back.join(", ")) }
}

fn show(cx: &Context, view: &SealingKeyView) -> Outcome {
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(view).unwrap_or_default());
    }
    let key = short(&view.key_id);
    if view.phase == "stable" {
        cx.ui.data(&format!("sealing key {key}; it is not being replaced"));
        return Ok(());
    }
    let next = short(&view.next_key_id);
    cx.ui.data(&format!("sealing key {key} is being replaced by {next} since {}", view.started_at));
    if !view.held_back.is_empty() {
        cx.ui.data(&format!("servers that do not have it yet: {}", view.held_back.join(", ")));
        cx.ui.note("next: start what is down; remove a server that is gone; --anew when its maker is gone for good");
    }
    Ok(())
}

/// As much of an id as people need to tell it from another.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
