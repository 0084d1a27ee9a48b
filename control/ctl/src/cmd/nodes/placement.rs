//! `nodes placement`: where a workload is and may be.

use std::collections::BTreeMap;

use cara_proto::rest::{PlacementReport, PlacementRequest};
use serde_json::Value;

use super::change_labels;
use crate::cli::Placement as Words;
use crate::client::Client;
use crate::cmd::{Context, answer, segment, with_suggestion, workload};
use crate::failure::{Failure, Outcome};
use crate::kind::Kind;
use crate::view::{self, text};

pub(super) async fn run(cx: &Context, client: &Client, words: &Words) -> Outcome {
    let (kind, name) = workload(&words.kind, Some(&words.name))?;
    let path = format!("{}/{}/placement", kind.path(), segment(&name));
    let mut value: Value = match client.get(&path).await {
        Ok(value) => value,
        Err(error) => return Err(with_suggestion(client, kind, &name, Failure::from(error)).await),
    };
    if !words.changes.is_empty() {
        let mut selector = answer::typed::<PlacementReport>(&value)?.node_selector;
        change_labels(&mut selector, &words.changes)?;
        value = client.put(&path, &PlacementRequest { node_selector: selector }).await?.json()?;
    }
    let mut placement: PlacementReport = answer::typed(&value)?;
    if !cx.ui.structured() {
        named(client, &mut placement).await;
    }
    let title = format!("{}/{name}", kind.singular());
    answer::one(cx, &value, &title, &view::placement(&title, &placement))?;
    if !words.changes.is_empty() {
        cx.ui.note(&format!("It stays where it is; `caractrl nodes move {} {name}` moves it.", kind.singular()));
    }
    Ok(())
}

/// People know nodes by name. Without the list of nodes the ids stand there.
async fn named(client: &Client, placement: &mut PlacementReport) {
    let Ok(nodes) = client.get::<Value>(Kind::Node.path()).await else { return };
    let entry = |node: &Value| (text(node, "/metadata/uid"), text(node, "/metadata/name"));
    let names: BTreeMap<String, String> = view::list(&nodes, "/items").iter().map(entry).collect();
    for id in &mut placement.eligible_node_ids {
        if let Some(name) = names.get(id) {
            id.clone_from(name);
        }
    }
}
