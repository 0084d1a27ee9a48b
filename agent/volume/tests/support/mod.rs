//! What the tests share: a generator of trees and of changes to them, a source in the process, a tree that crashes.

#![allow(dead_code, clippy::unwrap_used)] // Not every test uses all of it; helpers lie outside of test functions.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use cara_proto::volume as pb;
use cara_volume::scan::Scanner;
use cara_volume::tree::{Kind, Meta, New, Stat, Tree, Walk, Xattrs, remove_all};
use cara_volume::{Hash, Manifest, Peer, RoundReport, SourceSession, TreeError, VolumeError, VolumePath, run_round};
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

/// Later than any change in a tree, so that nothing counts as changed just now.
pub const LATER_NS: i64 = i64::MAX;

pub fn path(text: &str) -> VolumePath {
    VolumePath::parse(text.as_bytes()).unwrap()
}

pub fn scan(tree: &dyn Tree) -> Manifest {
    Scanner::new(None, BTreeSet::new(), LATER_NS).run(tree).unwrap()
}

pub fn round(number: u32, is_final: bool) -> pb::Round {
    pb::Round { number, r#final: is_final, ..pb::Round::default() }
}

type Change<'a> = Box<dyn FnOnce(&mut dyn Tree) + 'a>;

/// A source in the same process. `before_chunks` may change it between the manifest and the chunks.
pub struct Local<'a> {
    pub tree: &'a mut dyn Tree,
    pub session: &'a mut SourceSession,
    pub before_chunks: Option<Change<'a>>,
    /// When its scan begins.
    pub now_ns: i64,
}

impl<'a> Local<'a> {
    pub fn new(tree: &'a mut dyn Tree, session: &'a mut SourceSession) -> Self {
        Self { tree, session, before_chunks: None, now_ns: 0 }
    }
}

impl Peer for Local<'_> {
    fn fetch_manifest(
        &mut self,
        request: &pb::ManifestRequest,
        take: &mut dyn FnMut(pb::ManifestPage) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        self.session.begin(request.round.as_ref().unwrap(), self.now_ns);
        while !self.session.step(self.tree)? {
            take(self.session.progress_page())?;
        }
        for page in self.session.pages()? {
            take(page?)?;
        }
        if let Some(change) = self.before_chunks.take() {
            change(self.tree);
        }
        Ok(())
    }

    fn fetch_chunks(
        &mut self,
        hashes: &[Hash],
        _request: &pb::ChunksRequest,
        take: &mut dyn FnMut(pb::Chunk) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        for hash in hashes {
            take(self.session.chunk(self.tree, *hash)?)?;
        }
        Ok(())
    }
}

/// One round from tree to tree, with nothing remembered.
pub fn copy(source: &mut dyn Tree, target: &mut dyn Tree, is_final: bool) -> Result<RoundReport, VolumeError> {
    let mut session = SourceSession::new();
    let mut peer = Local::new(source, &mut session);
    run_round(target, &mut peer, round(1, is_final), None, &mut || LATER_NS).map(|(report, _)| report)
}

/// One final round that begins at that time, with the manifests of the rounds before.
pub fn copy_again(
    (source, session): (&mut dyn Tree, &mut SourceSession),
    target: &mut dyn Tree,
    previous: &mut Option<Arc<Manifest>>,
    now_ns: i64,
) -> RoundReport {
    let mut peer = Local { now_ns, ..Local::new(source, session) };
    let (report, manifest) = run_round(target, &mut peer, round(1, true), previous.take(), &mut || now_ns).unwrap();
    *previous = Some(manifest);
    report
}

/// Two trees hold the same, found by looking at them and not at their manifests.
pub fn assert_same(a: &dyn Tree, b: &dyn Tree) {
    assert_eq!(dump(a), dump(b));
}

/// Everything in a tree as text, in an own way.
pub fn dump(tree: &dyn Tree) -> Vec<String> {
    let mut lines = Vec::new();
    let mut inodes: Vec<u64> = Vec::new();
    let mut walk = Walk::new();
    while let Some((path, stat)) = walk.next(tree).unwrap() {
        let Stat { kind, size, mode, uid, gid, mtime_ns, links, device, inode, .. } = stat;
        let number = inodes.iter().position(|known| *known == inode).unwrap_or_else(|| {
            inodes.push(inode);
            inodes.len() - 1
        });
        let links = if kind == Kind::Folder { 0 } else { links };
        let content = match kind {
            Kind::File => Hash::of(&content(tree, &path)).to_string(),
            Kind::Symlink => tree.link_target(&path).unwrap().escape_ascii().to_string(),
            _no_content => String::new(),
        };
        let xattrs = tree.xattrs(&path).unwrap();
        lines.push(format!(
            "{path} {kind:?} #{number} {size} {mode:o} {uid}:{gid} {mtime_ns} {links} {device} {xattrs:?} {content}"
        ));
    }
    lines
}

