//! From a tar stream to a tree.
//!
//! Blocks are read here and not by the `tar` crate's reader, which splits PAX records at newlines and so can't carry binary
//! attributes such as capabilities; its parser of headers is used.

use std::io::Read;

use tar::{EntryType, Header};

use crate::archive::record::{self, Records};
use crate::archive::{COPY_BYTES, XATTR_RECORD, damaged, failed};
use crate::tree::{Kind, Meta, New, Tree, remove_all, write_content};
use crate::{VolumeError, VolumePath};

const BLOCK_BYTES: usize = 512;
/// Records of one entry, long names included: a path, a link and what file systems store as attributes.
const RECORDS_BYTES_MAX: u64 = 1024 * 1024;

/// Writes the entries of an archive into the tree; what is there already is replaced by entries of the same name. Only what
/// lies below `prefix` in the archive is taken, without the prefix (Docker puts the folder's name before all paths).
///
/// # Errors
/// A damaged archive, unsafe paths, entries outside the prefix, and what the tree refuses. What was written stays.
pub fn tar_to_tree(reader: impl Read, prefix: &VolumePath, tree: &mut dyn Tree) -> Result<(), VolumeError> {
    let mut reader = reader;
    // Folders get their metadata at the end: what is made in them changes their times, and they may be read-only.
    let mut folders: Vec<(VolumePath, Meta)> = Vec::new();
    while let Some(entry) = next_entry(&mut reader)? {
        let path = inside(&entry.name, prefix)?;
        let meta = entry.meta()?;
        let size = entry.size()?;
        match entry.header.entry_type() {
            EntryType::Directory => {
                make_folder(tree, &path)?;
                folders.push((path, meta));
                skip(&mut reader, padded(size))?;
                continue;
            }
            EntryType::Regular | EntryType::Continuous => {
                replace(tree, &path, New::File)?;
                copy(&mut reader, tree, &path, size)?;
                tree.set_meta(&path, &meta)?;
                skip(&mut reader, padded(size) - size)?;
                continue;
            }
            EntryType::Link => {
                replace(tree, &path, New::HardLink(&inside(&entry.link, prefix)?))?;
            }
            EntryType::Symlink => make_other(tree, &path, New::Symlink(&entry.link), &meta)?,
            EntryType::Fifo => make_other(tree, &path, New::Fifo, &meta)?,
            EntryType::Char => make_other(tree, &path, New::CharDevice(entry.device()?), &meta)?,
            EntryType::Block => make_other(tree, &path, New::BlockDevice(entry.device()?), &meta)?,
            other => return Err(damaged(format!("{path} is of a kind that isn't supported ({other:?})"))),
        }
        skip(&mut reader, padded(size))?;
    }
    folders.sort_by(|(a, _), (b, _)| b.cmp(a));
    for (path, meta) in folders {
        tree.set_meta(&path, &meta)?;
    }
    Ok(())
}

/// An entry's header together with what came before it in records.
struct RawEntry {
    header: Header,
    name: Vec<u8>,
    link: Vec<u8>,
    records: Records,
}

impl RawEntry {
    fn size(&self) -> Result<u64, VolumeError> {
        let size = self.number("size").unwrap_or_else(|| self.header.entry_size().map_err(failed("read")))?;
        // No file is longer, and sums with it don't overflow.
        if size > i64::MAX as u64 { Err(damaged(format!("a file of {size} bytes can't be"))) } else { Ok(size) }
    }

    fn meta(&self) -> Result<Meta, VolumeError> {
        let id = |key: &str, in_header: std::io::Result<u64>| -> Result<u32, VolumeError> {
            let id = self.number(key).unwrap_or_else(|| in_header.map_err(failed("read")))?;
            u32::try_from(id).map_err(|_| damaged(format!("the owner {id} is out of range")))
        };
        let mtime_ns = match self.records.get(&b"mtime"[..]) {
            Some(text) => record::time_from_text(text).ok_or_else(|| damaged("a time is no number"))?,
            None => {
                let seconds = i64::try_from(self.header.mtime().map_err(failed("read"))?).unwrap_or(i64::MAX);
                seconds.saturating_mul(1_000_000_000)
            }
        };
        let xattrs = self
            .records
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(XATTR_RECORD)?.to_vec(), value.clone())));
        let is_symlink = self.header.entry_type() == EntryType::Symlink;
        let mode = if is_symlink { 0 } else { self.header.mode().map_err(failed("read"))? & 0o7777 };
        let (uid, gid) = (id("uid", self.header.uid())?, id("gid", self.header.gid())?);
        Ok(Meta { mode, uid, gid, mtime_ns, xattrs: xattrs.collect() })
    }

    /// Device numbers as the kernel encodes them.
    fn device(&self) -> Result<u64, VolumeError> {
        let major = self.header.device_major().map_err(failed("read"))?.unwrap_or(0);
        let minor = self.header.device_minor().map_err(failed("read"))?.unwrap_or(0);
        let (major, minor) = (u64::from(major), u64::from(minor));
        Ok(((major & 0xfff) << 8) | ((major & 0xffff_f000) << 32) | (minor & 0xff) | ((minor & 0xffff_ff00) << 12))
    }

    fn number(&self, key: &str) -> Option<Result<u64, VolumeError>> {
        let text = self.records.get(key.as_bytes())?;
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        Some(number.ok_or_else(|| damaged(format!("the record \"{key}\" is no number"))))
    }
}

