//! What another server may send, as bytes: for fuzzing.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{decode, encode, unseal};
use crate::types::{SnapshotMeta, TypeConfig, Vote};

/// Reads the bytes as each message of replication, and as a stored value. Returns how many of them they are.
///
/// # Panics
/// When a message that was read comes out different after it is written and read again.
pub fn read_as_every_message(bytes: &[u8]) -> usize {
    use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest, VoteRequest, VoteResponse};
    let read = [
        again::<AppendEntriesRequest<TypeConfig>>(bytes),
        again::<VoteRequest<TypeConfig>>(bytes),
        again::<VoteResponse<TypeConfig>>(bytes),
        again::<TransferLeaderRequest<TypeConfig>>(bytes),
        again::<(Vote, SnapshotMeta, u32)>(bytes),
        unseal(bytes).is_ok(),
    ];
    read.into_iter().filter(|read| *read).count()
}

fn again<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> bool {
    let Ok(message) = decode::<T>(bytes, "a message") else { return false };
    let written = encode(&message);
    let read: T = decode(&written, "a message").expect("what was written by us can be read");
    assert_eq!(encode(&read), written, "read and written again, it is another message");
    true
}