pub fn content(tree: &dyn Tree, path: &VolumePath) -> Vec<u8> {
    let size = tree.stat(path).unwrap().unwrap().size;
    let mut content = vec![0; size as usize];
    assert_eq!(tree.read(path, 0, &mut content).unwrap(), content.len());
    content
}

pub fn write(tree: &mut dyn Tree, path: &VolumePath, content: &[u8]) {
    tree.create(path, New::File).unwrap();
    tree.write(path, 0, content).unwrap();
}

pub fn noise(rng: &mut ChaCha8Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn of_kind(tree: &dyn Tree, wanted: impl Fn(Kind) -> bool) -> Vec<VolumePath> {
    let mut walk = Walk::new();
    let mut found = Vec::new();
    while let Some((path, stat)) = walk.next(tree).unwrap() {
        if wanted(stat.kind) {
            found.push(path);
        }
    }
    found
}

fn free_name(tree: &dyn Tree, rng: &mut ChaCha8Rng) -> Option<VolumePath> {
    let folders = of_kind(tree, |kind| kind == Kind::Folder);
    let names = ["a", "b", "c", "a.b", "a-b", "z", "\u{e9}", ".d", "with space", "new\nline"];
    let path = folders.choose(rng)?.join(names.choose(rng)?.as_bytes()).unwrap();
    tree.stat(&path).unwrap().is_none().then_some(path)
}

fn random_size(rng: &mut ChaCha8Rng) -> usize {
    match rng.random_range(0..10) {
        0 => 0,
        1..=5 => rng.random_range(1..5000),
        6..=8 => rng.random_range(5000..300_000),
        _large => rng.random_range(1_200_000..2_000_000),
    }
}

/// Only root may give files away, and works in folders that their owner may not enter.
#[cfg(target_os = "linux")]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Elsewhere there are only trees in memory, which take any owner.
#[cfg(not(target_os = "linux"))]
fn is_root() -> bool {
    true
}

fn random_meta(rng: &mut ChaCha8Rng, has_attributes: bool) -> Meta {
    let modes: &[u32] =
        if is_root() { &[0o644, 0o600, 0, 0o755, 0o4755, 0o1777, 0o2770] } else { &[0o755, 0o700, 0o4755, 0o1777] };
    let owners: &[u32] = if is_root() { &[0, 999, 70_000] } else { &[0] };
    let mut meta = Meta {
        mode: *modes.choose(rng).unwrap(),
        uid: *owners.choose(rng).unwrap(),
        gid: *owners.choose(rng).unwrap(),
        mtime_ns: rng.random_range(0..2_000_000_000_000_000_000),
        ..Meta::default()
    };
    if has_attributes && rng.random_bool(0.3) {
        let length = rng.random_range(0..50);
        meta.xattrs.insert(b"user.test".to_vec(), noise(rng, length));
    }
    meta
}

/// Changes the tree a little, in one of all the ways in which programs change volumes.
pub fn mutate(tree: &mut dyn Tree, rng: &mut ChaCha8Rng) {
    let files = of_kind(tree, |kind| kind == Kind::File);
    let all = of_kind(tree, |_| true);
    let Some(name) = free_name(tree, rng) else { return };
    let any = all.choose(rng).unwrap().clone();
    let file = files.choose(rng).cloned();
    match (rng.random_range(0..16), file) {
        (0..=2, _) => {
            let length = random_size(rng);
            let content = noise(rng, length);
            write(tree, &name, &content);
        }
        (3, _) => tree.create(&name, New::Folder).unwrap(),
        (4, _) => {
            let target = [&b"../../etc/passwd"[..], b"a", b"/", b"./a//b/"].choose(rng).copied().unwrap();
            tree.create(&name, New::Symlink(target)).unwrap();
            let meta = Meta { mode: 0, ..random_meta(rng, false) };
            tree.set_meta(&name, &meta).unwrap();
        }
        (5, _) => tree.create(&name, New::Fifo).unwrap(),
        (6, Some(file)) => tree.create(&name, New::HardLink(&file)).unwrap(),
        (7, Some(file)) => {
            // A hole in the middle, or growth by one.
            let size = tree.stat(&file).unwrap().unwrap().size;
            tree.set_size(&file, size + 700_000).unwrap();
            tree.punch(&file, size / 3..size / 2).unwrap();
        }
        (8 | 9, Some(file)) => {
            let size = tree.stat(&file).unwrap().unwrap().size;
            let offset = rng.random_range(0..=size);
            let bytes = noise(rng, 3000);
            tree.write(&file, offset, &bytes).unwrap();
        }
        (10, Some(file)) => {
            let size = tree.stat(&file).unwrap().unwrap().size;
            tree.set_size(&file, size / 2).unwrap();
        }
        (11, Some(file)) => {
            // Insertion at the beginning: all content moves.
            let mut bytes = noise(rng, 100);
            bytes.extend(content(tree, &file));
            tree.write(&file, 0, &bytes).unwrap();
        }
        (12, _) if !any.is_root() && !name.is_within(&any) => tree.rename(&any, &name).unwrap(),
        (13, _) if !any.is_root() => remove_all(tree, &any).unwrap(),
        (_, _) => {
            let kind = tree.stat(&any).unwrap().unwrap().kind;
            let mut meta = random_meta(rng, matches!(kind, Kind::File | Kind::Folder));
            if kind == Kind::Symlink {
                meta.mode = 0;
            }
            tree.set_meta(&any, &meta).unwrap();
        }
    }
}

/// A tree that refuses every change after the first few, as if the power had gone.
pub struct Crashing<'a> {
    pub inner: &'a mut dyn Tree,
    pub changes_left: Cell<usize>,
}

