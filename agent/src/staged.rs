//! The volumes on this node that were made to be filled from another node and that no container has ever mounted.
//!
//! Only these may be deleted when a move is undone. The book is written before such a volume is made, and struck out before
//! the first container that mounts it is started. So whatever is lost, a crash, a write, the whole file, errs towards keeping
//! a volume: what isn't in the book stays.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cara_env::Files;

/// The book, by engine names.
pub(crate) struct Staged {
    files: Arc<dyn Files>,
    file: PathBuf,
    names: Mutex<BTreeSet<String>>,
}

impl Staged {
    /// Reads the book. One that can't be read is an empty one: then nothing is deleted.
    pub(crate) fn open(files: Arc<dyn Files>, file: PathBuf) -> Self {
        let text = files.read(&file).unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("can't read {}: {error}; staged volumes are kept when a move is undone", file.display());
            }
            Vec::new()
        });
        let names = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
        Self { files, file, names: Mutex::new(names) }
    }

    /// All that is in the book.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.lock().clone()
    }

    /// Writes a volume into the book.
    ///
    /// # Errors
    /// When it can't be saved; the book stays as it was.
    pub(crate) fn add(&self, name: &str) -> io::Result<()> {
        self.change(|names| names.insert(name.to_owned()))
    }

    /// Strikes a volume out.
    ///
    /// # Errors
    /// As [`Staged::add`].
    pub(crate) fn strike(&self, name: &str) -> io::Result<()> {
        self.change(|names| names.remove(name))
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) -> io::Result<()> {
        let mut names = self.lock();
        let mut changed = names.clone();
        if change(&mut changed) {
            let text: String = changed.iter().map(|name| format!("{name}\n")).collect();
            self.files.write(&self.file, text.as_bytes(), 0o600)?;
            *names = changed;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cara_env::RealFiles;

    use super::*;

    #[test]
    fn the_book_is_the_same_after_a_restart_and_a_lost_one_names_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Staged::open(Arc::new(RealFiles), folder.path().join("staged"));
        assert!(open().names().is_empty());
        let book = open();
        book.add("one").expect("saved");
        book.add("two").expect("saved");
        book.strike("one").expect("saved");
        book.strike("never there").expect("nothing to save");
        assert_eq!(open().names(), BTreeSet::from(["two".to_owned()]));
        std::fs::remove_file(folder.path().join("staged")).expect("removed");
        assert!(open().names().is_empty());
    }
}
