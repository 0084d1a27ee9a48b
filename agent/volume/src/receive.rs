//! Carrying out a delta on the target's tree, in steps of bounded work.
//!
//! ```text
//! Removals ─► Folders ─► Writes ─► Others ─► Links ─► Metadata ─► Cleanup ─► FolderMetadata ─► Sync ─► Done
//!                         │  ▲
//!                 Fetch ──┘  └── take()
//! ```
//!
//! New entries are made under names in a staging folder in the root and then renamed, so that a name never leads to half an
//! entry, large files that are changed in place apart. After a crash between any two changes the tree holds nothing that a
//! new scan and a new delta don't put right, and what was fetched is found again, also in the staging folder.
//! No content is written whose hash hasn't been checked, wherever it comes from.
//!
//! A chunk that the source has no more is skipped, and the file around it is kept: one page that is always being written must
//! not keep a large table from arriving before the source is stopped. What the file holds in that place (zeros, or what was
//! there) is found by the round's last scan like all that was written, and the next round puts it right.

mod batch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::delta::{Delta, Source};
use crate::manifest::{Body, Entry, Manifest};
use crate::tree::{Kind, Meta, New, Tree, remove_all, write_content};
use crate::{Chunk, Hash, TreeError, VolumeError, VolumePath};
use batch::Batch;

/// Names of the staging folder removed in one step.
const STEP_REMOVALS: usize = 256;
/// Paths of changed files that are remembered; beyond that they are only counted. It is for a person to read.
const CHANGED_NAMES_MAX: usize = 100;

/// The folder in the root in which entries are made. Nothing of a volume may have its name.
pub fn staging() -> VolumePath {
    VolumePath::parse(b".cara-receive").expect("it is one plain name")
}

/// What has to happen next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Call [`Receive::step`] again.
    Step,
    /// Bring these chunks by [`Receive::take`], then step again. Asked again, it names those that are still missing.
    Fetch(Vec<Hash>),
    /// Everything is in place and on disk.
    Done,
}

/// Files that changed at the source in the meantime, so that chunks of them are missing here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChangedFiles {
    /// How many.
    pub count: u64,
    /// The first hundred.
    pub paths: Vec<VolumePath>,
}

/// How far a delta is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveProgress {
    /// Bytes of files that are in place.
    pub bytes_done: u64,
    /// Bytes that came from the peer.
    pub bytes_sent: u64,
    /// Files written.
    pub files: u64,
}

/// Where the work is. Numbers count within the delta's list of the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Names go.
    Removals(usize),
    /// Folders come.
    Folders(usize),
    /// Files are written.
    Writes {
        /// Which file.
        write: usize,
        /// Which of its chunks is next.
        piece: usize,
        /// Where that lies.
        offset: u64,
    },
    /// Symbolic links, pipes and devices come.
    Others(usize),
    /// Hard links come.
    Links(usize),
    /// Owners, modes, times and attributes of what stays.
    Metadata(usize),
    /// The staging folder goes.
    Cleanup,
    /// The same of folders.
    FolderMetadata(usize),
    /// Everything goes to disk.
    Sync,
    /// The end.
    Done,
}

/// A delta that is being carried out.
pub struct Receive {
    have: Arc<Manifest>,
    want: Arc<Manifest>,
    delta: Delta,
    is_final: bool,
    stage: Stage,
    /// Files moved aside: where they are now.
    aside: BTreeMap<usize, VolumePath>,
    /// Number of the next name in the staging folder; nothing until it is known which ones an interrupted round has used.
    next_name: Option<u64>,
    /// The new file that is being written.
    writing: Option<VolumePath>,
    /// A chunk of the file whose turn it is was skipped.
    is_torn: bool,
    batch: Batch,
    dirty: BTreeSet<VolumePath>,
    changed: ChangedFiles,
    progress: ReceiveProgress,
}

