//! What travels: manifests in pages of at most 1 MiB, long files continued on the next one; chunks, small ones together.

use std::sync::Arc;

use bytes::Bytes;
use cara_proto::volume as pb;
use pb::entry::Body as Wire;
use prost::Message;

use crate::manifest::{Body, CHUNKS_MAX, ENTRIES_MAX, Entry, Manifest};
use crate::tree::Meta;
use crate::{CHUNK_BYTES_MAX, Chunk, Hash, VolumeError, VolumePath};

/// Largest encoded page.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// Chunks in one entry of a page. Each takes 35 bytes, so that an entry never fills a page by itself.
const ENTRY_CHUNKS_MAX: usize = 8192;
/// Attributes of one entry. What file systems store beside an entry is a few KiB; more would not fit into a page.
const XATTRS_BYTES_MAX: usize = 256 * 1024;
/// Tag and length of an entry within a page, and what the page carries beside entries.
const FRAME_BYTES: usize = 8;
const PAGE_REST_BYTES: usize = 64;
/// What a chunk takes in a message beside its content: its hash, tags and lengths.
const CHUNK_REST_BYTES: usize = 48;

/// The pages of a manifest; ends after the one that has `last` set.
pub struct Pages {
    manifest: Arc<Manifest>,
    /// The next entry, and the next of its chunks.
    at: (usize, usize),
    is_done: bool,
}

impl Pages {
    /// From the first entry on.
    pub fn new(manifest: Arc<Manifest>) -> Self {
        Self { manifest, at: (0, 0), is_done: false }
    }

    /// The next part of the next entry that fits into one message; where the one after it begins.
    fn next_part(&self) -> Option<(pb::Entry, (usize, usize))> {
        let (index, from) = self.at;
        let entry = self.manifest.entries().get(index)?;
        let to = entry.chunks().len().min(from + ENTRY_CHUNKS_MAX);
        let next = if to < entry.chunks().len() { (index, to) } else { (index + 1, 0) };
        Some((to_wire(entry, from..to), next))
    }
}

impl Iterator for Pages {
    type Item = Result<pb::ManifestPage, VolumeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let mut page = pb::ManifestPage { scanned_bytes: self.manifest.bytes(), ..pb::ManifestPage::default() };
        let mut bytes = PAGE_REST_BYTES;
        while let Some((part, next)) = self.next_part() {
            let length = part.encoded_len() + FRAME_BYTES;
            if bytes + length > PAGE_BYTES_MAX {
                if page.entries.is_empty() {
                    self.is_done = true;
                    return Some(Err(VolumeError::TooLarge { what: "bytes of attributes", limit: XATTRS_BYTES_MAX }));
                }
                return Some(Ok(page));
            }
            bytes += length;
            page.entries.push(part);
            self.at = next;
        }
        self.is_done = true;
        page.last = true;
        page.digest = Bytes::copy_from_slice(&self.manifest.digest().0);
        page.changed = self.manifest.changed();
        Some(Ok(page))
    }
}

/// Puts pages together again, and trusts nothing in them.
#[derive(Default)]
pub struct Assembler {
    entries: Vec<Entry>,
    /// Chunks of the last entry, which may go on on the next page.
    open: Vec<Chunk>,
    chunks: usize,
    scanned_bytes: u64,
}

impl Assembler {
    /// Before the first page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next page; the manifest, when it was the last one.
    ///
    /// # Errors
    /// Unsafe paths, anything that [`Manifest::new`] refuses, and a digest that isn't that of what came.
    pub fn take(&mut self, page: pb::ManifestPage) -> Result<Option<Manifest>, VolumeError> {
        self.scanned_bytes = page.scanned_bytes;
        for entry in page.entries {
            self.take_entry(entry)?;
        }
        if !page.last {
            return Ok(None);
        }
        self.close()?;
        let manifest = Manifest::new(std::mem::take(&mut self.entries), page.changed)?;
        if page.digest.as_ref() != manifest.digest().0 {
            return Err(VolumeError::Manifest("its digest isn't that of its entries".to_owned()));
        }
        Ok(Some(manifest))
    }

    /// How much the source has scanned, as it says.
    pub fn scanned_bytes(&self) -> u64 {
        self.scanned_bytes
    }

    fn take_entry(&mut self, entry: pb::Entry) -> Result<(), VolumeError> {
        let body = match entry.body.ok_or_else(|| VolumeError::Manifest("an entry has no body".to_owned()))? {
            Wire::More(more) => return self.take_chunks(Some(more)),
            Wire::Folder(_) => Body::Folder,
            Wire::File(file) => {
                self.close()?;
                self.take_chunks(file.chunks)?;
                Body::File { size: file.size, chunks: Arc::new([]) }
            }
            Wire::Symlink(target) => Body::Symlink(target.into()),
            Wire::HardLink(to) => Body::HardLink(VolumePath::parse(&to)?),
            Wire::Fifo(_) => Body::Fifo,
            Wire::CharDevice(device) => Body::CharDevice(device),
            Wire::BlockDevice(device) => Body::BlockDevice(device),
        };
        if !matches!(body, Body::File { .. }) {
            self.close()?;
        }
        if self.entries.len() >= ENTRIES_MAX {
            return Err(VolumeError::TooLarge { what: "entries", limit: ENTRIES_MAX });
        }
        let path = VolumePath::parse(&entry.path)?;
        self.entries.push(Entry {
            path,
            body,
            meta: entry.meta.map_or_else(Meta::default, meta_from_wire),
            seen: None,
        });
        Ok(())
    }

