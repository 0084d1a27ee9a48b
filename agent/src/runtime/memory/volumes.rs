//! The memory engine's volumes, and the log that running containers write into the managed ones.

use std::collections::BTreeMap;

use cara_volume::scan::Scanner;
use cara_volume::tree::New;
use cara_volume::{MemoryTree, Tree, TreeError, VolumePath};

use super::RuntimeError;
use super::state::not_ours;
use crate::labels::{self, Labels};
use crate::runtime::Object;

/// A log ends there: enough for every test, little enough for a development cluster that runs for weeks.
const LOG_BYTES_MAX: u64 = 256 << 10;

/// All volumes, by name.
#[derive(Default)]
pub(super) struct Volumes {
    by_name: BTreeMap<String, Volume>,
}

struct Volume {
    labels: Labels,
    tree: MemoryTree,
}

impl Volumes {
    pub(super) fn objects(&self, matches: impl Fn(&Labels) -> bool) -> Vec<Object> {
        let matching = self.by_name.iter().filter(|(_, volume)| matches(&volume.labels));
        matching.map(|(name, volume)| Object { name: name.clone(), labels: volume.labels.clone() }).collect()
    }

    pub(super) fn ensure(&mut self, object: &Object) -> Result<(), RuntimeError> {
        let labels = &object.labels;
        let new = || Volume { labels: labels.clone(), tree: MemoryTree::new() };
        let volume = self.by_name.entry(object.name.clone()).or_insert_with(new);
        // The generation of the first maker stays on it, so only the owner is compared.
        if labels::same_owner(&volume.labels, labels) { Ok(()) } else { Err(not_ours("volume", &object.name)) }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Says no when there is no such volume.
    pub(super) fn check(&self, name: &str) -> Result<(), RuntimeError> {
        if self.by_name.contains_key(name) {
            return Ok(());
        }
        let cause = "there is no such volume".to_owned();
        Err(RuntimeError::Failed { operation: "open", subject: name.to_owned(), cause })
    }

    /// The content, stamped with this time when it is changed.
    pub(super) fn tree(&mut self, name: &str, wall_ms: u64) -> Option<&mut MemoryTree> {
        let tree = &mut self.by_name.get_mut(name)?.tree;
        tree.set_now_ns(i64::try_from(wall_ms).unwrap_or(i64::MAX).saturating_mul(1_000_000));
        Some(tree)
    }

    /// Names the content, as a round of a transfer would. None when there is no such volume.
    pub(super) fn digest(&self, name: &str) -> Option<String> {
        let volume = self.by_name.get(name)?;
        let manifest = Scanner::new(None, Default::default(), 0).run(&volume.tree);
        Some(manifest.expect("a small tree in memory can always be read").digest().to_string())
    }

    /// The lines of the log.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let text = self.by_name.get(name).and_then(|volume| read_log(&volume.tree).ok()).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    /// Adds a line to the log of a managed volume.
    pub(super) fn append(&mut self, name: &str, line: &str, wall_ms: u64) {
        let ephemeral = |volume: &Volume| volume.labels.get(labels::EPHEMERAL).is_none_or(|text| text != "false");
        if self.by_name.get(name).is_none_or(ephemeral) {
            return;
        }
        if let Some(tree) = self.tree(name, wall_ms) {
            append_log(tree, line).expect("the log is a file in the root, and nobody else makes one of its name");
        }
    }
}

fn log() -> VolumePath {
    VolumePath::parse(b"log").expect("it is one plain name")
}

fn read_log(tree: &MemoryTree) -> Result<Vec<u8>, TreeError> {
    let size = tree.stat(&log())?.map_or(0, |stat| stat.size);
    let mut text = vec![0; usize::try_from(size).expect("the log is limited")];
    tree.read(&log(), 0, &mut text)?;
    Ok(text)
}

fn append_log(tree: &mut MemoryTree, line: &str) -> Result<(), TreeError> {
    let size = match tree.stat(&log())? {
        Some(stat) => stat.size,
        None => {
            tree.create(&log(), New::File)?;
            0
        }
    };
    if size < LOG_BYTES_MAX { tree.write(&log(), size, line.as_bytes()) } else { Ok(()) }
}
