//! A tree on the host: the folder in which the engine keeps a volume.
//!
//! A volume's content belongs to whoever runs in the container, so nothing in it is trusted: every path is opened name by
//! name below the root, and no step follows a symbolic link. Without root, owners can't be kept: every entry then counts as
//! root's, on both ends.

mod open;

use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::tree::{Kind, Meta, New, Stat, Tree, Xattrs};
use crate::{TreeError, VolumePath};
use open::OpenFolders;

/// The kernel's own limit for one attribute and for the list of names.
const XATTR_BYTES_MAX: usize = 64 * 1024;
const NS_PER_S: i64 = 1_000_000_000;

/// A folder on the host.
pub struct FolderTree {
    root: Arc<OwnedFd>,
    open: OpenFolders,
    /// Entries on another file system are mounts: they aren't the volume's content.
    device: u64,
    keeps_owners: bool,
    syncs: bool,
}

impl FolderTree {
    /// Opens the folder, which must exist.
    ///
    /// # Errors
    /// When it can't be opened.
    pub fn open(folder: &Path) -> Result<Self, TreeError> {
        let open = || -> Result<Self, Errno> {
            let root = rustix::fs::openat(CWD, folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            let device = rustix::fs::fstat(&root)?.st_dev;
            let (root, open, keeps_owners) =
                (Arc::new(root), OpenFolders::default(), rustix::process::geteuid().is_root());
            Ok(Self { root, open, device, keeps_owners, syncs: true })
        };
        open().map_err(|errno| TreeError::new("open", &VolumePath::root(), errno))
    }

    /// For content that a loss of power may take, as in tests: [`Tree::sync`] does nothing.
    pub fn without_sync(self) -> Self {
        Self { syncs: false, ..self }
    }

    /// The folder that holds the entry, and its name there.
    fn parent<'a>(&self, operation: &'static str, path: &'a VolumePath) -> Result<(Arc<OwnedFd>, &'a [u8]), TreeError> {
        let Some((folder, name)) = path.split() else { return Ok((Arc::clone(&self.root), b".")) };
        let folder = self.open.get(&self.root, &folder).map_err(|errno| TreeError::new(operation, path, errno))?;
        Ok((folder, name))
    }

    /// Opens a file itself. Not blocking, in case that somebody puts a pipe in its place just now.
    fn file(&self, operation: &'static str, path: &VolumePath, flags: OFlags) -> Result<OwnedFd, TreeError> {
        let (folder, name) = self.parent(operation, path)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let failed = |errno| TreeError::new(operation, path, errno);
        let file = rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(TreeError::new(operation, path, Error::new(ErrorKind::InvalidInput, "it is no regular file")));
        }
        Ok(file)
    }

    fn change(
        &self,
        operation: &'static str,
        path: &VolumePath,
        change: impl FnOnce(&OwnedFd, &[u8]) -> Result<(), Errno>,
    ) -> Result<(), TreeError> {
        if path.is_root() {
            return Err(TreeError::new(operation, path, ErrorKind::InvalidInput));
        }
        let (folder, name) = self.parent(operation, path)?;
        change(&folder, name).map_err(|errno| TreeError::new(operation, path, errno))
    }

    fn set_meta_at(&self, folder: &OwnedFd, name: &[u8], meta: &Meta) -> Result<(), Errno> {
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // The owner first: changing it clears set-id bits and capabilities.
        if self.keeps_owners && (stat.st_uid, stat.st_gid) != (meta.uid, meta.gid) {
            let (uid, gid) = (Uid::from_raw(meta.uid), Gid::from_raw(meta.gid));
            rustix::fs::chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        let is_symlink = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        if !is_symlink {
            // There is no chmod that doesn't follow; through a handle of the entry itself there is nothing to follow.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let entry = rustix::fs::openat(folder, name, flags, Mode::empty())?;
            rustix::fs::chmod(format!("/proc/self/fd/{}", entry.as_raw_fd()), Mode::from_raw_mode(meta.mode & 0o7777))?;
        }
        let through = through(folder, name);
        let present = xattrs_at(&through)?;
        for name in present.keys().filter(|name| !meta.xattrs.contains_key(*name)) {
            rustix::fs::lremovexattr(through.as_slice(), name.as_slice())?;
        }
        for (name, value) in
            meta.xattrs.iter().filter(|(name, value)| belongs_to_content(name) && present.get(*name) != Some(value))
        {
            rustix::fs::lsetxattr(through.as_slice(), name.as_slice(), value, XattrFlags::empty())?;
        }
        let time = |ns: i64| Timespec { tv_sec: ns.div_euclid(NS_PER_S), tv_nsec: ns.rem_euclid(NS_PER_S) as _ };
        let times = Timestamps { last_access: time(meta.mtime_ns), last_modification: time(meta.mtime_ns) };
        rustix::fs::utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)
    }
}

