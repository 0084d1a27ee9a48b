//! `cluster rotate-ca`: replaces the CA, and tells how far that is and who holds it back.

use cara_proto::rest::{CaRotateRequest, CaView};

use super::ask::confirm_replacement;
use super::{Context, sealing_key};
use crate::cli::ClusterCommand;
use crate::failure::Outcome;
use crate::out::Table;
use crate::wait::{Look, until_told};

/// Names that fit into a line of progress.
const NAMED: usize = 4;
const LOOK: Look = Look { title: "ca", path: "/cluster/ca", next: "caractrl cluster rotate-ca --status" };

pub(super) async fn run(cx: &Context, command: ClusterCommand) -> Outcome {
    let args = match command {
        ClusterCommand::RotateCa(args) => args,
        ClusterCommand::RotateSealingKey(args) => return sealing_key::run(cx, &args).await,
    };
    let client = cx.client()?;
    let view: CaView = client.get(LOOK.path).await?;
    if args.status {
        return show(cx, &view);
    }
    if args.force {
        cx.ui.note(&format!("plan: go on without {}", names(&view, usize::MAX)));
    } else {
        cx.ui.note(&format!(
            "plan: replace CA {} by CA {}; every certificate is renewed",
            view.number,
            view.number + 1
        ));
    }
    // Without nodes is what can't be taken back: they must enrol again.
    let word = if args.force { "force" } else { "rotate" };
    confirm_replacement(cx, "the CA", word, args.yes)?;
    let request = CaRotateRequest { force: args.force };
    let begun: CaView = client.post("/cluster/ca/rotate", &request).await?.json()?;
    if args.detach {
        cx.ui.data(&format!("the CA is being replaced; see how far it is: {}", LOOK.next));
        return Ok(());
    }
    let view = until_told(cx, &client, &LOOK, begun, story).await?;
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&view).unwrap_or_default());
    }
    cx.ui.data(&format!("the CA is replaced: CA {}", view.number));
    cx.ui.note(&pin(&view));
    Ok(())
}

/// How far it is; nothing once it is over.
fn story(view: &CaView) -> Option<String> {
    let left = view.held_back.len();
    (view.phase != "stable").then(|| format!("{}: {left} to go{}", view.phase, named(view)))
}

fn named(view: &CaView) -> String {
    if view.held_back.is_empty() { String::new() } else { format!(" ({})", names(view, NAMED)) }
}

fn names(view: &CaView, most: usize) -> String {
    let all: Vec<_> = view.held_back.iter().map(|of| format!("{}/{}", of.kind, of.name)).collect();
    match all.len() {
        0 => "nobody".to_owned(),
        count if count > most => format!("{} and {} more", all[..most].join(", "), count - most),
        _ => all.join(", "),
    }
}

fn show(cx: &Context, view: &CaView) -> Outcome {
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(view).unwrap_or_default());
    }
    if view.phase == "stable" {
        cx.ui.data(&format!("CA {} ({}); it is not being replaced", view.number, view.fingerprint));
        if !view.former_fingerprints.is_empty() {
            cx.ui.note(&pin(view));
        }
        return Ok(());
    }
    cx.ui.data(&format!("CA {} is being replaced since {}: {}", view.number, view.started_at, view.phase));
    if view.held_back.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["KIND", "NAME", "WAITS FOR"]);
    for of in &view.held_back {
        table.row(vec![of.kind.clone(), of.name.clone(), waits_for(&of.lack).to_owned()]);
    }
    cx.ui.table(&table);
    cx.ui.note("next: start what is down; go on without nodes with --force; remove a server that is gone");
    Ok(())
}

fn waits_for(lack: &str) -> &str {
    match lack {
        "trust" => "its word that it trusts the next CA",
        "certificate" => "a certificate of the next CA",
        "use" => "its use of the renewed certificate",
        other => other,
    }
}

/// How a context is brought to the new CA.
fn pin(view: &CaView) -> String {
    format!("next: where contexts pin the CA before: caractrl ctx set NAME --ca-fingerprint {}", view.fingerprint)
}
