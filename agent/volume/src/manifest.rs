//! The manifest: all that a volume holds, sorted, each file as a list of chunk hashes; and its digest.
//!
//! Two trees are equal exactly when their digests are. How a file's zeros lie on disk (holes or not) doesn't count, nor do
//! inodes and change times, which no copy could keep.

use std::sync::Arc;

use crate::tree::{Meta, Stat};
use crate::{CHUNK_BYTES_MAX, Chunk, Hash, VolumeError, VolumePath};

/// Entries of a volume. An entry takes about 200 bytes, on both nodes: 400 MB at the very most.
pub const ENTRIES_MAX: usize = 2_000_000;
/// Chunks of a volume: 1 TiB at the average size. A chunk takes 36 bytes: 600 MB at the very most.
pub const CHUNKS_MAX: usize = 16 * 1024 * 1024;

/// One name in a volume.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where.
    pub path: VolumePath,
    /// What it is, content included.
    pub body: Body,
    /// Owner, mode, time, attributes; all default for a hard link, where the file has them.
    pub meta: Meta,
    /// How the scan found it, so that the next one needn't read it. Not on the wire and not in the digest.
    pub seen: Option<Seen>,
}

/// What an entry is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A folder.
    Folder,
    /// A file, as its consecutive chunks.
    File {
        /// Bytes.
        size: u64,
        /// Their lengths add up to the size. Shared, because manifests of neighbouring rounds are alike.
        chunks: Arc<[Chunk]>,
    },
    /// A symbolic link to there.
    Symlink(Vec<u8>),
    /// Another name of the file with this path, which sorts before it.
    HardLink(VolumePath),
    /// A named pipe.
    Fifo,
    /// A character device with these numbers.
    CharDevice(u64),
    /// A block device with these numbers.
    BlockDevice(u64),
}

/// What tells that a file hasn't changed since it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// As it was before and after it was read.
    pub stat: Stat,
    /// It had changed so shortly before the scan that a further change could carry the same times.
    pub racy: bool,
}

/// All that a volume holds. Sorted by path; every folder comes before what is in it; the root is the first entry.
#[derive(Clone, Debug)]
pub struct Manifest {
    entries: Vec<Entry>,
    digest: Hash,
    changed: u64,
}

impl Manifest {
    /// Of these entries; `changed` files moved under the scan, so that it may hold a mixture of old and new.
    ///
    /// # Errors
    /// Entries that aren't sorted, have no folder, lie below something else than a folder, or contradict themselves.
    pub fn new(entries: Vec<Entry>, changed: u64) -> Result<Self, VolumeError> {
        check(&entries)?;
        let mut hasher = blake3::Hasher::new();
        for entry in &entries {
            entry.digest_into(&mut hasher);
        }
        Ok(Self { entries, digest: Hash(*hasher.finalize().as_bytes()), changed })
    }

    /// Sorted by path.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Names the content of the whole tree.
    pub fn digest(&self) -> Hash {
        self.digest
    }

    /// Files that changed or vanished while they were read.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Where in the entries that path is.
    pub fn find(&self, path: &VolumePath) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.path.cmp(path)).ok()
    }

    /// All bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(Entry::size).sum()
    }

    /// The first path at which two trees differ.
    pub fn first_difference(&self, other: &Self) -> Option<VolumePath> {
        let (mut ours, mut theirs) = (self.entries.iter(), other.entries.iter());
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return None,
                (Some(entry), None) | (None, Some(entry)) => return Some(entry.path.clone()),
                (Some(a), Some(b)) if a.path != b.path => return Some(a.path.clone().min(b.path.clone())),
                (Some(a), Some(b)) if a.body != b.body || a.meta != b.meta => return Some(a.path.clone()),
                (Some(_), Some(_)) => {}
            }
        }
    }
}

impl Entry {
    /// Bytes of a file; 0 for all else.
    pub fn size(&self) -> u64 {
        match &self.body {
            Body::File { size, .. } => *size,
            Body::Folder
            | Body::Symlink(_)
            | Body::HardLink(_)
            | Body::Fifo
            | Body::CharDevice(_)
            | Body::BlockDevice(_) => 0,
        }
    }

