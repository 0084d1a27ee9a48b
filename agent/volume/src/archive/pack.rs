//! From a tree to a tar stream.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use tar::{Builder, EntryType, Header};

use crate::archive::{COPY_BYTES, XATTR_RECORD, failed, record};
use crate::tree::{Kind, Meta, Stat, Tree, Walk};
use crate::{TreeError, VolumeError, VolumePath};

/// Room for a name in a header; longer ones need a record.
const NAME_BYTES: usize = 100;
/// Seven octal digits. Linux gives 12 bits to the major number and 20 to the minor one.
const DEVICE_NUMBER_MAX: u32 = 0o7_777_777;

/// Writes the tree as an archive in which all paths begin with `prefix`, and returns the writer. A prefix that is the root
/// makes the tree's root `./`, which not every reader takes for an entry with an owner and a mode of its own.
///
/// # Errors
/// When the tree can't be read or changes its size under the copy, or the archive can't be written.
pub fn tree_to_tar<W: Write>(tree: &dyn Tree, prefix: &VolumePath, writer: W) -> Result<W, VolumeError> {
    let mut builder = Builder::new(writer);
    let mut leads: BTreeMap<u64, VolumePath> = BTreeMap::new();
    let mut walk = Walk::new();
    while let Some((path, stat)) = walk.next(tree)? {
        if stat.kind == Kind::Socket {
            continue;
        }
        let mut lead = None;
        if stat.kind != Kind::Folder && stat.links > 1 {
            lead = leads.get(&stat.inode).cloned();
            leads.entry(stat.inode).or_insert_with(|| path.clone());
        }
        append(&mut builder, tree, prefix, &path, &stat, lead.as_ref())?;
    }
    builder.into_inner().map_err(failed("write"))
}

fn append<W: Write>(
    builder: &mut Builder<W>,
    tree: &dyn Tree,
    prefix: &VolumePath,
    path: &VolumePath,
    stat: &Stat,
    lead: Option<&VolumePath>,
) -> Result<(), VolumeError> {
    let meta = Meta::read(tree, path, stat)?;
    let mut name = below(prefix, path);
    if stat.kind == Kind::Folder {
        name.push(b'/');
    }
    let (kind, link, size) = match (lead, stat.kind) {
        (Some(lead), _) => (EntryType::Link, below(prefix, lead), 0),
        (None, Kind::Folder) => (EntryType::Directory, Vec::new(), 0),
        (None, Kind::File) => (EntryType::Regular, Vec::new(), stat.size),
        (None, Kind::Symlink) => (EntryType::Symlink, tree.link_target(path)?, 0),
        (None, Kind::Fifo) => (EntryType::Fifo, Vec::new(), 0),
        (None, Kind::CharDevice) => (EntryType::Char, Vec::new(), 0),
        (None, Kind::BlockDevice) => (EntryType::Block, Vec::new(), 0),
        (None, Kind::Socket) => return Ok(()),
    };
    append_records(builder, &meta, &name, &link)?;

    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(if kind == EntryType::Symlink { 0o777 } else { meta.mode });
    header.set_uid(meta.uid.into());
    header.set_gid(meta.gid.into());
    header.set_mtime(u64::try_from(meta.mtime_ns / 1_000_000_000).unwrap_or(0));
    if matches!(kind, EntryType::Char | EntryType::Block) {
        let (major, minor) = device_numbers(stat.device);
        if major.max(minor) > DEVICE_NUMBER_MAX {
            return Err(failed("write")(std::io::Error::other(format!("the device {path} has too large a number"))));
        }
        header.set_device_major(major).and_then(|()| header.set_device_minor(minor)).map_err(failed("write"))?;
    }
    let old = header.as_old_mut();
    let (name, link) = (&name[..name.len().min(NAME_BYTES)], &link[..link.len().min(NAME_BYTES)]);
    old.name[..name.len()].copy_from_slice(name);
    old.linkname[..link.len()].copy_from_slice(link);
    header.set_cksum();
    let content = Content { tree, path, at: 0, left: size, buffer: Vec::new(), from: 0 };
    builder.append(&header, content).map_err(failed("write"))
}

/// A path of the tree as the archive says it.
fn below(prefix: &VolumePath, path: &VolumePath) -> Vec<u8> {
    match (prefix.is_root(), path.is_root()) {
        (true, true) => b".".to_vec(),
        (true, false) => path.as_bytes().to_vec(),
        (false, true) => prefix.as_bytes().to_vec(),
        (false, false) => [prefix.as_bytes(), path.as_bytes()].join(&b'/'),
    }
}

fn append_records<W: Write>(
    builder: &mut Builder<W>,
    meta: &Meta,
    name: &[u8],
    link: &[u8],
) -> Result<(), VolumeError> {
    let mut records: Vec<(String, Vec<u8>)> = Vec::new();
    if name.len() > NAME_BYTES {
        records.push(("path".to_owned(), name.to_vec()));
    }
    if link.len() > NAME_BYTES {
        records.push(("linkpath".to_owned(), link.to_vec()));
    }
    if meta.mtime_ns < 0 || meta.mtime_ns % 1_000_000_000 != 0 {
        records.push(("mtime".to_owned(), record::time_to_text(meta.mtime_ns).into_bytes()));
    }
    for (name, value) in &meta.xattrs {
        let key = String::from_utf8([XATTR_RECORD, name].concat())
            .map_err(|error| failed("write")(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))?;
        records.push((key, value.clone()));
    }
    let records = records.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
    builder.append_pax_extensions(records).map_err(failed("write"))
}

/// The kernel's encoding of device numbers, taken apart.
fn device_numbers(device: u64) -> (u32, u32) {
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & 0xffff_f000);
    let minor = (device & 0xff) | ((device >> 12) & 0xffff_ff00);
    (major as u32, minor as u32)
}

/// A file's content as a stream of exactly the size that the header says.
struct Content<'a> {
    tree: &'a dyn Tree,
    path: &'a VolumePath,
    at: u64,
    left: u64,
    buffer: Vec<u8>,
    from: usize,
}

impl Read for Content<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.from == self.buffer.len() && self.left > 0 {
            self.buffer.resize(usize::try_from(self.left).unwrap_or(COPY_BYTES).min(COPY_BYTES), 0);
            let read =
                self.tree.read(self.path, self.at, &mut self.buffer).map_err(|TreeError { source, .. }| source)?;
            if read < self.buffer.len() {
                let problem = format!("{} became shorter under the copy", self.path);
                return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, problem));
            }
            self.at += read as u64;
            self.left -= read as u64;
            self.from = 0;
        }
        let length = into.len().min(self.buffer.len() - self.from);
        into[..length].copy_from_slice(&self.buffer[self.from..self.from + length]);
        self.from += length;
        Ok(length)
    }
}
