//! What a volume is to us: a tree of folders, files, links and devices, with owners, modes, times and attributes.
//!
//! [`FolderTree`] is a folder on the host, [`MemoryTree`] lives in the process. Both keep one contract, and the tests hold
//! both to it: no operation follows a symbolic link, and each fails when a parent isn't a folder.

#[cfg(target_os = "linux")]
mod folder;
mod memory;
mod sparse;
mod walk;

#[cfg(target_os = "linux")]
pub use folder::FolderTree;
pub use memory::MemoryTree;
pub(crate) use sparse::write_content;
pub use walk::Walk;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{TreeError, VolumePath};

/// Extended attributes by name.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A socket. Never copied: it means nothing without the process that listens.
    Socket,
}

/// What a tree tells about an entry without reading it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file; 0 for all else.
    pub size: u64,
    /// Permissions with set-id and sticky bits, 12 bits; 0 for a symbolic link, which has none.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of content, nanoseconds since 1970; anyone may set it.
    pub mtime_ns: i64,
    /// Last change of anything, nanoseconds since 1970; nobody can set it.
    pub ctime_ns: i64,
    /// Names the file while it exists; its hard links have the same one.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// Of a device: its numbers as the kernel encodes them.
    pub device: u64,
}

/// What an entry has besides its content.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    /// As in [`Stat`].
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// As in [`Stat`].
    pub mtime_ns: i64,
    /// Extended attributes, those that belong to the content: the host's security labels aren't among them.
    pub xattrs: Xattrs,
}

impl Meta {
    /// Of an entry whose `stat` is known.
    ///
    /// # Errors
    /// When its attributes can't be read.
    pub fn read(tree: &dyn Tree, path: &VolumePath, stat: &Stat) -> Result<Self, TreeError> {
        let Stat { mode, uid, gid, mtime_ns, .. } = *stat;
        Ok(Self { mode, uid, gid, mtime_ns, xattrs: tree.xattrs(path)? })
    }
}

/// An entry to be made.
#[derive(Clone, Copy, Debug)]
pub enum New<'a> {
    /// An empty folder.
    Folder,
    /// An empty file.
    File,
    /// A symbolic link with that target.
    Symlink(&'a [u8]),
    /// Another name of that file.
    HardLink(&'a VolumePath),
    /// A named pipe.
    Fifo,
    /// A character device with these numbers.
    CharDevice(u64),
    /// A block device with these numbers.
    BlockDevice(u64),
}

/// A volume's content. Every error names the operation and the entry.
pub trait Tree {
    /// The `limit` smallest names in the folder that are greater than `after`, sorted. Fewer: there are no more.
    ///
    /// # Errors
    /// When it is no folder or can't be read. The same holds for all that follow.
    fn list(&self, folder: &VolumePath, after: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, TreeError>;
    /// The entry itself, also when it is a symbolic link; nothing when it isn't there.
    fn stat(&self, path: &VolumePath) -> Result<Option<Stat>, TreeError>;
    /// Reads a file from the offset until the buffer is full or the file ends; how much was read.
    fn read(&self, path: &VolumePath, offset: u64, buffer: &mut [u8]) -> Result<usize, TreeError>;
    /// The next range at or after the offset that isn't a hole; nothing when only a hole follows.
    fn next_data(&self, path: &VolumePath, offset: u64) -> Result<Option<Range<u64>>, TreeError>;
    /// Where a symbolic link points.
    fn link_target(&self, path: &VolumePath) -> Result<Vec<u8>, TreeError>;
    /// The attributes that belong to the content.
    fn xattrs(&self, path: &VolumePath) -> Result<Xattrs, TreeError>;

    /// Makes an entry, which must not exist. Until [`Tree::set_meta`] it is for its owner alone.
    fn create(&mut self, path: &VolumePath, new: New<'_>) -> Result<(), TreeError>;
    /// Writes into a file; it grows where needed.
    fn write(&mut self, path: &VolumePath, offset: u64, bytes: &[u8]) -> Result<(), TreeError>;
    /// Makes a range of a file read as zeros and gives its space back where the file system can; the size stays.
    fn punch(&mut self, path: &VolumePath, range: Range<u64>) -> Result<(), TreeError>;
    /// Cuts a file off or lets it grow by a hole.
    fn set_size(&mut self, path: &VolumePath, size: u64) -> Result<(), TreeError>;
    /// Owner, mode, attributes (others that we would copy are removed) and, last, the time.
    fn set_meta(&mut self, path: &VolumePath, meta: &Meta) -> Result<(), TreeError>;
    /// Gives an entry another name at once, in place of a non-folder that may be there.
    fn rename(&mut self, from: &VolumePath, to: &VolumePath) -> Result<(), TreeError>;
    /// Removes a name, or an empty folder.
    fn remove(&mut self, path: &VolumePath) -> Result<(), TreeError>;
    /// Returns once everything written before survives a loss of power.
    fn sync(&self) -> Result<(), TreeError>;
}

/// Removes whatever is there, with all that is in it. Nothing there is no error.
///
/// # Errors
/// When something can't be listed or removed.
pub fn remove_all(tree: &mut dyn Tree, path: &VolumePath) -> Result<(), TreeError> {
    let mut at = path.clone();
    loop {
        let Some(stat) = tree.stat(&at)? else { return Ok(()) };
        let inner = if stat.kind == Kind::Folder { tree.list(&at, b"", 1)?.pop() } else { None };
        if let Some(name) = inner {
            at = at.join(&name).map_err(|error| TreeError::new("remove", &at, std::io::Error::other(error)))?;
            continue;
        }
        tree.remove(&at)?;
        if at == *path {
            return Ok(());
        }
        at = at.split().expect("what was removed lay below the path, so it has a folder").0;
    }
}