impl Tree for FolderTree {
    fn list(&self, folder: &VolumePath, after: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, TreeError> {
        let (parent, name) = self.parent("list", folder)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let smallest = || -> Result<Vec<Vec<u8>>, Errno> {
            let mut names = Vec::new();
            for entry in Dir::new(rustix::fs::openat(&parent, name, flags, Mode::empty())?)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." || name <= after {
                    continue;
                }
                names.push(name.to_vec());
                // Twice as many as are wanted are held at most; sorting them now and then costs less than keeping order.
                if names.len() >= limit.saturating_mul(2) {
                    names.sort_unstable();
                    names.truncate(limit);
                }
            }
            names.sort_unstable();
            names.truncate(limit);
            Ok(names)
        };
        smallest().map_err(|errno| TreeError::new("list", folder, errno))
    }

    fn stat(&self, path: &VolumePath) -> Result<Option<Stat>, TreeError> {
        let (folder, name) = match self.parent("look at", path) {
            Ok(found) => found,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(TreeError::new("look at", path, errno)),
        };
        if stat.st_dev != self.device {
            let problem = "another file system is mounted there; it would not be copied. Unmount it first";
            return Err(TreeError::new("look at", path, Error::other(problem)));
        }
        let kind = kind(stat.st_mode).ok_or_else(|| TreeError::new("look at", path, ErrorKind::Unsupported))?;
        let owner = |id: u32| if self.keeps_owners { id } else { 0 };
        let ns = |s: i64, ns: i64| s.saturating_mul(NS_PER_S).saturating_add(ns);
        Ok(Some(Stat {
            kind,
            size: if kind == Kind::File { stat.st_size as u64 } else { 0 },
            mode: if kind == Kind::Symlink { 0 } else { stat.st_mode & 0o7777 },
            uid: owner(stat.st_uid),
            gid: owner(stat.st_gid),
            mtime_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino,
            links: stat.st_nlink as u64,
            device: if matches!(kind, Kind::CharDevice | Kind::BlockDevice) { stat.st_rdev } else { 0 },
        }))
    }

    fn read(&self, path: &VolumePath, offset: u64, buffer: &mut [u8]) -> Result<usize, TreeError> {
        let file = self.file("read", path, OFlags::RDONLY)?;
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&file, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(TreeError::new("read", path, errno)),
            }
        }
        Ok(done)
    }

    fn next_data(&self, path: &VolumePath, offset: u64) -> Result<Option<Range<u64>>, TreeError> {
        let file = self.file("read", path, OFlags::RDONLY)?;
        let failed = |errno| TreeError::new("find the holes of", path, errno);
        let start = match rustix::fs::seek(&file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        };
        let end = rustix::fs::seek(&file, SeekFrom::Hole(start)).map_err(failed)?;
        Ok(Some(start..end))
    }

    fn link_target(&self, path: &VolumePath) -> Result<Vec<u8>, TreeError> {
        let (folder, name) = self.parent("read", path)?;
        let target = rustix::fs::readlinkat(&folder, name, Vec::new());
        Ok(target.map_err(|errno| TreeError::new("read", path, errno))?.into_bytes())
    }

    fn xattrs(&self, path: &VolumePath) -> Result<Xattrs, TreeError> {
        let (folder, name) = self.parent("read the attributes of", path)?;
        xattrs_at(&through(&folder, name)).map_err(|errno| TreeError::new("read the attributes of", path, errno))
    }

    fn create(&mut self, path: &VolumePath, new: New<'_>) -> Result<(), TreeError> {
        let source = match new {
            New::HardLink(to) => Some(self.parent("link", to)?),
            _not_linked => None,
        };
        let private = Mode::RUSR | Mode::WUSR;
        self.change("create", path, |folder, name| match new {
            New::Folder => rustix::fs::mkdirat(folder, name, private | Mode::XUSR),
            New::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(folder, name, flags, private).map(drop)
            }
            New::Symlink(target) => rustix::fs::symlinkat(target, folder, name),
            New::HardLink(_) => {
                let (from, from_name) = source.as_ref().expect("opened above for a hard link");
                rustix::fs::linkat(from, *from_name, folder, name, AtFlags::empty())
            }
            New::Fifo => rustix::fs::mknodat(folder, name, FileType::Fifo, private, 0),
            New::CharDevice(device) => rustix::fs::mknodat(folder, name, FileType::CharacterDevice, private, device),
            New::BlockDevice(device) => rustix::fs::mknodat(folder, name, FileType::BlockDevice, private, device),
        })
    }

    fn write(&mut self, path: &VolumePath, offset: u64, bytes: &[u8]) -> Result<(), TreeError> {
        let file = self.file("write", path, OFlags::WRONLY)?;
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&file, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(TreeError::new("write", path, ErrorKind::WriteZero)),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(TreeError::new("write", path, errno)),
            }
        }
        Ok(())
    }

    fn punch(&mut self, path: &VolumePath, range: Range<u64>) -> Result<(), TreeError> {
        let file = self.file("punch a hole into", path, OFlags::WRONLY)?;
        if range.is_empty() {
            return Ok(()); // The kernel calls that an error.
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&file, flags, range.start, range.end - range.start) {
            Ok(()) => Ok(()),
            // A file system without holes: the zeros are written.
            Err(Errno::OPNOTSUPP) => {
                let size = rustix::fs::fstat(&file).map_err(|errno| TreeError::new("look at", path, errno))?.st_size;
                let end = range.end.min(size as u64);
                let zeros = vec![0; end.saturating_sub(range.start) as usize];
                self.write(path, range.start, &zeros)
            }
            Err(errno) => Err(TreeError::new("punch a hole into", path, errno)),
        }
    }

    fn set_size(&mut self, path: &VolumePath, size: u64) -> Result<(), TreeError> {
        let file = self.file("set the size of", path, OFlags::WRONLY)?;
        rustix::fs::ftruncate(&file, size).map_err(|errno| TreeError::new("set the size of", path, errno))
    }

    fn set_meta(&mut self, path: &VolumePath, meta: &Meta) -> Result<(), TreeError> {
        let (folder, name) = self.parent("set the owner, mode and times of", path)?;
        self.set_meta_at(&folder, name, meta)
            .map_err(|errno| TreeError::new("set the owner, mode and times of", path, errno))
    }

    fn rename(&mut self, from: &VolumePath, to: &VolumePath) -> Result<(), TreeError> {
        self.open.forget(from);
        self.open.forget(to);
        let (from_folder, from_name) = self.parent("rename", from)?;
        self.change("rename", to, |folder, name| rustix::fs::renameat(&from_folder, from_name, folder, name))
    }

    fn remove(&mut self, path: &VolumePath) -> Result<(), TreeError> {
        self.open.forget(path);
        self.change("remove", path, |folder, name| match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR),
            result => result,
        })
    }

    fn sync(&self) -> Result<(), TreeError> {
        if !self.syncs {
            return Ok(());
        }
        rustix::fs::syncfs(self.root.as_fd()).map_err(|errno| TreeError::new("sync", &VolumePath::root(), errno))
    }
}

