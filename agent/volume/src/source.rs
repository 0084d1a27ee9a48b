//! The source's side of a round: scans, hands the manifest out, and reads chunks for whoever has the manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use cara_proto::volume as pb;

use crate::scan::{ScanProgress, Scanner};
use crate::tree::Tree;
use crate::wire::Pages;
use crate::{Hash, Manifest, VolumeError};

/// What the source keeps between rounds, so that only what changed is read again.
#[derive(Default)]
pub struct SourceSession {
    scanner: Option<Scanner>,
    manifest: Option<Arc<Manifest>>,
    is_final: bool,
    /// Where each chunk of the manifest lies: entry, offset, length.
    index: BTreeMap<Hash, (u32, u64, u32)>,
}

impl SourceSession {
    /// Before the first round.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a round at `now_ns` (nanoseconds since 1970). A target that asks again for a round gets a new scan too.
    pub fn begin(&mut self, round: &pb::Round, now_ns: i64) {
        self.scanner = Some(Scanner::new(self.manifest.clone(), BTreeSet::new(), now_ns));
        self.is_final = round.r#final;
    }

    /// One step of the scan. True: the manifest is there.
    ///
    /// # Errors
    /// When the volume can't be read; in the final round also when something changed under the scan. Begin again.
    pub fn step(&mut self, tree: &dyn Tree) -> Result<bool, VolumeError> {
        let Some(scanner) = &mut self.scanner else { return Ok(true) };
        if !scanner.step(tree)? {
            return Ok(false);
        }
        let manifest = self.scanner.take().expect("it has just made its last step").finish()?;
        if self.is_final && manifest.changed() > 0 {
            return Err(VolumeError::Changed { what: format!("{} files", manifest.changed()) });
        }
        self.index.clear();
        for (entry, found) in (0..).zip(manifest.entries()) {
            for (offset, chunk) in found.pieces() {
                self.index.entry(chunk.hash).or_insert((entry, offset, chunk.length));
            }
        }
        self.manifest = Some(Arc::new(manifest));
        Ok(true)
    }

    /// How far the scan is; nothing when none runs.
    pub fn progress(&self) -> Option<ScanProgress> {
        self.scanner.as_ref().map(Scanner::progress)
    }

    /// A page that only says how far the scan is: to be sent now and then, so that the target doesn't give up.
    pub fn progress_page(&self) -> pb::ManifestPage {
        pb::ManifestPage { scanned_bytes: self.progress().unwrap_or_default().bytes, ..pb::ManifestPage::default() }
    }

    /// What the last scan found.
    pub fn manifest(&self) -> Option<&Arc<Manifest>> {
        self.manifest.as_ref()
    }

    /// The manifest of the round in pages.
    ///
    /// # Errors
    /// While the scan still runs.
    pub fn pages(&self) -> Result<Pages, VolumeError> {
        let manifest = self.manifest.as_ref().filter(|_| self.scanner.is_none());
        manifest
            .cloned()
            .map(Pages::new)
            .ok_or(VolumeError::OutOfTurn("the manifest was asked for before the scan's end"))
    }

    /// The content behind a hash of the manifest, read now and checked: what has changed since the scan is gone.
    ///
    /// # Errors
    /// When the file is there and can't be read.
    pub fn chunk(&self, tree: &dyn Tree, hash: Hash) -> Result<pb::Chunk, VolumeError> {
        let content = self.content(tree, hash)?;
        let gone = content.is_none();
        let (hash, data) = (Bytes::copy_from_slice(&hash.0), content.unwrap_or_default());
        Ok(pb::Chunk { hash, data, gone, more: Vec::new() })
    }

    fn content(&self, tree: &dyn Tree, hash: Hash) -> Result<Option<Bytes>, VolumeError> {
        let Some(manifest) = &self.manifest else { return Ok(None) };
        let Some((entry, offset, length)) = self.index.get(&hash).copied() else { return Ok(None) };
        let mut content = vec![0; length as usize];
        match tree.read(&manifest.entries()[entry as usize].path, offset, &mut content) {
            Ok(read) => Ok((read == content.len() && Hash::of(&content) == hash).then(|| content.into())),
            Err(error) if error.is_absent() || error.source.kind() == std::io::ErrorKind::InvalidInput => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
