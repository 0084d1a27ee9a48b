//! A tree in the process: for the simulator, for the runtime without Docker, and for tests.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;

use crate::tree::{Kind, Meta, New, Stat, Tree, Xattrs};
use crate::{TreeError, VolumePath};

/// The unit of holes.
const BLOCK_BYTES: u64 = 4096;
const ROOT: u64 = 1;

/// Inodes by name.
type Names = BTreeMap<Vec<u8>, u64>;

/// A volume in memory. Its time stands where [`MemoryTree::set_now_ns`] has put it.
#[derive(Clone, Debug)]
pub struct MemoryTree {
    nodes: BTreeMap<u64, Node>,
    last_inode: u64,
    now_ns: i64,
}

#[derive(Clone, Debug)]
struct Node {
    body: Body,
    meta: Meta,
    ctime_ns: i64,
    links: u64,
}

#[derive(Clone, Debug)]
enum Body {
    Folder(Names),
    /// Blocks by number, each as long as was written; what is missing is a hole.
    File {
        size: u64,
        blocks: BTreeMap<u64, Vec<u8>>,
    },
    Symlink(Vec<u8>),
    Fifo,
    CharDevice(u64),
    BlockDevice(u64),
}

impl Default for MemoryTree {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryTree {
    /// An empty volume at time 0.
    pub fn new() -> Self {
        let root = Node::new(Body::Folder(BTreeMap::new()), 0, 0o755);
        Self { nodes: BTreeMap::from([(ROOT, root)]), last_inode: ROOT, now_ns: 0 }
    }

    /// From now on changes are stamped with this time, nanoseconds since 1970.
    pub fn set_now_ns(&mut self, now_ns: i64) {
        self.now_ns = now_ns;
    }

    fn find(&self, operation: &'static str, path: &VolumePath) -> Result<Option<u64>, TreeError> {
        let mut inode = ROOT;
        for name in path.names() {
            match &self.nodes[&inode].body {
                Body::Folder(names) => match names.get(name) {
                    Some(next) => inode = *next,
                    None => return Ok(None),
                },
                _no_folder => return Err(TreeError::new(operation, path, ErrorKind::NotADirectory)),
            }
        }
        Ok(Some(inode))
    }

    fn node(&self, operation: &'static str, path: &VolumePath) -> Result<&Node, TreeError> {
        let inode = self.find(operation, path)?.ok_or_else(|| TreeError::new(operation, path, ErrorKind::NotFound))?;
        Ok(&self.nodes[&inode])
    }

    fn node_mut(&mut self, operation: &'static str, path: &VolumePath) -> Result<&mut Node, TreeError> {
        let inode = self.find(operation, path)?.ok_or_else(|| TreeError::new(operation, path, ErrorKind::NotFound))?;
        let node = self.nodes.get_mut(&inode).expect("a name always leads to a node");
        node.ctime_ns = self.now_ns;
        Ok(node)
    }

    /// The names of the folder in which the path lies, for a change.
    fn names_of(&mut self, operation: &'static str, path: &VolumePath) -> Result<(&mut Names, Vec<u8>), TreeError> {
        let now_ns = self.now_ns;
        let (folder, name) = path.split().ok_or_else(|| TreeError::new(operation, path, ErrorKind::InvalidInput))?;
        let node = self.node_mut(operation, &folder)?;
        node.meta.mtime_ns = now_ns;
        match &mut node.body {
            Body::Folder(names) => Ok((names, name.to_vec())),
            _no_folder => Err(TreeError::new(operation, path, ErrorKind::NotADirectory)),
        }
    }

    fn file_mut(
        &mut self,
        operation: &'static str,
        path: &VolumePath,
    ) -> Result<(&mut u64, &mut BTreeMap<u64, Vec<u8>>), TreeError> {
        let now_ns = self.now_ns;
        let node = self.node_mut(operation, path)?;
        node.meta.mtime_ns = now_ns;
        match &mut node.body {
            Body::File { size, blocks } => Ok((size, blocks)),
            _no_file => Err(TreeError::new(operation, path, ErrorKind::InvalidInput)),
        }
    }

    fn unlink(&mut self, inode: u64) {
        let node = self.nodes.get_mut(&inode).expect("a name always leads to a node");
        node.links -= 1;
        node.ctime_ns = self.now_ns;
        if node.links == 0 {
            self.nodes.remove(&inode);
        }
    }
}

impl Node {
    fn new(body: Body, now_ns: i64, mode: u32) -> Self {
        Self { body, meta: Meta { mode, mtime_ns: now_ns, ..Meta::default() }, ctime_ns: now_ns, links: 1 }
    }

