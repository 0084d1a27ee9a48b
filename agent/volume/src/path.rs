//! Paths inside a volume. Whoever holds one knows that it can't point out of it.

use std::cmp::Ordering;
use std::fmt;

/// Longest path in bytes; Linux takes no longer one in a call either.
pub const PATH_BYTES_MAX: usize = 4095;
/// Longest name in bytes on every file system that carries volumes.
pub const NAME_BYTES_MAX: usize = 255;

/// Names joined by `/`, relative to the volume's root, without `.`, `..` or empty names; the root is the empty path.
///
/// Ordered name by name, so that a folder comes before what is in it, and that before the folder's next neighbour.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct VolumePath(Vec<u8>);

/// A path that is refused because it could lead out of the volume, or that no file system would take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path \"{path}\" is refused: {problem}")]
pub struct UnsafePath {
    /// As it came, escaped.
    pub path: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl VolumePath {
    /// The volume's root.
    pub fn root() -> Self {
        Self::default()
    }

    /// Takes a path from outside.
    ///
    /// # Errors
    /// Absolute paths, empty names, `.` and `..`, zero bytes, and names or paths that are too long.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnsafePath> {
        if bytes.is_empty() {
            return Ok(Self::root());
        }
        if bytes.len() > PATH_BYTES_MAX {
            return Err(refused(bytes, "it is longer than 4095 bytes"));
        }
        for name in bytes.split(|byte| *byte == b'/') {
            check_name(name).map_err(|problem| refused(bytes, problem))?;
        }
        Ok(Self(bytes.to_vec()))
    }

    /// The entry of that name in this folder.
    ///
    /// # Errors
    /// As [`VolumePath::parse`]; a name with `/` in it is none.
    pub fn join(&self, name: &[u8]) -> Result<Self, UnsafePath> {
        let mut joined = self.0.clone();
        if !joined.is_empty() {
            joined.push(b'/');
        }
        joined.extend_from_slice(name);
        if name.contains(&b'/') {
            return Err(refused(&joined, "a name contains '/'"));
        }
        check_name(name).map_err(|problem| refused(&joined, problem))?;
        if joined.len() > PATH_BYTES_MAX {
            return Err(refused(&joined, "it is longer than 4095 bytes"));
        }
        Ok(Self(joined))
    }

    /// The folder that holds this entry and the entry's name in it; nothing for the root.
    pub fn split(&self) -> Option<(Self, &[u8])> {
        if self.is_root() {
            return None;
        }
        Some(match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (Self(self.0[..at].to_vec()), &self.0[at + 1..]),
            None => (Self::root(), &self.0[..]),
        })
    }

    /// The names from the root down.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
    }

    /// Is this the volume's root?
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Is this the folder itself or something below it?
    pub fn is_within(&self, folder: &Self) -> bool {
        folder.is_root()
            || self == folder
            || self.0.strip_prefix(folder.0.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// This path as seen from the folder; nothing when it isn't within.
    pub fn below(&self, folder: &Self) -> Option<Self> {
        let rest = self.is_within(folder).then(|| &self.0[folder.0.len()..])?;
        Some(Self(rest.strip_prefix(b"/").unwrap_or(rest).to_vec()))
    }

    /// The bytes as they travel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Ord for VolumePath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.names().cmp(other.names())
    }
}

impl PartialOrd for VolumePath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for VolumePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str("the root folder") } else { write!(f, "\"{}\"", self.0.escape_ascii()) }
    }
}

impl fmt::Debug for VolumePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn check_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        b"" => Err("it is absolute or has an empty name"),
        b"." | b".." => Err("it has \".\" or \"..\" in it"),
        name if name.contains(&0) => Err("it has a zero byte in it"),
        name if name.len() > NAME_BYTES_MAX => Err("a name is longer than 255 bytes"),
        _ => Ok(()),
    }
}

fn refused(path: &[u8], problem: &'static str) -> UnsafePath {
    UnsafePath { path: path.escape_ascii().to_string(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_lead_out_is_refused() {
        for path in ["/etc", "..", "a/..", "a/../b", "./a", "a//b", "a/", "/", "a\0b"] {
            assert!(VolumePath::parse(path.as_bytes()).is_err(), "{path:?}");
        }
        assert!(VolumePath::parse(&[b'a'; 256]).is_err());
        assert!(VolumePath::root().join(b"a/b").is_err());
        assert!(VolumePath::root().join(b"..").is_err());
        assert!(VolumePath::parse("a/..b/...".as_bytes()).is_ok());
    }

    #[test]
    fn a_folder_is_followed_by_what_is_in_it() {
        let mut paths: Vec<_> =
            ["a.b", "a/b", "a", "", "a/b/c", "a-"].iter().map(|p| VolumePath::parse(p.as_bytes()).unwrap()).collect();
        paths.sort();
        let sorted: Vec<_> = paths.iter().map(|p| String::from_utf8_lossy(p.as_bytes()).into_owned()).collect();
        assert_eq!(sorted, ["", "a", "a/b", "a/b/c", "a-", "a.b"]);
        assert!(paths[3].is_within(&paths[1]) && !paths[4].is_within(&paths[1]));
        assert_eq!(paths[3].below(&paths[1]).unwrap().as_bytes(), b"b/c");
    }
}