    fn take_chunks(&mut self, chunks: Option<pb::Chunks>) -> Result<(), VolumeError> {
        let pb::Chunks { hashes, lengths } = chunks.unwrap_or_default();
        self.chunks += lengths.len();
        if self.chunks > CHUNKS_MAX {
            return Err(VolumeError::TooLarge { what: "chunks of content", limit: CHUNKS_MAX });
        }
        let hashes = hashes_from_wire(&hashes)?;
        if hashes.len() != lengths.len() {
            return Err(VolumeError::Manifest("a file has more hashes than lengths, or fewer".to_owned()));
        }
        self.open.extend(std::iter::zip(hashes, lengths).map(|(hash, length)| Chunk { hash, length }));
        Ok(())
    }

    /// Gives the last entry the chunks that came for it.
    fn close(&mut self) -> Result<(), VolumeError> {
        let chunks = std::mem::take(&mut self.open);
        match self.entries.last_mut().map(|entry| &mut entry.body) {
            Some(Body::File { chunks: of_file, .. }) if of_file.is_empty() => *of_file = chunks.into(),
            _no_file if chunks.is_empty() => {}
            _no_file => return Err(VolumeError::Manifest("there are chunks without a file".to_owned())),
        }
        Ok(())
    }
}

/// Hashes without anything in between.
pub fn hashes_to_wire(hashes: &[Hash]) -> Bytes {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// The other way.
///
/// # Errors
/// When the length isn't that of whole hashes.
pub fn hashes_from_wire(bytes: &[u8]) -> Result<Vec<Hash>, VolumeError> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(VolumeError::Manifest("a list of hashes is cut off".to_owned()));
    }
    Ok(hashes.iter().copied().map(Hash).collect())
}

/// Chunks as messages: as many in one as are together no longer than the longest chunk, so that a slow link is never silent for
/// longer than with that. A volume of a million tiny files would take as many messages otherwise.
pub fn pack(chunks: Vec<pb::Chunk>) -> Vec<pb::Chunk> {
    let mut messages: Vec<pb::Chunk> = Vec::new();
    let mut bytes = 0;
    for chunk in chunks {
        let length = chunk.data.len() + CHUNK_REST_BYTES;
        match messages.last_mut().filter(|_| bytes + length <= CHUNK_BYTES_MAX) {
            Some(message) => {
                bytes += length;
                message.more.push(chunk);
            }
            None => {
                bytes = length;
                messages.push(chunk);
            }
        }
    }
    messages
}

/// The chunks of a message, in order.
pub fn unpack(mut message: pb::Chunk) -> impl Iterator<Item = pb::Chunk> {
    let more = std::mem::take(&mut message.more);
    std::iter::once(message).chain(more)
}

fn to_wire(entry: &Entry, chunks: std::ops::Range<usize>) -> pb::Entry {
    let is_first = chunks.start == 0;
    let chunks_to_wire = |chunks: &[Chunk]| {
        let hashes: Vec<Hash> = chunks.iter().map(|chunk| chunk.hash).collect();
        pb::Chunks { hashes: hashes_to_wire(&hashes), lengths: chunks.iter().map(|chunk| chunk.length).collect() }
    };
    let body = match &entry.body {
        Body::Folder => Wire::Folder(pb::Folder {}),
        Body::File { chunks: all, .. } if !is_first => {
            return pb::Entry { body: Some(Wire::More(chunks_to_wire(&all[chunks]))), ..pb::Entry::default() };
        }
        Body::File { size, chunks: all } => {
            Wire::File(pb::File { size: *size, chunks: Some(chunks_to_wire(&all[chunks])) })
        }
        Body::Symlink(target) => Wire::Symlink(target.clone().into()),
        Body::HardLink(to) => Wire::HardLink(Bytes::copy_from_slice(to.as_bytes())),
        Body::Fifo => Wire::Fifo(pb::Fifo {}),
        Body::CharDevice(device) => Wire::CharDevice(*device),
        Body::BlockDevice(device) => Wire::BlockDevice(*device),
    };
    let meta = (!matches!(entry.body, Body::HardLink(_))).then(|| meta_to_wire(&entry.meta));
    pb::Entry { path: Bytes::copy_from_slice(entry.path.as_bytes()), body: Some(body), meta }
}

fn meta_to_wire(meta: &Meta) -> pb::Meta {
    let Meta { mode, uid, gid, mtime_ns, ref xattrs } = *meta;
    let xattr =
        |(name, value): (&Vec<u8>, &Vec<u8>)| pb::Xattr { name: name.clone().into(), value: value.clone().into() };
    pb::Meta { mode, uid, gid, mtime_ns, xattrs: xattrs.iter().map(xattr).collect() }
}

fn meta_from_wire(meta: pb::Meta) -> Meta {
    let pb::Meta { mode, uid, gid, mtime_ns, xattrs } = meta;
    let xattrs = xattrs.into_iter().map(|xattr| (xattr.name.into(), xattr.value.into())).collect();
    Meta { mode, uid, gid, mtime_ns, xattrs }
}