    /// The chunks of a file, none for all else.
    pub fn chunks(&self) -> &[Chunk] {
        match &self.body {
            Body::File { chunks, .. } => chunks,
            Body::Folder
            | Body::Symlink(_)
            | Body::HardLink(_)
            | Body::Fifo
            | Body::CharDevice(_)
            | Body::BlockDevice(_) => &[],
        }
    }

    /// Each chunk of a file with its offset.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Chunk)> {
        self.chunks().iter().scan(0, |offset, chunk| {
            let at = *offset;
            *offset += u64::from(chunk.length);
            Some((at, *chunk))
        })
    }

    /// Every variable part carries its length, so that no two entries encode alike.
    fn digest_into(&self, hasher: &mut blake3::Hasher) {
        let bytes = |hasher: &mut blake3::Hasher, bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        bytes(hasher, self.path.as_bytes());
        match &self.body {
            Body::Folder => {
                hasher.update(&[1]);
            }
            Body::File { size, chunks } => {
                hasher.update(&[2]).update(&size.to_le_bytes()).update(&(chunks.len() as u64).to_le_bytes());
                for chunk in chunks.iter() {
                    hasher.update(&chunk.hash.0).update(&chunk.length.to_le_bytes());
                }
            }
            Body::Symlink(target) => {
                hasher.update(&[3]);
                bytes(hasher, target);
            }
            Body::HardLink(to) => {
                hasher.update(&[4]);
                bytes(hasher, to.as_bytes());
            }
            Body::Fifo => {
                hasher.update(&[5]);
            }
            Body::CharDevice(device) => {
                hasher.update(&[6]).update(&device.to_le_bytes());
            }
            Body::BlockDevice(device) => {
                hasher.update(&[7]).update(&device.to_le_bytes());
            }
        }
        let Meta { mode, uid, gid, mtime_ns, xattrs } = &self.meta;
        hasher.update(&mode.to_le_bytes()).update(&uid.to_le_bytes()).update(&gid.to_le_bytes());
        hasher.update(&mtime_ns.to_le_bytes()).update(&(xattrs.len() as u64).to_le_bytes());
        for (name, value) in xattrs {
            bytes(hasher, name);
            bytes(hasher, value);
        }
    }
}

fn check(entries: &[Entry]) -> Result<(), VolumeError> {
    let refused = |entry: &Entry, problem: &str| VolumeError::Manifest(format!("{} {problem}", entry.path));
    if entries.len() > ENTRIES_MAX {
        return Err(VolumeError::TooLarge { what: "entries", limit: ENTRIES_MAX });
    }
    let mut chunks = 0;
    let mut folders: Vec<&VolumePath> = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        match entry.path.split() {
            None if i == 0 && entry.body == Body::Folder => {}
            None => return Err(refused(entry, "is not the first entry, or no folder")),
            Some(_) if i == 0 => return Err(refused(entry, "comes before the root")),
            Some(_) if entries[i - 1].path >= entry.path => return Err(refused(entry, "is out of order")),
            Some((folder, _)) => {
                folders.truncate(folders.iter().take_while(|open| folder.is_within(open)).count());
                if folders.last() != Some(&&folder) {
                    return Err(refused(entry, "lies in no folder of the manifest"));
                }
            }
        }
        match &entry.body {
            Body::Folder => folders.push(&entry.path),
            Body::File { size, chunks: of_file } => {
                chunks += of_file.len();
                let valid = |chunk: &Chunk| (1..=CHUNK_BYTES_MAX).contains(&(chunk.length as usize));
                let sum = of_file.iter().map(|chunk| u64::from(chunk.length)).sum::<u64>();
                if !of_file.iter().all(valid) || sum != *size {
                    return Err(refused(entry, "has chunks that don't make up the file"));
                }
            }
            Body::HardLink(to) => {
                let lead = entries[..i].binary_search_by(|entry| entry.path.cmp(to));
                if !lead.is_ok_and(|lead| !matches!(entries[lead].body, Body::Folder | Body::HardLink(_))) {
                    return Err(refused(entry, "is another name of nothing that came before"));
                }
            }
            Body::Symlink(_) | Body::Fifo | Body::CharDevice(_) | Body::BlockDevice(_) => {}
        }
    }
    if chunks > CHUNKS_MAX {
        return Err(VolumeError::TooLarge { what: "chunks of content", limit: CHUNKS_MAX });
    }
    Ok(())
}
