//! Folders that are held open, so that work on a folder of a hundred thousand files doesn't look for it as often.
//!
//! A handle is of the folder itself, wherever its name leads by now: it can't point out of the volume any more than on the
//! day it was opened. What we rename or remove ourselves is forgotten. A folder that somebody else puts in place of one that
//! is held is not seen until the tree is opened again, which each round does; in the final round nobody else is left.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::VolumePath;

/// Held at a time. Work goes from one folder to the next, beside the staging folder and the source of a link.
const OPEN_MAX: usize = 4;

/// The folders used last, the very last one at the end. A lock, since reading a tree takes no `&mut`; nobody waits for it.
#[derive(Default)]
pub(super) struct OpenFolders(Mutex<Vec<(VolumePath, Arc<OwnedFd>)>>);

impl OpenFolders {
    /// The folder at that path, opened name by name from the root; no step follows a link.
    pub(super) fn get(&self, root: &Arc<OwnedFd>, path: &VolumePath) -> Result<Arc<OwnedFd>, Errno> {
        if path.is_root() {
            return Ok(Arc::clone(root));
        }
        let mut open = self.lock();
        if let Some(at) = open.iter().position(|(held, _)| held == path) {
            open[at..].rotate_left(1);
        } else {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut folder = Arc::clone(root);
            for name in path.names() {
                folder = Arc::new(rustix::fs::openat(&folder, name, flags, Mode::empty())?);
            }
            if open.len() == OPEN_MAX {
                open.remove(0);
            }
            open.push((path.clone(), folder));
        }
        let (_, folder) = open.last().expect("it was put there, or moved there, just now");
        Ok(Arc::clone(folder))
    }

    /// The path gets another meaning, and with it all below.
    pub(super) fn forget(&self, path: &VolumePath) {
        self.lock().retain(|(held, _)| !held.is_within(path));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(VolumePath, Arc<OwnedFd>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
