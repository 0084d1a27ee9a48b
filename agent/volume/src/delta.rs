//! The delta: from what the target has to what it shall have, as an ordered plan. Pure.
//!
//! Order: names that are in the way or no longer wanted go; folders come; files are written one after the other; then
//! symbolic links and devices, hard links, metadata of what stays; folders get theirs at the very end, because everything
//! before changes their times. Content that a later file needs is moved aside when its name goes.

use std::collections::{BTreeMap, BTreeSet};

use crate::chunk::ZERO_CHUNK;
use crate::manifest::{Body, Entry, Manifest};
use crate::receive::staging;
use crate::{Hash, VolumeError, VolumePath};

/// A smaller file is written anew: a file that is half changed after a crash is worth avoiding while it is cheap.
const IN_PLACE_BYTES_MIN: u64 = 1024 * 1024;

/// Where a chunk of a file comes from. Entries are counted in the manifest that is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// It lies where it shall be.
    Here,
    /// Zeros, which need no source.
    Zeros,
    /// In a file that the target has.
    Old {
        /// Of the target's manifest.
        entry: u32,
        /// Bytes.
        offset: u64,
    },
    /// In a file, or an earlier part of one, that is written before.
    New {
        /// Of the source's manifest.
        entry: u32,
        /// Bytes.
        offset: u64,
    },
    /// Nowhere here.
    Fetch,
}

/// A file to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// In the source's manifest.
    pub entry: usize,
    /// The file of the target, in its manifest, that has the name so far.
    pub replaces: Option<usize>,
    /// Only the chunks that differ are written, into the file that is there. Otherwise a new file is, and then renamed.
    pub in_place: bool,
    /// One for each chunk.
    pub pieces: Vec<Source>,
}

/// The plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delta {
    /// Entries of the target that go, each folder after what is in it.
    pub removals: Vec<usize>,
    /// Folders of the source to be made, each before what is in it.
    pub folders: Vec<usize>,
    /// Files, in this order.
    pub writes: Vec<Write>,
    /// Symbolic links, pipes and devices of the source to be made.
    pub others: Vec<usize>,
    /// Hard links of the source to be made.
    pub links: Vec<usize>,
    /// Entries of the source whose content is here, but not their owner, mode, time or attributes.
    pub metadata: Vec<usize>,
    /// All folders of the source, each after what is in it: what is done in a folder changes its time.
    pub folders_last: Vec<usize>,
    /// Files of the target that lose their name before they were needed for the last time.
    pub aside: BTreeSet<usize>,
    /// Bytes that must be fetched, each chunk counted once.
    pub fetch_bytes: u64,
    /// Bytes of the source's files that needn't be touched.
    pub kept_bytes: u64,
}

impl Delta {
    /// The plan that leads from `have`, with whatever an interrupted round has left, to `want`.
    ///
    /// # Errors
    /// When the source has an entry under the name that rounds keep for themselves.
    pub fn new(have: &Manifest, want: &Manifest) -> Result<Self, VolumeError> {
        if want.find(&staging()).is_some() {
            return Err(VolumeError::Manifest(format!("the name {} is kept for copying; rename it", staging())));
        }
        let mut delta = Self::default();
        delta.compare(have.entries(), want.entries());
        let folders = want.entries().iter().enumerate().filter(|(_, entry)| entry.body == Body::Folder);
        delta.folders_last = folders.map(|(w, _)| w).rev().collect();
        delta.find_sources(have, want);
        delta.choose_in_place(have, want);
        delta.find_aside(have);
        Ok(delta)
    }