impl Crashing<'_> {
    fn change(&mut self) -> Result<&mut dyn Tree, TreeError> {
        match self.changes_left.get().checked_sub(1) {
            Some(left) => self.changes_left.set(left),
            None => return Err(TreeError::new("change", &VolumePath::root(), std::io::Error::other("crashed"))),
        }
        Ok(self.inner)
    }
}

impl Tree for Crashing<'_> {
    fn list(&self, folder: &VolumePath, after: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, TreeError> {
        self.inner.list(folder, after, limit)
    }
    fn stat(&self, path: &VolumePath) -> Result<Option<Stat>, TreeError> {
        self.inner.stat(path)
    }
    fn read(&self, path: &VolumePath, offset: u64, buffer: &mut [u8]) -> Result<usize, TreeError> {
        self.inner.read(path, offset, buffer)
    }
    fn next_data(&self, path: &VolumePath, offset: u64) -> Result<Option<Range<u64>>, TreeError> {
        self.inner.next_data(path, offset)
    }
    fn link_target(&self, path: &VolumePath) -> Result<Vec<u8>, TreeError> {
        self.inner.link_target(path)
    }
    fn xattrs(&self, path: &VolumePath) -> Result<Xattrs, TreeError> {
        self.inner.xattrs(path)
    }
    fn create(&mut self, path: &VolumePath, new: New<'_>) -> Result<(), TreeError> {
        self.change()?.create(path, new)
    }
    fn write(&mut self, path: &VolumePath, offset: u64, bytes: &[u8]) -> Result<(), TreeError> {
        self.change()?.write(path, offset, bytes)
    }
    fn punch(&mut self, path: &VolumePath, range: Range<u64>) -> Result<(), TreeError> {
        self.change()?.punch(path, range)
    }
    fn set_size(&mut self, path: &VolumePath, size: u64) -> Result<(), TreeError> {
        self.change()?.set_size(path, size)
    }
    fn set_meta(&mut self, path: &VolumePath, meta: &Meta) -> Result<(), TreeError> {
        self.change()?.set_meta(path, meta)
    }
    fn rename(&mut self, from: &VolumePath, to: &VolumePath) -> Result<(), TreeError> {
        self.change()?.rename(from, to)
    }
    fn remove(&mut self, path: &VolumePath) -> Result<(), TreeError> {
        self.change()?.remove(path)
    }
    fn sync(&self) -> Result<(), TreeError> {
        self.inner.sync()
    }
}
