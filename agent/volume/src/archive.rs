//! A tree from and to a tar stream, the form in which Docker gives and takes folders.
//!
//! Owners, modes, times to the nanosecond, hard links, devices and attributes are kept (the latter two in PAX records); holes
//! travel as zeros and become holes again. Archives come from engines that we don't trust with paths: whatever is absolute,
//! climbs up, or leads through a symbolic link is refused.

mod pack;
mod record;
mod unpack;

pub use pack::tree_to_tar;
pub use unpack::tar_to_tree;

use crate::VolumeError;

/// Prefix of the PAX records that carry attributes, in the form that all common tools understand.
const XATTR_RECORD: &[u8] = b"SCHILY.xattr.";
/// Bytes carried at a time.
const COPY_BYTES: usize = 256 * 1024;

fn failed(operation: &'static str) -> impl Fn(std::io::Error) -> VolumeError {
    move |source| VolumeError::Archive { operation, source }
}

fn damaged(problem: impl Into<String>) -> VolumeError {
    failed("read")(std::io::Error::new(std::io::ErrorKind::InvalidData, problem.into()))
}