impl Receive {
    /// Plans the way from what the target has, staging folder included, to what the source has. In the `is_final` round a
    /// chunk that the source has no more is an error.
    ///
    /// # Errors
    /// As [`Delta::new`].
    pub fn new(have: Arc<Manifest>, want: Arc<Manifest>, is_final: bool) -> Result<Self, VolumeError> {
        let delta = Delta::new(&have, &want)?;
        let progress = ReceiveProgress { bytes_done: delta.kept_bytes, ..ReceiveProgress::default() };
        Ok(Self {
            have,
            want,
            delta,
            is_final,
            stage: Stage::Removals(0),
            aside: BTreeMap::new(),
            next_name: None,
            writing: None,
            is_torn: false,
            batch: Batch::default(),
            dirty: BTreeSet::new(),
            changed: ChangedFiles::default(),
            progress,
        })
    }

    /// One entry, or one chunk.
    ///
    /// # Errors
    /// When the tree refuses, and in the final round when a file has changed. Begin again with a scan.
    pub fn step(&mut self, tree: &mut dyn Tree) -> Result<Next, VolumeError> {
        let want = Arc::clone(&self.want);
        match self.stage {
            Stage::Removals(i) => match self.delta.removals.get(i).copied() {
                Some(h) => self.give_up(tree, h).map(|()| self.stage = Stage::Removals(i + 1))?,
                None => self.stage = Stage::Folders(0),
            },
            Stage::Folders(i) => match self.delta.folders.get(i) {
                Some(w) => {
                    tree.create(&want.entries()[*w].path, New::Folder)?;
                    self.stage = Stage::Folders(i + 1);
                }
                None => self.stage = Stage::Writes { write: 0, piece: 0, offset: 0 },
            },
            Stage::Writes { write, piece, offset } => return self.write_step(tree, write, piece, offset),
            Stage::Others(i) => match self.delta.others.get(i).copied() {
                Some(w) => self.make(tree, &want.entries()[w]).map(|()| self.stage = Stage::Others(i + 1))?,
                None => self.stage = Stage::Links(0),
            },
            Stage::Links(i) => match self.delta.links.get(i).copied() {
                Some(w) => self.make(tree, &want.entries()[w]).map(|()| self.stage = Stage::Links(i + 1))?,
                None => self.stage = Stage::Metadata(0),
            },
            Stage::Metadata(i) => match self.delta.metadata.get(i) {
                Some(w) => {
                    let entry = &want.entries()[*w];
                    tree.set_meta(&entry.path, &entry.meta)?;
                    self.stage = Stage::Metadata(i + 1);
                }
                None => self.stage = Stage::Cleanup,
            },
            Stage::Cleanup => self.clean_up(tree)?,
            Stage::FolderMetadata(i) => match self.delta.folders_last.get(i) {
                Some(w) => {
                    set_meta_if_other(tree, &want.entries()[*w])?;
                    self.stage = Stage::FolderMetadata(i + 1);
                }
                None => self.stage = Stage::Sync,
            },
            Stage::Sync => {
                tree.sync()?;
                self.stage = Stage::Done;
            }
            Stage::Done => return Ok(Next::Done),
        }
        Ok(Next::Step)
    }

    /// A chunk from the source; no content: it has it no more.
    ///
    /// # Errors
    /// Content with another hash is refused and still missing afterwards; so is what wasn't asked for.
    pub fn take(&mut self, hash: Hash, content: Option<Bytes>) -> Result<(), VolumeError> {
        self.progress.bytes_sent += self.batch.take(hash, content)?;
        Ok(())
    }

    /// How far it is.
    pub fn progress(&self) -> ReceiveProgress {
        self.progress
    }

    /// Where it is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The plan.
    pub fn delta(&self) -> &Delta {
        &self.delta
    }

    /// Afterwards: the files whose content was written, and those of which chunks were left for the next round.
    pub fn into_outcome(self) -> (BTreeSet<VolumePath>, ChangedFiles) {
        (self.dirty, self.changed)
    }

    /// Removes an entry, or moves it aside when its content is still needed.
    fn give_up(&mut self, tree: &mut dyn Tree, h: usize) -> Result<(), VolumeError> {
        let path = self.have.entries()[h].path.clone();
        if self.delta.aside.contains(&h) {
            let aside = self.staged_name(tree)?;
            tree.rename(&path, &aside)?;
            self.aside.insert(h, aside);
        } else {
            tree.remove(&path)?;
        }
        Ok(())
    }

