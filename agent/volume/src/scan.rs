//! A scan: from a tree to its manifest, in steps of bounded work, reading only what may have changed.
//!
//! A file is taken over from the previous manifest when size, times and inode are what they were. That is only safe when a
//! later change would have shown in the change time, so a file whose change time is close to the scan is read again next
//! time. A program that writes through a memory map leaves a new time only at its first write after a sync: therefore a scan
//! begins with a sync, and "close" is counted from there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::chunk::{self, ZERO_CHUNK};
use crate::manifest::{Body, CHUNKS_MAX, ENTRIES_MAX, Entry, Manifest, Seen};
use crate::tree::{Kind, Meta, Stat, Tree, Walk};
use crate::{CHUNK_BYTES_MAX, Chunk, TreeError, VolumeError, VolumePath};

/// A change this close to a scan may be followed by another under the same time; some file systems keep two seconds.
const RACY_NS: i64 = 2_000_000_000;
/// Bytes read in a step: some milliseconds of a disk.
const STEP_BYTES: usize = 1024 * 1024;
/// Chunks of holes named in a step, which costs no reading.
const STEP_ZERO_CHUNKS: usize = 1024;

/// How far a scan is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanProgress {
    /// Bytes of content looked at: read, taken over or found to be a hole.
    pub bytes: u64,
    /// Of these, bytes that were read.
    pub bytes_read: u64,
    /// Entries done.
    pub entries: u64,
}

/// A scan on its way.
pub struct Scanner {
    walk: Walk,
    previous: Option<Arc<Manifest>>,
    /// Entries of the previous manifest up to here sort before where the scan is.
    passed: usize,
    reread: BTreeSet<VolumePath>,
    started_ns: i64,
    synced: bool,
    entries: Vec<Entry>,
    chunks: usize,
    /// The first name of each inode that has several.
    leads: BTreeMap<u64, VolumePath>,
    reading: Option<Reading>,
    buffer: Vec<u8>,
    changed: u64,
    progress: ScanProgress,
}

/// A file that is being read.
struct Reading {
    path: VolumePath,
    stat: Stat,
    chunks: Vec<Chunk>,
    /// Bytes in `chunks`; what lies between it and `read_to` is in the scanner's buffer.
    cut_to: u64,
    read_to: u64,
}

impl Scanner {
    /// A scan that begins at `now_ns` (nanoseconds since 1970, of the clock that stamps the tree), takes over from
    /// `previous` what it can, and reads the files in `reread` whatever their times say.
    pub fn new(previous: Option<Arc<Manifest>>, reread: BTreeSet<VolumePath>, now_ns: i64) -> Self {
        Self {
            walk: Walk::new(),
            previous,
            passed: 0,
            reread,
            started_ns: now_ns,
            synced: false,
            entries: Vec::new(),
            chunks: 0,
            leads: BTreeMap::new(),
            reading: None,
            buffer: Vec::new(),
            changed: 0,
            progress: ScanProgress::default(),
        }
    }

    /// One entry, or a MiB of a file. True: the scan is done.
    ///
    /// # Errors
    /// When the tree can't be read, or has too many entries. What vanishes or changes under the scan is only counted.
    pub fn step(&mut self, tree: &dyn Tree) -> Result<bool, VolumeError> {
        if !self.synced {
            tree.sync()?;
            self.synced = true;
        }
        if let Some(reading) = self.reading.take() {
            self.read_on(tree, reading)?;
            return Ok(false);
        }
        let Some((path, stat)) = self.walk.next(tree)? else { return Ok(true) };
        match self.visit(tree, &path, stat) {
            Err(error) if self.vanished(tree, &path, &error) => self.changed += 1,
            result => result?,
        }
        Ok(false)
    }

    /// How far it is.
    pub fn progress(&self) -> ScanProgress {
        self.progress
    }

