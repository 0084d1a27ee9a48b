//! A copy of a volume beside the engine, for an agent that can't reach the engine's own folders.
//!
//! Without root, no file can be given to another owner, and a file that its owner may not read can't be read. So what the
//! volume says about owners and modes is kept in memory, and the files themselves are ours.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use cara_volume::tree::{Kind, Meta, New, Stat, Xattrs};
use cara_volume::{FolderTree, Tree, TreeError, VolumePath};

/// What we must be allowed to do with our own files and folders.
const OWN_MODE: u32 = 0o700;

/// The copy. Its folder goes with it.
pub(super) struct SpoolTree {
    folder: PathBuf,
    files: FolderTree,
    /// Mode, owner and group by inode, where they were set.
    owners: BTreeMap<u64, (u32, u32, u32)>,
}

impl SpoolTree {
    /// An empty copy in a new folder.
    pub(super) fn new(folder: &Path) -> Result<Self, TreeError> {
        let failed = |error: std::io::Error| TreeError::new("make a copy of", &VolumePath::root(), error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let files = FolderTree::open(folder)?.without_sync();
        Ok(Self { folder: folder.to_owned(), files, owners: BTreeMap::new() })
    }
}

impl Drop for SpoolTree {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!("can't remove {}: {error}; it goes when the agent starts again", self.folder.display());
        }
    }
}

impl Tree for SpoolTree {
    fn list(&self, folder: &VolumePath, after: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, TreeError> {
        self.files.list(folder, after, limit)
    }

    fn stat(&self, path: &VolumePath) -> Result<Option<Stat>, TreeError> {
        let stat = self.files.stat(path)?;
        Ok(stat.map(|stat| match self.owners.get(&stat.inode) {
            Some(&(mode, uid, gid)) => Stat { mode, uid, gid, ..stat },
            None => stat,
        }))
    }

    fn read(&self, path: &VolumePath, offset: u64, buffer: &mut [u8]) -> Result<usize, TreeError> {
        self.files.read(path, offset, buffer)
    }

    fn next_data(&self, path: &VolumePath, offset: u64) -> Result<Option<Range<u64>>, TreeError> {
        self.files.next_data(path, offset)
    }

    fn link_target(&self, path: &VolumePath) -> Result<Vec<u8>, TreeError> {
        self.files.link_target(path)
    }

    fn xattrs(&self, path: &VolumePath) -> Result<Xattrs, TreeError> {
        self.files.xattrs(path)
    }

    fn create(&mut self, path: &VolumePath, new: New<'_>) -> Result<(), TreeError> {
        self.files.create(path, new)?;
        if !matches!(new, New::HardLink(_))
            && let Some(stat) = self.files.stat(path)?
        {
            self.owners.remove(&stat.inode); // The number of a file that is gone may come again.
        }
        Ok(())
    }

    fn write(&mut self, path: &VolumePath, offset: u64, bytes: &[u8]) -> Result<(), TreeError> {
        self.files.write(path, offset, bytes)
    }

    fn punch(&mut self, path: &VolumePath, range: Range<u64>) -> Result<(), TreeError> {
        self.files.punch(path, range)
    }

    fn set_size(&mut self, path: &VolumePath, size: u64) -> Result<(), TreeError> {
        self.files.set_size(path, size)
    }

    fn set_meta(&mut self, path: &VolumePath, meta: &Meta) -> Result<(), TreeError> {
        let Some(stat) = self.files.stat(path)? else {
            return Err(TreeError::new("set the owner, mode and times of", path, std::io::ErrorKind::NotFound));
        };
        let mode = if stat.kind == Kind::Symlink { meta.mode } else { meta.mode | OWN_MODE };
        self.files.set_meta(path, &Meta { mode, uid: stat.uid, gid: stat.gid, ..meta.clone() })?;
        self.owners.insert(stat.inode, (meta.mode, meta.uid, meta.gid));
        Ok(())
    }

    fn rename(&mut self, from: &VolumePath, to: &VolumePath) -> Result<(), TreeError> {
        self.files.rename(from, to)
    }

    fn remove(&mut self, path: &VolumePath) -> Result<(), TreeError> {
        self.files.remove(path)
    }

    fn sync(&self) -> Result<(), TreeError> {
        Ok(()) // The volume is what counts, and it is in the engine.
    }
}

#[cfg(test)]
mod tests {
    use cara_volume::archive::{tar_to_tree, tree_to_tar};
    use cara_volume::scan::Scanner;
    use cara_volume::{Hash, MemoryTree};

    use super::*;

    fn path(text: &str) -> VolumePath {
        VolumePath::parse(text.as_bytes()).expect("a path")
    }

    fn digest(tree: &dyn Tree) -> Hash {
        Scanner::new(None, Default::default(), 0).run(tree).expect("a scan").digest()
    }

    #[test]
    fn owners_and_unreadable_modes_survive_without_root_and_nothing_is_left_behind() {
        let mut original = MemoryTree::new();
        original.create(&path("pg"), New::Folder).expect("made");
        original.create(&path("pg/base"), New::File).expect("made");
        original.write(&path("pg/base"), 0, b"rows").expect("written");
        original.create(&path("pg/also"), New::HardLink(&path("pg/base"))).expect("made");
        original.create(&path("pg/link"), New::Symlink(b"base")).expect("made");
        let meta = |mode, uid| Meta { mode, uid, gid: 70, mtime_ns: 1_500_000_001, ..Meta::default() };
        original.set_meta(&path("pg/base"), &meta(0o000, 999)).expect("set");
        original.set_meta(&path("pg/link"), &meta(0, 999)).expect("set");
        original.set_meta(&path("pg"), &meta(0o500, 999)).expect("set");
        original.set_meta(&VolumePath::root(), &meta(0o1777, 5)).expect("set");
        let tar = tree_to_tar(&original, &VolumePath::root(), Vec::new()).expect("packed");
        let folder = tempfile::tempdir().expect("a folder");
        let spooled = folder.path().join("copy");
        let mut copy = SpoolTree::new(&spooled).expect("made");
        tar_to_tree(&tar[..], &VolumePath::root(), &mut copy).expect("unpacked");
        assert_eq!(digest(&copy), digest(&original));
        let tar = tree_to_tar(&copy, &VolumePath::root(), Vec::new()).expect("packed");
        let mut again = MemoryTree::new();
        tar_to_tree(&tar[..], &VolumePath::root(), &mut again).expect("unpacked");
        assert_eq!(digest(&again), digest(&original));
        drop(copy);
        assert!(!spooled.exists());
    }
}
