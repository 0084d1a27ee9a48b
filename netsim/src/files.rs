//! A host's small files. They survive crashes and power losses: a write is a temporary file, an fsync and a rename in
//! production, so a power loss leaves the old content or the new, and after `Ok` the new.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cara_env::Files;

use crate::trace;

/// The file system of one host, shared by all its incarnations.
#[derive(Debug, Default)]
pub(crate) struct FileStore {
    files: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
    full: AtomicBool,
}

impl FileStore {
    /// No room for writes until this is lifted again.
    pub(crate) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    /// Loses everything.
    pub(crate) fn wipe(&self) {
        self.lock().clear();
    }

    /// All files.
    pub(crate) fn image(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.lock().clone()
    }

    /// These files and no others.
    pub(crate) fn restore(&self, files: &BTreeMap<PathBuf, Vec<u8>>) {
        self.lock().clone_from(files);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Vec<u8>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One incarnation's view of its host's files.
#[derive(Debug)]
pub struct SimFiles {
    host: String,
    store: Arc<FileStore>,
    running: Arc<AtomicU64>,
    boot: u64,
}

impl SimFiles {
    pub(crate) fn new(host: &str, store: Arc<FileStore>, running: Arc<AtomicU64>) -> Self {
        let boot = running.load(Ordering::Relaxed);
        Self { host: host.to_owned(), store, running, boot }
    }

    /// A view from outside of any process, for checkers; it works whether a process runs or not.
    pub(crate) fn from_outside(host: &str, store: Arc<FileStore>) -> Self {
        Self { host: host.to_owned(), store, running: Arc::default(), boot: 0 }
    }

    /// A dead process writes nothing, not even from its destructors.
    fn alive(&self) -> io::Result<()> {
        if self.running.load(Ordering::Relaxed) == self.boot {
            return Ok(());
        }
        Err(io::Error::other("the process is gone"))
    }
}

impl Files for SimFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.alive()?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no file {}", path.display()));
        self.store.lock().get(path).cloned().ok_or_else(missing)
    }

    fn write(&self, path: &Path, content: &[u8], _mode: u32) -> io::Result<()> {
        self.alive()?;
        if self.store.full.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        trace::event(&self.host, "file.write", &[content.len() as u64, trace::fingerprint(content)]);
        self.store.lock().insert(path.to_owned(), content.to_vec());
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.alive()?;
        self.store.lock().remove(path);
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.alive()?;
        let files = self.store.lock();
        let inside = files.keys().filter_map(|path| path.strip_prefix(folder).ok()?.components().next());
        let mut names: Vec<String> = inside.map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
        names.dedup(); // The map is ordered, so names of one folder stand together.
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_survive_the_process_and_a_dead_process_can_not_write() {
        let (store, running) = (Arc::new(FileStore::default()), Arc::new(AtomicU64::new(1)));
        let first = SimFiles::new("a", store.clone(), running.clone());
        first.write(Path::new("/var/id/key"), b"one", 0o600).unwrap();
        first.write(Path::new("/var/id/cert"), b"two", 0o600).unwrap();
        running.store(2, Ordering::Relaxed);
        let second = SimFiles::new("a", store.clone(), running.clone());
        assert!(first.write(Path::new("/var/id/key"), b"late", 0o600).is_err());
        assert_eq!(second.read(Path::new("/var/id/key")).unwrap(), b"one");
        assert_eq!(second.list(Path::new("/var/id")).unwrap(), ["cert", "key"]);
        assert_eq!(second.list(Path::new("/var")).unwrap(), ["id"]);
        store.set_full(true);
        let full = second.write(Path::new("/var/id/key"), b"x", 0o600).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }
}