    /// What was found, once [`Scanner::step`] has said that it is done.
    ///
    /// # Errors
    /// When folders moved under the scan so that what was seen makes no tree: scan again.
    pub fn finish(self) -> Result<Manifest, VolumeError> {
        Manifest::new(self.entries, self.changed)
    }

    /// All steps at once.
    ///
    /// # Errors
    /// As [`Scanner::step`] and [`Scanner::finish`].
    pub fn run(mut self, tree: &dyn Tree) -> Result<Manifest, VolumeError> {
        while !self.step(tree)? {}
        self.finish()
    }

    fn visit(&mut self, tree: &dyn Tree, path: &VolumePath, stat: Stat) -> Result<(), TreeError> {
        let lead = self.leads.get(&stat.inode).filter(|_| stat.kind != Kind::Folder && stat.links > 1);
        if let Some(lead) = lead {
            let body = Body::HardLink(lead.clone());
            self.entries.push(Entry { path: path.clone(), body, meta: Meta::default(), seen: None });
            return Ok(());
        }
        if let Some(Entry { body, meta, .. }) = self.unchanged(path, &stat) {
            self.progress.bytes += stat.size;
            self.put(path, stat, body, meta);
            return Ok(());
        }
        let body = match stat.kind {
            Kind::File => {
                self.buffer.clear();
                self.reading = Some(Reading { path: path.clone(), stat, chunks: Vec::new(), cut_to: 0, read_to: 0 });
                return Ok(());
            }
            Kind::Socket => return Ok(()),
            Kind::Folder => Body::Folder,
            Kind::Symlink => Body::Symlink(tree.link_target(path)?),
            Kind::Fifo => Body::Fifo,
            Kind::CharDevice => Body::CharDevice(stat.device),
            Kind::BlockDevice => Body::BlockDevice(stat.device),
        };
        self.push(tree, path, stat, body)
    }

    /// The entry as it was found before, when nothing says that it has changed. Any change, of content, owner, mode, time or
    /// attributes, moves the change time, which nobody can set; one that came so soon after the last that both could have
    /// the same time is not relied on.
    fn unchanged(&mut self, path: &VolumePath, stat: &Stat) -> Option<Entry> {
        let entries = self.previous.as_ref()?.entries();
        while entries.get(self.passed).is_some_and(|entry| entry.path < *path) {
            self.passed += 1;
        }
        let entry = entries.get(self.passed).filter(|entry| entry.path == *path)?;
        let seen = entry.seen.as_ref().filter(|seen| !seen.racy)?;
        (seen.stat == *stat && !self.reread.contains(path)).then(|| entry.clone())
    }

    fn push(&mut self, tree: &dyn Tree, path: &VolumePath, stat: Stat, body: Body) -> Result<(), TreeError> {
        let meta = Meta::read(tree, path, &stat)?;
        self.put(path, stat, body, meta);
        Ok(())
    }

    fn put(&mut self, path: &VolumePath, stat: Stat, body: Body, meta: Meta) {
        if stat.kind != Kind::Folder && stat.links > 1 {
            self.leads.insert(stat.inode, path.clone());
        }
        let racy = stat.ctime_ns > self.started_ns.saturating_sub(RACY_NS);
        let entry = Entry { path: path.clone(), body, meta, seen: Some(Seen { stat, racy }) };
        self.chunks += entry.chunks().len();
        self.entries.push(entry);
        self.progress.entries += 1;
    }

