//! `nodes volumes`: what a node keeps in quarantine, and the removal of one volume.

use cara_proto::rest::{Items, NodeVolume};
use serde_json::Value;

use super::about;
use crate::cli::Volumes as Words;
use crate::client::Client;
use crate::cmd::ask::confirm_deletion;
use crate::cmd::{Context, answer, segment};
use crate::failure::{Failure, Outcome, exit};
use crate::out::{bytes, clean};
use crate::suggest::closest;
use crate::view;

pub(super) async fn run(cx: &Context, client: &Client, words: &Words) -> Outcome {
    let node = words.node.as_str();
    let value: Value = about(client, node, client.get_raw(&super::path(node, "/volumes"))).await?.json()?;
    let items = answer::typed::<Items<NodeVolume>>(&value)?.items;
    if let Some(name) = &words.remove {
        return remove(cx, client, node, find(node, &items, name)?, words.yes).await;
    }
    let names: Vec<String> = items.iter().map(|item| format!("volume/{}", clean(&item.engine_name))).collect();
    let when_empty = format!("{node} keeps no volume in quarantine.");
    answer::many(cx, &value, &names, &view::volumes(&items), &when_empty)
}

/// Says what it is, asks, and has it removed.
async fn remove(cx: &Context, client: &Client, node: &str, item: &NodeVolume, yes: bool) -> Outcome {
    cx.ui.note(&described(node, item));
    confirm_deletion(cx, "volume", &item.engine_name, yes)?;
    let path = super::path(node, &format!("/volumes/{}", segment(&item.engine_name)));
    let done = client.delete(&path).await?;
    // Without a body it is gone already.
    let value = if done.body.is_empty() { serde_json::to_value(item).unwrap_or_default() } else { done.json()? };
    let name = format!("volume/{}", clean(&item.engine_name));
    let text = if done.body.is_empty() { format!("{name} removed") } else { format!("{name} is being removed") };
    answer::one(cx, &value, &name, &text)?;
    cx.ui.note(&format!("It is listed as removing until its agent has done it: caractrl nodes volumes {node}"));
    Ok(())
}

fn find<'a>(node: &str, items: &'a [NodeVolume], name: &str) -> Outcome<&'a NodeVolume> {
    if let Some(item) = items.iter().find(|item| item.engine_name == name && !name.is_empty()) {
        return Ok(item);
    }
    let next = match closest(name, items.iter().map(|item| item.engine_name.as_str())) {
        Some(close) => format!("did you mean {:?}?", clean(close)),
        None => format!("`caractrl nodes volumes {node}` lists what it keeps, by engine name"),
    };
    let what = format!("{node} keeps no volume {name:?} in quarantine");
    Err(Failure::new(exit::NOT_FOUND, "not-found", what).next(next))
}

/// `cara-ledger-data-g4 on w1: volume data of ledger, generation 4 of its data, 2.0 KiB`.
fn described(node: &str, item: &NodeVolume) -> String {
    let NodeVolume { workload, volume, data_generation, engine_name, .. } = item;
    let size = if item.bytes == 0 { "of unknown size".to_owned() } else { bytes(item.bytes) };
    clean(&format!(
        "{engine_name} on {node}: volume {volume} of {workload}, generation {data_generation} of its data, {size}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listed_volume_is_found_and_a_near_one_is_named() {
        let item = NodeVolume { engine_name: "cara-ledger-data-g4".into(), ..NodeVolume::default() };
        let unnamed = NodeVolume::default();
        let items = [unnamed, item.clone()];
        assert_eq!(find("w1", &items, "cara-ledger-data-g4"), Ok(&item));
        let failure = find("w1", &items, "cara-ledger-data-g5").expect_err("there is none");
        assert_eq!((failure.exit, failure.next.as_str()), (3, "did you mean \"cara-ledger-data-g4\"?"));
        let failure = find("w1", &items, "").expect_err("that is no name");
        assert!(failure.next.contains("nodes volumes w1"), "{failure:?}");
    }

    #[test]
    fn what_is_removed_is_described_before() {
        let item = NodeVolume {
            workload: "ledger".into(),
            volume: "data".into(),
            data_generation: 4,
            bytes: 2_048,
            state: "quarantined".into(),
            engine_name: "v1".into(),
        };
        assert_eq!(described("w1", &item), "v1 on w1: volume data of ledger, generation 4 of its data, 2.0 KiB");
        let unknown = described("w1", &NodeVolume { bytes: 0, ..item });
        assert!(unknown.ends_with("of its data, of unknown size"), "{unknown}");
    }
}
