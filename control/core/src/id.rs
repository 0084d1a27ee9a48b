//! Identifiers and counters, each its own type so that one can't stand in for another.
//!
//! Ids come in with the command: the leader makes them before replication, apply never does.

macro_rules! string_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Message)]
        pub struct $name(#[prost(string, tag = "1")] String);

        impl $name {
            /// Takes the id as it is; whether it is well formed is checked where a command brings it in.
            pub fn new(id: impl Into<String>) -> $name {
                $name(id.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> $name {
                $name(id.to_owned())
            }
        }
    };
}

macro_rules! number_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Message)]
        pub struct $name(#[prost(uint64, tag = "1")] pub u64);

        impl $name {
            /// The next one; the highest there can be stays itself.
            #[must_use]
            pub fn next(self) -> $name {
                $name(self.0.saturating_add(1))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

string_id!(
    /// A node for as long as it exists: `nd_` and hex digits. A node enrolled again keeps it; a new node of the same
    /// name gets another.
    NodeId
);
string_id!(
    /// A workload for as long as it exists; deleted and created again under one name it has another uid.
    WorkloadUid
);
string_id!(
    /// A join token or an API token; not secret.
    TokenId
);
string_id!(
    /// A move of one workload from node to node; a ULID that comes with the command, or its drain's id and a number.
    MoveId
);
string_id!(
    /// A drain of one node; a ULID that comes with the command.
    DrainId
);
number_id!(
    /// A server, a member of the raft group.
    ServerId
);
number_id!(
    /// Counts the grants of one workload; rises with each, never repeats. 0 = never placed.
    Generation
);
number_id!(
    /// Counts the sessions of one node; rises with each, never repeats. 0 = never connected.
    Epoch
);
number_id!(
    /// The log index of the entry that made or last changed an object. 0 = before all entries.
    Revision
);

/// True when `id` may be an id: 1 to 64 of letters, digits, `_` and `-`, so that keys, paths and URIs need no quoting.
pub(crate) fn is_well_formed(id: &str) -> bool {
    (1..=crate::limits::ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