    fn read_on(&mut self, tree: &dyn Tree, mut reading: Reading) -> Result<(), VolumeError> {
        self.check_limits(&reading)?;
        let path = reading.path.clone();
        match self.read_step(tree, &mut reading) {
            Ok(false) => self.reading = Some(reading),
            Ok(true) => match self.complete(tree, reading) {
                Err(error) if self.vanished(tree, &path, &error) => self.changed += 1,
                result => result?,
            },
            Err(error) if self.vanished(tree, &path, &error) => self.changed += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn check_limits(&self, reading: &Reading) -> Result<(), VolumeError> {
        if self.entries.len() >= ENTRIES_MAX {
            return Err(VolumeError::TooLarge { what: "entries", limit: ENTRIES_MAX });
        }
        if self.chunks + reading.chunks.len() > CHUNKS_MAX {
            return Err(VolumeError::TooLarge { what: "chunks of content", limit: CHUNKS_MAX });
        }
        Ok(())
    }

    /// True: all of the file is cut.
    fn read_step(&mut self, tree: &dyn Tree, reading: &mut Reading) -> Result<bool, TreeError> {
        if self.buffer.is_empty() && skip_hole(tree, reading, &mut self.progress)? {
            return Ok(false);
        }
        let known = self.buffer.len();
        let left = reading.stat.size - reading.read_to;
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(STEP_BYTES - known);
        self.buffer.resize(known + wanted, 0);
        let read = tree.read(&reading.path, reading.read_to, &mut self.buffer[known..])?;
        self.buffer.truncate(known + read);
        reading.read_to += read as u64;
        self.progress.bytes_read += read as u64;
        self.progress.bytes += read as u64;
        // A file that got shorter ends here; that it changed shows when it is complete.
        let is_end = read < wanted || reading.read_to == reading.stat.size;
        let mut rest = self.buffer.as_slice();
        while rest.len() >= CHUNK_BYTES_MAX || (is_end && !rest.is_empty()) {
            let chunk = chunk::first(rest);
            rest = &rest[chunk.length as usize..];
            reading.chunks.push(chunk);
            reading.cut_to += u64::from(chunk.length);
        }
        let cut = self.buffer.len() - rest.len();
        self.buffer.drain(..cut);
        Ok(is_end)
    }

    fn complete(&mut self, tree: &dyn Tree, reading: Reading) -> Result<(), TreeError> {
        let Reading { path, stat, chunks, cut_to, .. } = reading;
        let now = tree.stat(&path)?.ok_or_else(|| TreeError::new("read", &path, std::io::ErrorKind::NotFound))?;
        let is_torn = now != stat;
        if now.kind != Kind::File {
            return Err(TreeError::new("read", &path, std::io::ErrorKind::NotFound));
        }
        self.push(tree, &path, stat, Body::File { size: cut_to, chunks: chunks.into() })?;
        if is_torn {
            self.changed += 1;
            let seen = self.entries.last_mut().and_then(|entry| entry.seen.as_mut());
            seen.expect("the entry was just pushed, with how it was seen").racy = true;
        }
        Ok(())
    }

    /// Is the error only that the entry is gone, or is something else now?
    fn vanished(&self, tree: &dyn Tree, path: &VolumePath, error: &TreeError) -> bool {
        let is_other = error.source.kind() == std::io::ErrorKind::InvalidInput
            && matches!(tree.stat(path), Ok(stat) if stat.as_ref().is_none_or(|stat| stat.kind != Kind::File));
        !path.is_root() && (error.is_absent() || is_other)
    }
}

/// Names the chunks of a hole that begins where the last cut was, without reading. False: there is something to read.
fn skip_hole(tree: &dyn Tree, reading: &mut Reading, progress: &mut ScanProgress) -> Result<bool, TreeError> {
    let left = reading.stat.size - reading.read_to;
    if left < CHUNK_BYTES_MAX as u64 {
        return Ok(false);
    }
    let data = tree.next_data(&reading.path, reading.read_to)?;
    let data_from = data.map_or(reading.stat.size, |data| data.start.min(reading.stat.size));
    let zero = *ZERO_CHUNK;
    let mut skipped = 0;
    // A cut depends on as much as the longest chunk, so that much must be zeros.
    while data_from - reading.read_to.min(data_from) >= CHUNK_BYTES_MAX as u64 && skipped < STEP_ZERO_CHUNKS {
        reading.chunks.push(zero);
        reading.cut_to += u64::from(zero.length);
        reading.read_to = reading.cut_to;
        progress.bytes += u64::from(zero.length);
        skipped += 1;
    }
    Ok(skipped > 0)
}
