//! Which chunks are asked for together, and those that have come.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::delta::{Delta, Source};
use crate::manifest::Manifest;
use crate::{Hash, VolumeError};

/// Bytes asked for at once. They are all held in memory until they are written; at 1 Gbit/s this is 64 ms of the wire.
const BATCH_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Chunks asked for at once: a folder of tiny files shall not take a call for each, and 4096 hashes fit into one message.
const BATCH_CHUNKS_MAX: usize = 4096;
/// Chunks looked at to fill a batch, so that a step stays short when nearly everything is here.
const BATCH_LOOKED_AT_MAX: usize = 65_536;

/// The chunks for the part of the plan from one position to another. A position is (file, chunk) in the plan's order.
#[derive(Default)]
pub(super) struct Batch {
    end: (usize, usize),
    missing: BTreeSet<Hash>,
    /// What came; nothing where the source has it no more.
    got: BTreeMap<Hash, Option<Bytes>>,
}

impl Batch {
    /// Goes on to the next batch when the position has reached the end of this one.
    pub(super) fn plan(&mut self, delta: &Delta, want: &Manifest, from: (usize, usize)) {
        if from < self.end {
            return;
        }
        self.got.clear();
        self.missing.clear();
        let (mut bytes, mut looked_at) = (0, 0);
        let (mut turn, mut piece) = from;
        while let Some(write) = delta.writes.get(turn) {
            let Some(source) = write.pieces.get(piece) else {
                (turn, piece) = (turn + 1, 0);
                looked_at += 1;
                continue;
            };
            let is_full = self.missing.len() >= BATCH_CHUNKS_MAX || bytes >= BATCH_BYTES_MAX;
            if is_full || looked_at >= BATCH_LOOKED_AT_MAX {
                break;
            }
            if *source == Source::Fetch {
                let chunk = want.entries()[write.entry].chunks()[piece];
                self.missing.insert(chunk.hash);
                bytes += u64::from(chunk.length);
            }
            piece += 1;
            looked_at += 1;
        }
        // At least past this position, also when it is the end of a file.
        self.end = (turn, piece).max((from.0, from.1 + 1));
    }

    /// What has to come before the work can go on.
    pub(super) fn missing(&self) -> Vec<Hash> {
        self.missing.iter().copied().collect()
    }

    /// One more.
    pub(super) fn ask(&mut self, hash: Hash) {
        self.missing.insert(hash);
    }

    /// Takes one that was asked for; how many bytes it has.
    pub(super) fn take(&mut self, hash: Hash, content: Option<Bytes>) -> Result<u64, VolumeError> {
        if !self.missing.contains(&hash) {
            return Err(VolumeError::Unasked { hash });
        }
        if content.as_ref().is_some_and(|content| Hash::of(content) != hash) {
            return Err(VolumeError::Corrupt { hash });
        }
        self.missing.remove(&hash);
        let bytes = content.as_ref().map_or(0, |content| content.len() as u64);
        self.got.insert(hash, content);
        Ok(bytes)
    }

    pub(super) fn content(&self, hash: Hash) -> Option<Bytes> {
        self.got.get(&hash).cloned().flatten()
    }

    pub(super) fn is_gone(&self, hash: Hash) -> bool {
        matches!(self.got.get(&hash), Some(None))
    }
}