    fn write_step(&mut self, tree: &mut dyn Tree, turn: usize, piece: usize, offset: u64) -> Result<Next, VolumeError> {
        if turn == self.delta.writes.len() {
            self.stage = Stage::Others(0);
            return Ok(Next::Step);
        }
        self.batch.plan(&self.delta, &self.want, (turn, piece));
        let missing = self.batch.missing();
        if !missing.is_empty() {
            return Ok(Next::Fetch(missing));
        }
        let want = Arc::clone(&self.want);
        let (w, in_place) = (self.delta.writes[turn].entry, self.delta.writes[turn].in_place);
        let entry = &want.entries()[w];
        if !in_place && self.writing.is_none() {
            let name = self.staged_name(tree)?;
            tree.create(&name, New::File)?;
            tree.set_size(&name, entry.size())?;
            self.writing = Some(name);
        }
        let Some(chunk) = entry.chunks().get(piece).copied() else {
            self.complete(tree, turn, entry)?;
            self.stage = Stage::Writes { write: turn + 1, piece: 0, offset: 0 };
            return Ok(Next::Step);
        };
        let source = self.delta.writes[turn].pieces[piece];
        let after = Stage::Writes { write: turn, piece: piece + 1, offset: offset + u64::from(chunk.length) };
        let Some(content) = self.content(tree, w, source, chunk)? else {
            if self.batch.is_gone(chunk.hash) {
                self.leave_for_next_round(entry)?;
                self.stage = after;
            } else {
                // It was here when the tree was scanned; now it must come from the source like any other.
                self.batch.ask(chunk.hash);
            }
            return Ok(Next::Step);
        };
        let file = self.writing.as_ref().unwrap_or(&entry.path);
        if in_place && source != Source::Here {
            self.dirty.insert(entry.path.clone());
        }
        if source != Source::Here {
            write_content(tree, file, offset, &content, !in_place)?;
        }
        self.progress.bytes_done += u64::from(chunk.length);
        self.stage = after;
        Ok(Next::Step)
    }

    /// The content of a chunk, checked. Nothing: it has to be fetched, or can't be.
    fn content(&self, tree: &dyn Tree, w: usize, source: Source, chunk: Chunk) -> Result<Option<Bytes>, VolumeError> {
        if let Some(content) = self.batch.content(chunk.hash) {
            return Ok(Some(content));
        }
        let (path, offset) = match source {
            Source::Here => return Ok(Some(Bytes::new())),
            Source::Zeros => return Ok(Some(vec![0; chunk.length as usize].into())),
            Source::Fetch => return Ok(None),
            Source::Old { entry, offset } => {
                let entry = entry as usize;
                (self.aside.get(&entry).unwrap_or(&self.have.entries()[entry].path), offset)
            }
            Source::New { entry, offset } => {
                let entry = entry as usize;
                let path = &self.want.entries()[entry].path;
                (self.writing.as_ref().filter(|_| entry == w).unwrap_or(path), offset)
            }
        };
        let mut content = vec![0; chunk.length as usize];
        // Where a chunk was skipped, or changed in place before, there is something else now, or no file: no error.
        let is_same = match tree.read(path, offset, &mut content) {
            Ok(read) => read == content.len() && Hash::of(&content) == chunk.hash,
            Err(error) if error.is_absent() || error.source.kind() == std::io::ErrorKind::InvalidInput => false,
            Err(error) => return Err(error.into()),
        };
        Ok(is_same.then(|| content.into()))
    }

    fn complete(&mut self, tree: &mut dyn Tree, turn: usize, entry: &Entry) -> Result<(), VolumeError> {
        self.dirty.insert(entry.path.clone());
        self.progress.files += 1;
        self.note_torn(entry);
        let Some(file) = self.writing.take() else {
            tree.set_size(&entry.path, entry.size())?;
            return Ok(tree.set_meta(&entry.path, &entry.meta)?);
        };
        tree.set_meta(&file, &entry.meta)?;
        if let Some(old) = self.delta.writes[turn].replaces.filter(|old| self.delta.aside.contains(old)) {
            self.give_up(tree, old)?;
        }
        Ok(tree.rename(&file, &entry.path)?)
    }