fn kind(mode: u32) -> Option<Kind> {
    Some(match FileType::from_raw_mode(mode) {
        FileType::Directory => Kind::Folder,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::CharacterDevice => Kind::CharDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::Socket => Kind::Socket,
        FileType::Unknown => return None,
    })
}

/// A path for calls that take no folder handle: only its last step could be a link, and those calls don't follow that one.
fn through(folder: &OwnedFd, name: &[u8]) -> Vec<u8> {
    [format!("/proc/self/fd/{}/", folder.as_raw_fd()).as_bytes(), name].concat()
}

fn xattrs_at(path: &[u8]) -> Result<Xattrs, Errno> {
    let length = match rustix::fs::llistxattr_query(path) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Xattrs::new()), // By far the commonest case, and one call.
        Ok(length) => length,
        Err(errno) => return Err(errno),
    };
    // Some room in case that the list grows in between; when it grows by more, the call says so.
    let mut names = vec![0; length + 1024];
    let length = rustix::fs::llistxattr(path, names.as_mut_slice())?;
    let mut found = Xattrs::new();
    let mut value = vec![0; XATTR_BYTES_MAX];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| belongs_to_content(name)) {
        match rustix::fs::lgetxattr(path, name, value.as_mut_slice()) {
            Ok(length) => found.insert(name.to_vec(), value[..length].to_vec()),
            Err(Errno::NODATA) => None, // Removed in between.
            Err(errno) => return Err(errno),
        };
    }
    Ok(found)
}

/// Labels of the host's security modules, and of overlays, are made anew where the volume is mounted.
fn belongs_to_content(name: &[u8]) -> bool {
    let kept: [&[u8]; 4] = [b"user.", b"system.posix_acl_", b"security.capability", b"trusted."];
    kept.iter().any(|prefix| name.starts_with(prefix)) && !name.starts_with(b"trusted.overlay.")
}