fn next_entry(reader: &mut impl Read) -> Result<Option<RawEntry>, VolumeError> {
    let mut records = Records::new();
    let (mut long_name, mut long_link) = (None, None);
    while let Some(header) = next_header(reader)? {
        match header.entry_type() {
            EntryType::XHeader => record::decode(&read_small(reader, &header)?, &mut records)?,
            EntryType::XGlobalHeader => drop(read_small(reader, &header)?),
            EntryType::GNULongName => long_name = Some(until_zero(read_small(reader, &header)?)),
            EntryType::GNULongLink => long_link = Some(until_zero(read_small(reader, &header)?)),
            _an_entry => {
                let in_header = header.path_bytes().into_owned();
                let name = records.remove(&b"path"[..]).or(long_name).unwrap_or(in_header);
                let in_header = header.link_name_bytes().map(|name| name.into_owned()).unwrap_or_default();
                let link = records.remove(&b"linkpath"[..]).or(long_link).unwrap_or(in_header);
                return Ok(Some(RawEntry { header, name, link, records }));
            }
        }
    }
    Ok(None)
}

/// Nothing at the end of the archive, which is a block of zeros.
fn next_header(reader: &mut impl Read) -> Result<Option<Header>, VolumeError> {
    let mut block = [0; BLOCK_BYTES];
    reader.read_exact(&mut block).map_err(failed("read"))?;
    if block == [0; BLOCK_BYTES] {
        // What follows is padding, which the other end must be able to get rid of.
        std::io::copy(reader, &mut std::io::sink()).map_err(failed("read"))?;
        return Ok(None);
    }
    let header = Header::from_byte_slice(&block).clone();
    let sum: u32 =
        block.iter().enumerate().map(|(i, byte)| if (148..156).contains(&i) { 32 } else { u32::from(*byte) }).sum();
    if header.cksum().map_err(failed("read"))? != sum {
        return Err(damaged("the checksum of a header is wrong"));
    }
    Ok(Some(header))
}

fn read_small(reader: &mut impl Read, header: &Header) -> Result<Vec<u8>, VolumeError> {
    let size = header.entry_size().map_err(failed("read"))?;
    if size > RECORDS_BYTES_MAX {
        return Err(damaged(format!("records of {size} bytes are more than an entry may have")));
    }
    let mut bytes = vec![0; padded(size) as usize];
    reader.read_exact(&mut bytes).map_err(failed("read"))?;
    bytes.truncate(size as usize);
    Ok(bytes)
}

fn until_zero(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    bytes
}

fn padded(size: u64) -> u64 {
    size.next_multiple_of(BLOCK_BYTES as u64)
}

fn skip(reader: &mut impl Read, bytes: u64) -> Result<(), VolumeError> {
    let skipped = std::io::copy(&mut reader.take(bytes), &mut std::io::sink()).map_err(failed("read"))?;
    if skipped < bytes { Err(failed("read")(std::io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
}

/// The path of an entry in the tree. `./` before it and `/` after it are how tools write folders, and mean nothing.
fn inside(name: &[u8], prefix: &VolumePath) -> Result<VolumePath, VolumeError> {
    let mut name = name;
    while let Some(rest) = name.strip_prefix(b"./") {
        name = rest;
    }
    let name = name.strip_suffix(b"/").unwrap_or(name);
    let path = VolumePath::parse(if name == b"." { b"" } else { name })?;
    path.below(prefix).ok_or_else(|| damaged(format!("{path} lies outside of {prefix}")))
}

fn make_folder(tree: &mut dyn Tree, path: &VolumePath) -> Result<(), VolumeError> {
    match tree.stat(path)? {
        Some(stat) if stat.kind == Kind::Folder => Ok(()),
        _other => replace(tree, path, New::Folder),
    }
}

fn make_other(tree: &mut dyn Tree, path: &VolumePath, new: New<'_>, meta: &Meta) -> Result<(), VolumeError> {
    replace(tree, path, new)?;
    Ok(tree.set_meta(path, meta)?)
}

fn replace(tree: &mut dyn Tree, path: &VolumePath, new: New<'_>) -> Result<(), VolumeError> {
    if path.is_root() {
        return Err(damaged("the root is no folder"));
    }
    remove_all(tree, path)?;
    Ok(tree.create(path, new)?)
}

fn copy(reader: &mut impl Read, tree: &mut dyn Tree, path: &VolumePath, size: u64) -> Result<(), VolumeError> {
    tree.set_size(path, size)?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < size {
        let length = usize::try_from(size - at).unwrap_or(COPY_BYTES).min(COPY_BYTES);
        reader.read_exact(&mut buffer[..length]).map_err(failed("read"))?;
        write_content(tree, path, at, &buffer[..length], true)?;
        at += length as u64;
    }
    Ok(())
}