    /// Skips a chunk that the source has no more.
    fn leave_for_next_round(&mut self, entry: &Entry) -> Result<(), VolumeError> {
        if self.is_final {
            return Err(VolumeError::Changed { what: entry.path.to_string() });
        }
        self.is_torn = true;
        Ok(())
    }

    /// Counts the file that is complete now, when chunks of it were skipped.
    fn note_torn(&mut self, entry: &Entry) {
        if !std::mem::take(&mut self.is_torn) {
            return;
        }
        self.changed.count += 1;
        if self.changed.paths.len() < CHANGED_NAMES_MAX {
            self.changed.paths.push(entry.path.clone());
        }
    }

    /// Makes what isn't a file, under a name of the staging folder, and renames it.
    fn make(&mut self, tree: &mut dyn Tree, entry: &Entry) -> Result<(), VolumeError> {
        let new = match &entry.body {
            Body::Symlink(target) => New::Symlink(target),
            Body::Fifo => New::Fifo,
            Body::CharDevice(device) => New::CharDevice(*device),
            Body::BlockDevice(device) => New::BlockDevice(*device),
            Body::HardLink(to) => New::HardLink(to),
            Body::Folder | Body::File { .. } => unreachable!("the delta lists folders and files apart"),
        };
        let name = self.staged_name(tree)?;
        tree.create(&name, new)?;
        if !matches!(entry.body, Body::HardLink(_)) {
            tree.set_meta(&name, &entry.meta)?;
        }
        Ok(tree.rename(&name, &entry.path)?)
    }

    /// A name in the staging folder that nothing has.
    fn staged_name(&mut self, tree: &mut dyn Tree) -> Result<VolumePath, VolumeError> {
        let staging = staging();
        let number = match self.next_name {
            Some(number) => number,
            None => self.open_staging(tree, &staging)?,
        };
        self.next_name = Some(number + 1);
        Ok(staging.join(format!("{number:016}").as_bytes())?)
    }

    /// Makes the staging folder when there is none; the first number above those that an interrupted round has used.
    fn open_staging(&self, tree: &mut dyn Tree, staging: &VolumePath) -> Result<u64, VolumeError> {
        match tree.stat(staging)? {
            Some(stat) if stat.kind == Kind::Folder => {}
            Some(_) => {
                tree.remove(staging)?;
                tree.create(staging, New::Folder)?;
            }
            None => tree.create(staging, New::Folder)?,
        }
        let leftovers = self.have.entries().iter().filter(|entry| entry.path.is_within(staging));
        let number = |entry: &Entry| std::str::from_utf8(entry.path.split()?.1).ok()?.parse::<u64>().ok();
        Ok(leftovers.filter_map(number).max().map_or(0, |number| number.saturating_add(1)))
    }

    fn clean_up(&mut self, tree: &mut dyn Tree) -> Result<(), VolumeError> {
        let staging = staging();
        match tree.stat(&staging)? {
            None => self.stage = Stage::FolderMetadata(0),
            Some(stat) if stat.kind == Kind::Folder => {
                let names = tree.list(&staging, b"", STEP_REMOVALS)?;
                for name in &names {
                    remove_all(tree, &staging.join(name)?)?;
                }
                if names.is_empty() {
                    tree.remove(&staging)?;
                }
            }
            Some(_) => tree.remove(&staging)?,
        }
        Ok(())
    }
}

fn set_meta_if_other(tree: &mut dyn Tree, entry: &Entry) -> Result<(), TreeError> {
    let Some(stat) = tree.stat(&entry.path)? else {
        return Err(TreeError::new("find", &entry.path, std::io::ErrorKind::NotFound));
    };
    if Meta::read(tree, &entry.path, &stat)? != entry.meta {
        tree.set_meta(&entry.path, &entry.meta)?;
    }
    Ok(())
}