    /// Walks both lists at once.
    fn compare(&mut self, have: &[Entry], want: &[Entry]) {
        let staging = staging();
        let (mut h, mut w) = (0, 0);
        while h < have.len() || w < want.len() {
            let (old, new) = (have.get(h), want.get(w));
            let order = match (old, new) {
                (Some(old), Some(new)) => old.path.cmp(&new.path),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, _) => std::cmp::Ordering::Greater,
            };
            match (order, old, new) {
                (std::cmp::Ordering::Less, Some(old), _) => {
                    // Leftovers stay until the end of the round: they may hold what is needed.
                    if !old.path.is_within(&staging) {
                        self.removals.push(h);
                    }
                }
                (std::cmp::Ordering::Equal, Some(old), Some(new)) => self.compare_entry((h, old), (w, new)),
                (_, _, Some(new)) => self.add(w, new, None),
                (_, _, None) => unreachable!("one of the lists isn't at its end"),
            }
            h += usize::from(order.is_le());
            w += usize::from(order.is_ge());
        }
        self.removals.reverse();
        self.relink(want);
    }

    fn compare_entry(&mut self, (h, old): (usize, &Entry), (w, new): (usize, &Entry)) {
        let is_folder = |entry: &Entry| entry.body == Body::Folder;
        if old.body == new.body {
            self.kept_bytes += new.size();
            // Folders get their metadata at the end, whatever they had before.
            if old.meta != new.meta && !is_folder(new) {
                self.metadata.push(w);
            }
            return;
        }
        if is_folder(old) || is_folder(new) {
            self.removals.push(h);
            return self.add(w, new, None);
        }
        self.add(w, new, matches!(old.body, Body::File { .. }).then_some(h));
    }

    fn add(&mut self, w: usize, new: &Entry, replaces: Option<usize>) {
        match &new.body {
            Body::Folder => self.folders.push(w),
            Body::File { .. } => self.writes.push(Write { entry: w, replaces, in_place: false, pieces: Vec::new() }),
            Body::HardLink(_) => self.links.push(w),
            Body::Symlink(_) | Body::Fifo | Body::CharDevice(_) | Body::BlockDevice(_) => self.others.push(w),
        }
    }

    /// A hard link whose file is made anew is made anew as well, although its entry says the same as before.
    fn relink(&mut self, want: &[Entry]) {
        let made: BTreeSet<&VolumePath> = self
            .writes
            .iter()
            .map(|write| write.entry)
            .chain(self.others.iter().copied())
            .map(|w| &want[w].path)
            .collect();
        let links = want.iter().enumerate().filter(|(_, entry)| match &entry.body {
            Body::HardLink(to) => made.contains(to),
            Body::Folder
            | Body::File { .. }
            | Body::Symlink(_)
            | Body::Fifo
            | Body::CharDevice(_)
            | Body::BlockDevice(_) => false,
        });
        let all: BTreeSet<usize> = links.map(|(w, _)| w).chain(self.links.iter().copied()).collect();
        self.links = all.into_iter().collect();
    }

    fn find_sources(&mut self, have: &Manifest, want: &Manifest) {
        if self.writes.is_empty() {
            return; // The commonest final round of a volume of many files.
        }
        let mut known: BTreeMap<Hash, Source> = BTreeMap::new();
        for (entry, old) in (0..).zip(have.entries()) {
            for (offset, chunk) in old.pieces() {
                known.entry(chunk.hash).or_insert(Source::Old { entry, offset });
            }
        }
        for write in &mut self.writes {
            let new = &want.entries()[write.entry];
            let mut here = write.replaces.map(|h| have.entries()[h].pieces().peekable());
            for (offset, chunk) in new.pieces() {
                let is_here = here.as_mut().is_some_and(|here| {
                    while here.next_if(|(old_offset, _)| *old_offset < offset).is_some() {}
                    here.next_if(|old| *old == (offset, chunk)).is_some()
                });
                let source = if is_here {
                    Source::Here
                } else if chunk == *ZERO_CHUNK {
                    Source::Zeros
                } else {
                    known.get(&chunk.hash).copied().unwrap_or(Source::Fetch)
                };
                if source == Source::Fetch {
                    let entry = u32::try_from(write.entry).expect("a manifest has at most two million entries");
                    known.insert(chunk.hash, Source::New { entry, offset });
                    self.fetch_bytes += u64::from(chunk.length);
                }
                write.pieces.push(source);
            }
        }
    }

    /// A large file of which little has changed is changed in place: in the final round, the time that the workload stands
    /// still must go by the change, not by the size of a database. Not where content moves within the file, which would be
    /// overwritten before it is used, and not where the file has other names that may not change with it.
    fn choose_in_place(&mut self, have: &Manifest, want: &Manifest) {
        for write in &mut self.writes {
            let Some(old) = write.replaces.map(|h| (h, &have.entries()[h])) else { continue };
            let new = &want.entries()[write.entry];
            let has_one_name = old.1.seen.as_ref().is_some_and(|seen| seen.stat.links == 1);
            let moves_within = write.pieces.iter().any(|source| match source {
                Source::Old { entry, .. } => *entry as usize == old.0,
                Source::Here | Source::Zeros | Source::New { .. } | Source::Fetch => false,
            });
            let stays: u64 = std::iter::zip(&write.pieces, new.chunks())
                .filter(|(source, _)| **source == Source::Here)
                .map(|(_, chunk)| u64::from(chunk.length))
                .sum();
            let size = new.size();
            write.in_place = has_one_name && !moves_within && size >= IN_PLACE_BYTES_MIN && stays >= size / 2;
            if !write.in_place {
                // In a new file nothing is there yet.
                let entry = u32::try_from(old.0).expect("a manifest has at most two million entries");
                for ((offset, _), source) in new.pieces().zip(&mut write.pieces) {
                    if *source == Source::Here {
                        *source = Source::Old { entry, offset };
                    }
                }
            }
        }
    }

    fn find_aside(&mut self, have: &Manifest) {
        let mut last_use: BTreeMap<usize, usize> = BTreeMap::new();
        for (turn, write) in self.writes.iter().enumerate() {
            for source in &write.pieces {
                if let Source::Old { entry, .. } = source {
                    last_use.insert(*entry as usize, turn);
                }
            }
        }
        let removed = self.removals.iter().filter(|h| last_use.contains_key(h)).copied();
        let replaced = self.writes.iter().enumerate().filter_map(|(turn, write)| {
            let old = write.replaces.filter(|_| !write.in_place)?;
            last_use.get(&old).is_some_and(|last| *last > turn).then_some(old)
        });
        self.aside = removed.chain(replaced).collect();
        debug_assert!(self.aside.iter().all(|h| matches!(have.entries()[*h].body, Body::File { .. })));
    }
}
