//! What can go wrong: in a tree, and in a round.

use crate::{Hash, UnsafePath, VolumePath};

/// An operation on a tree that failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {operation} {path} of the volume: {source}")]
pub struct TreeError {
    /// A verb, as in "can't read".
    pub operation: &'static str,
    /// The entry.
    pub path: VolumePath,
    /// The system's reason.
    pub source: std::io::Error,
}

impl TreeError {
    /// The operation on that entry failed for that reason.
    pub fn new(operation: &'static str, path: &VolumePath, source: impl Into<std::io::Error>) -> Self {
        Self { operation, path: path.clone(), source: source.into() }
    }

    /// Is it only that the entry isn't there (any more)?
    pub fn is_absent(&self) -> bool {
        matches!(self.source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
    }
}

/// Why a round can't go on. Beginning it again is always right: what has arrived is found by scanning.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// The volume on this machine.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The peer, or an archive, names a path that is refused.
    #[error(transparent)]
    Path(#[from] UnsafePath),
    /// The peer's manifest contradicts itself.
    #[error("the manifest of the volume is refused: {0}; both nodes should run the same version of the agent")]
    Manifest(String),
    /// The volume is larger than we can copy.
    #[error("the volume has more than {limit} {what}; it can't be moved. Move its content by other means")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The named limit.
        limit: usize,
    },
    /// Content that isn't what its hash says. It was not written.
    #[error("chunk {hash} arrived damaged and was not written; it is asked for again")]
    Corrupt {
        /// What was asked for.
        hash: Hash,
    },
    /// Content that nobody asked for.
    #[error("the peer sent chunk {hash}, which was not asked for")]
    Unasked {
        /// What it says it is.
        hash: Hash,
    },
    /// A call that makes no sense at this point of the round.
    #[error("{0}, which the round doesn't await now")]
    OutOfTurn(&'static str),
    /// Something changed although the source is stopped.
    #[error("{what} changed during the final copy of the volume; something still writes to it at the source. Stop it")]
    Changed {
        /// Which file, or how many.
        what: String,
    },
    /// The final copy is not the original.
    #[error("the copy differs from its source at {path}; the round has to be done again")]
    Differs {
        /// The first entry that differs.
        path: VolumePath,
    },
    /// The peer could not be asked.
    #[error("can't get the volume from its source: {0}")]
    Peer(String),
    /// An archive that can't be read or written.
    #[error("can't {operation} the archive of the volume: {source}")]
    Archive {
        /// A verb.
        operation: &'static str,
        /// The reason.
        source: std::io::Error,
    },
}
