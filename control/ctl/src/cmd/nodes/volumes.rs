//! `nodes volumes`: what a node keeps in quarantine.

use cara_proto::rest::{Items, NodeVolume};
use serde_json::Value;

use super::about;
use crate::client::Client;
use crate::cmd::{Context, answer};
use crate::failure::Outcome;
use crate::out::clean;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, node: &str) -> Outcome {
    let value: Value = about(client, node, client.get_raw(&super::path(node, "/volumes"))).await?.json()?;
    let items = answer::typed::<Items<NodeVolume>>(&value)?.items;
    let names: Vec<String> = items.iter().map(|item| format!("volume/{}", clean(&item.engine_name))).collect();
    let when_empty = format!("{node} keeps no volume in quarantine.");
    answer::many(cx, &value, &names, &view::volumes(&items), &when_empty)
}
