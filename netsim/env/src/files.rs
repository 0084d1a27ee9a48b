//! Small durable files: identities, keys, the agent's ledger. Whole-file writes only, so that a crash leaves the old
//! content or the new, never a mixture.

use std::io::{self, Write};
use std::path::Path;

/// Small files of one host. Paths are absolute or relative to the working folder; all calls are short.
pub trait Files: Send + Sync + 'static {
    /// The whole content. `NotFound` when there is no such file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Replaces the file's content: temporary file, fsync, rename, fsync of the folder. Creates missing folders with
    /// mode 0700; the file gets `mode` (for example 0o600). After `Ok` the content survives a power loss.
    fn write(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()>;

    /// Removes the file; a missing one is fine.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, sorted. Empty when the folder does not exist.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
}

/// The kernel's file system.
#[derive(Debug, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn write(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = Path::new(&temporary);
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(temporary)?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?; // An older file keeps its own mode on open.
        file.write_all(content)?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(temporary, path)?;
        std::fs::File::open(folder)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}
