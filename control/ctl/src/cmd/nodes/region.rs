//! `nodes region`: where a node stands.

use cara_proto::rest::NodeRegion;
use serde_json::Value;

use super::super::{Context, get};
use super::{about, path};
use crate::client::Client;
use crate::failure::Outcome;
use crate::kind::Kind;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, node: &str, region: Option<String>, clear: bool) -> Outcome {
    let object: Value = match region.or_else(|| clear.then(String::new)) {
        Some(region) => {
            about(client, node, client.put(&path(node, "/region"), &NodeRegion { region })).await?.json()?
        }
        None => get::object(cx, client, Kind::Node, node).await?,
    };
    if cx.ui.structured() {
        return cx.ui.value(&object);
    }
    cx.ui.data(&crate::out::clean(&view::text(&object, "/status/region")));
    Ok(())
}