    fn file(&self, path: &VolumePath) -> Result<(u64, &BTreeMap<u64, Vec<u8>>), TreeError> {
        match &self.body {
            Body::File { size, blocks } => Ok((*size, blocks)),
            _no_file => Err(TreeError::new("read", path, ErrorKind::InvalidInput)),
        }
    }
}

impl Tree for MemoryTree {
    fn list(&self, folder: &VolumePath, after: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, TreeError> {
        match &self.node("list", folder)?.body {
            Body::Folder(names) => {
                let greater = names.range::<[u8], _>((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded));
                Ok(greater.take(limit).map(|(name, _)| name.clone()).collect())
            }
            _no_folder => Err(TreeError::new("list", folder, ErrorKind::NotADirectory)),
        }
    }

    fn stat(&self, path: &VolumePath) -> Result<Option<Stat>, TreeError> {
        let inode = match self.find("look at", path) {
            Ok(Some(inode)) => inode,
            Ok(None) => return Ok(None),
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(error),
        };
        let node = &self.nodes[&inode];
        let (kind, size, device) = match &node.body {
            Body::Folder(_) => (Kind::Folder, 0, 0),
            Body::File { size, .. } => (Kind::File, *size, 0),
            Body::Symlink(_) => (Kind::Symlink, 0, 0),
            Body::Fifo => (Kind::Fifo, 0, 0),
            Body::CharDevice(device) => (Kind::CharDevice, 0, *device),
            Body::BlockDevice(device) => (Kind::BlockDevice, 0, *device),
        };
        let Meta { mode, uid, gid, mtime_ns, .. } = node.meta;
        let (ctime_ns, links) = (node.ctime_ns, node.links);
        Ok(Some(Stat { kind, size, mode, uid, gid, mtime_ns, ctime_ns, inode, links, device }))
    }

    fn read(&self, path: &VolumePath, offset: u64, buffer: &mut [u8]) -> Result<usize, TreeError> {
        let (size, blocks) = self.node("read", path)?.file(path)?;
        let length = buffer.len().min(usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX));
        let mut at = 0;
        while at < length {
            let position = offset + at as u64;
            let within = (position % BLOCK_BYTES) as usize;
            let end = length.min(at + BLOCK_BYTES as usize - within);
            let part = &mut buffer[at..end];
            part.fill(0);
            if let Some(block) = blocks.get(&(position / BLOCK_BYTES)).and_then(|block| block.get(within..)) {
                let known = block.len().min(part.len());
                part[..known].copy_from_slice(&block[..known]);
            }
            at = end;
        }
        Ok(length)
    }

    fn next_data(&self, path: &VolumePath, offset: u64) -> Result<Option<Range<u64>>, TreeError> {
        let (size, blocks) = self.node("read", path)?.file(path)?;
        let mut following = blocks.range(offset / BLOCK_BYTES..).map(|(number, _)| *number);
        let Some(first) = following.next().filter(|_| offset < size) else { return Ok(None) };
        let past = following.scan(first + 1, |next, number| (number == *next).then(|| *next += 1)).count() as u64;
        Ok(Some(offset.max(first * BLOCK_BYTES)..size.min((first + 1 + past) * BLOCK_BYTES)))
    }

    fn link_target(&self, path: &VolumePath) -> Result<Vec<u8>, TreeError> {
        match &self.node("read", path)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _no_symlink => Err(TreeError::new("read", path, ErrorKind::InvalidInput)),
        }
    }

    fn xattrs(&self, path: &VolumePath) -> Result<Xattrs, TreeError> {
        Ok(self.node("read the attributes of", path)?.meta.xattrs.clone())
    }

    fn create(&mut self, path: &VolumePath, new: New<'_>) -> Result<(), TreeError> {
        let linked = match new {
            New::HardLink(to) => {
                let inode = self.find("link", to)?.ok_or_else(|| TreeError::new("link", to, ErrorKind::NotFound))?;
                if matches!(self.nodes[&inode].body, Body::Folder(_)) {
                    return Err(TreeError::new("link", to, ErrorKind::InvalidInput));
                }
                Some(inode)
            }
            New::Folder | New::File | New::Symlink(_) | New::Fifo | New::CharDevice(_) | New::BlockDevice(_) => None,
        };
        let inode = linked.unwrap_or(self.last_inode + 1);
        let (names, name) = self.names_of("create", path)?;
        if names.contains_key(&name) {
            return Err(TreeError::new("create", path, ErrorKind::AlreadyExists));
        }
        names.insert(name, inode);
        let (body, mode) = match new {
            New::Folder => (Body::Folder(BTreeMap::new()), 0o700),
            New::File => (Body::File { size: 0, blocks: BTreeMap::new() }, 0o600),
            New::Symlink(target) => (Body::Symlink(target.to_vec()), 0),
            New::Fifo => (Body::Fifo, 0o600),
            New::CharDevice(device) => (Body::CharDevice(device), 0o600),
            New::BlockDevice(device) => (Body::BlockDevice(device), 0o600),
            New::HardLink(_) => {
                let node = self.nodes.get_mut(&inode).expect("it was just found");
                node.links += 1;
                node.ctime_ns = self.now_ns;
                return Ok(());
            }
        };
        self.last_inode = inode;
        self.nodes.insert(inode, Node::new(body, self.now_ns, mode));
        Ok(())
    }

