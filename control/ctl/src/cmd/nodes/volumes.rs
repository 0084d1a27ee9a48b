//! `nodes volumes`: what a node keeps in quarantine.

use cara_proto::rest::{Items, NodeVolume};
use serde_json::Value;

use super::about;
use super::move_workload::typed;
use crate::client::Client;
use crate::cmd::Context;
use crate::failure::Outcome;
use crate::out::{Format, clean};
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, node: &str) -> Outcome {
    let value: Value = about(client, node, client.get_raw(&super::path(node, "/volumes"))).await?.json()?;
    if cx.ui.structured() {
        return cx.ui.value(&value);
    }
    let items: Vec<NodeVolume> = typed::<Items<NodeVolume>>(&value)?.items;
    if cx.ui.format == Format::Name {
        let names: Vec<String> = items.iter().map(|item| format!("volume/{}", clean(&item.engine_name))).collect();
        cx.ui.data(&names.join("\n"));
        return Ok(());
    }
    cx.ui.table(&view::volumes(&items));
    if items.is_empty() && cx.ui.out_tty {
        cx.ui.note(&format!("{node} keeps no volume in quarantine."));
    }
    Ok(())
}
