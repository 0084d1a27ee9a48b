//! A volume of the memory engine as a tree. Each operation sees the volume as it is then, also while a container writes.

use std::ops::Range;
use std::sync::Arc;

use cara_volume::tree::{Meta, New, Stat, Xattrs};
use cara_volume::{MemoryTree, Tree, TreeError, VolumePath};

use super::Shared;

/// One volume.
pub(super) struct SharedTree {
    shared: Arc<Shared>,
    name: String,
}

impl SharedTree {
    pub(super) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { shared, name: name.to_owned() }
    }

    /// As [`Self::with`], unless nothing can be read now.
    fn look<T>(
        &self,
        operation: &'static str,
        path: &VolumePath,
        work: impl FnOnce(&mut MemoryTree) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        if self.shared.faults.borrow().fail_reads {
            return Err(TreeError::new(operation, path, std::io::Error::other("input/output error")));
        }
        self.with(work)
    }

    fn with<T>(&self, work: impl FnOnce(&mut MemoryTree) -> Result<T, TreeError>) -> Result<T, TreeError> {
        let wall_ms = self.shared.now().wall_ms;
        match self.shared.lock().volumes.tree(&self.name, wall_ms) {
            Some(tree) => work(tree),
            None => Err(TreeError::new("open", &VolumePath::root(), std::io::ErrorKind::NotFound)),
        }
    }
}

impl Tree for SharedTree {
    fn list(&self, folder: &VolumePath, after: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, TreeError> {
        self.look("list", folder, |tree| tree.list(folder, after, limit))
    }
    fn stat(&self, path: &VolumePath) -> Result<Option<Stat>, TreeError> {
        self.look("look at", path, |tree| tree.stat(path))
    }
    fn read(&self, path: &VolumePath, offset: u64, buffer: &mut [u8]) -> Result<usize, TreeError> {
        self.look("read", path, |tree| tree.read(path, offset, buffer))
    }
    fn next_data(&self, path: &VolumePath, offset: u64) -> Result<Option<Range<u64>>, TreeError> {
        self.look("read", path, |tree| tree.next_data(path, offset))
    }
    fn link_target(&self, path: &VolumePath) -> Result<Vec<u8>, TreeError> {
        self.look("read", path, |tree| tree.link_target(path))
    }
    fn xattrs(&self, path: &VolumePath) -> Result<Xattrs, TreeError> {
        self.look("read", path, |tree| tree.xattrs(path))
    }
    fn create(&mut self, path: &VolumePath, new: New<'_>) -> Result<(), TreeError> {
        self.with(|tree| tree.create(path, new))
    }
    fn write(&mut self, path: &VolumePath, offset: u64, bytes: &[u8]) -> Result<(), TreeError> {
        self.with(|tree| tree.write(path, offset, bytes))
    }
    fn punch(&mut self, path: &VolumePath, range: Range<u64>) -> Result<(), TreeError> {
        self.with(|tree| tree.punch(path, range))
    }
    fn set_size(&mut self, path: &VolumePath, size: u64) -> Result<(), TreeError> {
        self.with(|tree| tree.set_size(path, size))
    }
    fn set_meta(&mut self, path: &VolumePath, meta: &Meta) -> Result<(), TreeError> {
        self.with(|tree| tree.set_meta(path, meta))
    }
    fn rename(&mut self, from: &VolumePath, to: &VolumePath) -> Result<(), TreeError> {
        self.with(|tree| tree.rename(from, to))
    }
    fn remove(&mut self, path: &VolumePath) -> Result<(), TreeError> {
        self.with(|tree| tree.remove(path))
    }
    fn sync(&self) -> Result<(), TreeError> {
        self.with(|tree| tree.sync())
    }
}