    fn write(&mut self, path: &VolumePath, offset: u64, bytes: &[u8]) -> Result<(), TreeError> {
        let (size, blocks) = self.file_mut("write", path)?;
        let mut at = 0;
        while at < bytes.len() {
            let position = offset + at as u64;
            let within = (position % BLOCK_BYTES) as usize;
            let part = &bytes[at..bytes.len().min(at + BLOCK_BYTES as usize - within)];
            let block = blocks.entry(position / BLOCK_BYTES).or_default();
            if block.len() < within + part.len() {
                block.resize(within + part.len(), 0);
            }
            block[within..within + part.len()].copy_from_slice(part);
            at += part.len();
        }
        *size = (*size).max(offset + bytes.len() as u64);
        Ok(())
    }

    fn punch(&mut self, path: &VolumePath, range: Range<u64>) -> Result<(), TreeError> {
        let (_, blocks) = self.file_mut("punch a hole into", path)?;
        let touched: Vec<u64> = blocks
            .range(range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES))
            .map(|(number, _)| *number)
            .collect();
        for number in touched {
            let start = number * BLOCK_BYTES;
            if range.start <= start && start + BLOCK_BYTES <= range.end {
                blocks.remove(&number);
                continue;
            }
            let block = blocks.get_mut(&number).expect("it was just listed");
            let within = |position: u64| (position.saturating_sub(start) as usize).min(block.len());
            let (from, to) = (within(range.start), within(range.end));
            block[from..to].fill(0);
        }
        Ok(())
    }

    fn set_size(&mut self, path: &VolumePath, new: u64) -> Result<(), TreeError> {
        let (size, blocks) = self.file_mut("set the size of", path)?;
        *size = new;
        blocks.split_off(&new.div_ceil(BLOCK_BYTES));
        if let Some(block) = blocks.get_mut(&(new / BLOCK_BYTES)) {
            block.truncate((new % BLOCK_BYTES) as usize);
        }
        Ok(())
    }

    fn set_meta(&mut self, path: &VolumePath, meta: &Meta) -> Result<(), TreeError> {
        let node = self.node_mut("set the owner, mode and times of", path)?;
        node.meta = meta.clone();
        Ok(())
    }

    fn rename(&mut self, from: &VolumePath, to: &VolumePath) -> Result<(), TreeError> {
        let inode = self.find("rename", from)?.ok_or_else(|| TreeError::new("rename", from, ErrorKind::NotFound))?;
        let old = self.find("rename", to)?;
        if old == Some(inode) {
            return Ok(()); // As in POSIX: two names of one file both stay.
        }
        let is_folder = |inode: u64| matches!(self.nodes[&inode].body, Body::Folder(_));
        if to.is_within(from) || old.is_some_and(is_folder) || (old.is_some() && is_folder(inode)) {
            return Err(TreeError::new("rename", from, ErrorKind::InvalidInput));
        }
        let (names, name) = self.names_of("rename", to)?;
        names.insert(name, inode);
        let (names, name) = self.names_of("rename", from)?;
        names.remove(&name);
        if let Some(old) = old {
            self.unlink(old);
        }
        Ok(())
    }

    fn remove(&mut self, path: &VolumePath) -> Result<(), TreeError> {
        let inode = self.find("remove", path)?.ok_or_else(|| TreeError::new("remove", path, ErrorKind::NotFound))?;
        if matches!(&self.nodes[&inode].body, Body::Folder(names) if !names.is_empty()) {
            return Err(TreeError::new("remove", path, ErrorKind::DirectoryNotEmpty));
        }
        let (names, name) = self.names_of("remove", path)?;
        names.remove(&name);
        self.unlink(inode);
        Ok(())
    }

    fn sync(&self) -> Result<(), TreeError> {
        Ok(())
    }
}
