//! openraft's type parameters, fixed once; nothing of them leaves this crate.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Position;

/// A command or a reply: bytes that only the domain understands. Clones share them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub bytes::Bytes);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

// By hand, because serde would treat the vector as a sequence and go through it byte by byte.
impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes::Bytes::copy_from_slice(bytes)))
            }
        }
        deserializer.deserialize_byte_buf(Visitor)
    }
}

openraft::declare_raft_types!(
    /// One leader per term, as in the paper: a term alone then tells an old leader's orders from a new one's.
    pub TypeConfig:
        D = Bytes,
        R = Bytes,
        LeaderId = openraft::impls::leader_id_std::LeaderId<u64, u64>,
        AsyncRuntime = crate::rt::Runtime,
);

pub(crate) type LogId = openraft::alias::LogIdOf<TypeConfig>;
pub(crate) type Vote = openraft::alias::VoteOf<TypeConfig>;
pub(crate) type Entry = openraft::alias::EntryOf<TypeConfig>;
pub(crate) type Membership = openraft::alias::StoredMembershipOf<TypeConfig>;
pub(crate) type SnapshotMeta = openraft::alias::SnapshotMetaOf<TypeConfig>;
pub(crate) type Snapshot = openraft::alias::SnapshotOf<TypeConfig, crate::snapshot::SnapshotData>;
/// What openraft says to a command.
pub(crate) type Written = Result<
    openraft::raft::ClientWriteResponse<TypeConfig>,
    openraft::errors::RaftError<TypeConfig, openraft::errors::ClientWriteError<TypeConfig>>,
>;
pub(crate) type Raft<SM> = openraft::Raft<TypeConfig, crate::state::Machine<SM>>;

pub(crate) fn position(log_id: &LogId) -> Position {
    Position { term: **log_id.committed_leader_id(), index: log_id.index() }
}
