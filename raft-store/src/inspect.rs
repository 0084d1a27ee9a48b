//! What a write to a server's database says about replication, for checkers that watch from outside.
//!
//! Pure: it takes the operations of a batch, one by one and in their order, and gives plain data. A reader that starts
//! late feeds every pair that is there as a put ([`read_pair`]). Nothing here is used by replication itself.
//!
//! ```text
//!   Engine::write(batch) ──► each op ──► read ──► Change: vote, entry, entries gone, purged, committed, applied
//! ```

use std::collections::BTreeSet;
use std::io;

use cara_env::{Cf, Op};
use openraft::EntryPayload;

use crate::Position;
use crate::codec::{decode, encode};
use crate::log::{decode_entry, index_of};
use crate::meta::{COMMITTED, PURGED, VOTE};
use crate::state::{Applied, DATA, POSITION};
use crate::types::{Entry, LogId, Vote, position};

/// A vote as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredVote {
    /// The newest term that the server has taken part in.
    pub term: u64,
    /// Id of the server that has its vote in this term.
    pub voted_for: u64,
    /// The server knows that this one was elected.
    pub committed: bool,
}

/// A log entry as it is stored. Which server led its term is not in it: there is one leader a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// Its place.
    pub at: Position,
    /// Hash of what it says, the same on every server and in every run.
    pub fingerprint: u64,
    /// What the machine is to apply; none for an entry of replication's own.
    pub command: Option<Vec<u8>>,
    /// For an entry that changes the members.
    pub members: Option<StoredMembers>,
}

/// Who belongs to the cluster, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredMembers {
    /// Each set needs a majority: one set, or the old and the new one during a change; none before there are members.
    pub voters: Vec<BTreeSet<u64>>,
    /// Receive the log and don't vote.
    pub learners: BTreeSet<u64>,
}

/// What one operation changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The vote; none when it was removed, which replication never does.
    Vote(Option<StoredVote>),
    /// An entry was added, or stands now in the place of another one.
    Entry(StoredEntry),
    /// The entries with an index in `from..to` are gone. One batch removes the beginning and sets
    /// [`Change::Purged`], or removes the end.
    EntriesGone {
        /// First index.
        from: u64,
        /// Behind the last index.
        to: u64,
    },
    /// All up to here are in a snapshot.
    Purged(Option<Position>),
    /// All up to here are known to be committed. Written without a sync: after a power loss it may be older.
    Committed(Option<Position>),
    /// The machine's state is the one behind this entry.
    Applied {
        /// The last entry; none before the first.
        at: Option<Position>,
        /// The entry that made the members what they are; none for those that the cluster began with.
        members_at: Option<Position>,
        /// Members in that state.
        members: StoredMembers,
    },
}

/// The key of the machine's own pair that is stored under this key among replication's; none for a pair of replication's.
pub fn machine_key(stored: &[u8]) -> Option<&[u8]> {
    stored.strip_prefix(DATA)
}

/// What this operation changes; none for all that is not replication's own (the domain's state, copies, identity).
///
/// # Errors
/// `InvalidData` for what replication can't have written.
pub fn read(op: &Op) -> io::Result<Option<Change>> {
    match op {
        Op::Put(cf, key, value) => read_pair(*cf, key, Some(value)),
        Op::Delete(cf, key) => read_pair(*cf, key, None),
        Op::DeleteRange(Cf::Log, from, to) => {
            let (from, to) = (index_of(from)?, index_of(to)?);
            Ok((from < to).then_some(Change::EntriesGone { from, to }))
        }
        Op::DeleteRange(..) => Ok(None),
    }
}

/// As [`read`], for a pair that is there (with its value) or was deleted (without).
///
/// # Errors
/// As [`read`].
pub fn read_pair(cf: Cf, key: &[u8], value: Option<&[u8]>) -> io::Result<Option<Change>> {
    let log_id = |what: &str| value.map(|bytes| decode::<LogId>(bytes, what)).transpose();
    let change = match (cf, key) {
        (Cf::Log, key) => {
            let index = index_of(key)?;
            match value {
                Some(value) => Change::Entry(entry(&decode_entry(index, value)?)),
                None => Change::EntriesGone { from: index, to: index.saturating_add(1) },
            }
        }
        (Cf::Meta, VOTE) => {
            let vote: Option<Vote> = value.map(|bytes| decode(bytes, "the vote")).transpose()?;
            Change::Vote(vote.map(|vote| StoredVote {
                term: vote.leader_id.term,
                voted_for: vote.leader_id.voted_for,
                committed: vote.committed,
            }))
        }
        (Cf::Meta, PURGED) => Change::Purged(log_id("the purged position")?.as_ref().map(position)),
        (Cf::Meta, COMMITTED) => Change::Committed(log_id("the committed position")?.as_ref().map(position)),
        (Cf::State, POSITION) => {
            let applied: Option<Applied> = value.map(|bytes| decode(bytes, "the applied position")).transpose()?;
            let applied = applied.unwrap_or_default();
            Change::Applied {
                at: applied.log_id.as_ref().map(position),
                members_at: applied.membership.log_id().as_ref().map(position),
                members: members(applied.membership.membership()),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(change))
}

fn entry(entry: &Entry) -> StoredEntry {
    let (command, members) = match &entry.payload {
        EntryPayload::Blank => (None, None),
        EntryPayload::Normal(command) => (Some(command.0.to_vec()), None),
        EntryPayload::Membership(membership) => (None, Some(members(membership))),
    };
    // With the kind of the payload, so that a blank entry differs from an empty command.
    StoredEntry { at: position(&entry.log_id), fingerprint: hash(&encode(&entry.payload)), command, members }
}

fn members(membership: &openraft::Membership<u64, openraft::BasicNode>) -> StoredMembers {
    StoredMembers { voters: membership.get_joint_config().clone(), learners: membership.learner_ids().collect() }
}

/// FNV-1a with 64 bits: enough to tell apart what may stand at one place.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use cara_env::{Batch, Engine, Env, KeyValue};
    use futures_util::stream;
    use openraft::entry::RaftEntry;
    use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};

    use super::*;
    use crate::disk::Disk;
    use crate::log::Log;
    use crate::memory::MemoryEngine;
    use crate::snapshot::Snapshots;
    use crate::state::{Machine, Shared};
    use crate::testing::{Command, Registers};
    use crate::types::{Bytes, TypeConfig};

    /// Memory that keeps every operation.
    #[derive(Default)]
    struct Watched(MemoryEngine, Mutex<Vec<Op>>);

    impl Watched {
        /// What was changed since the last call.
        fn changes(&self) -> Vec<Change> {
            let ops = std::mem::take(&mut *self.1.lock().expect("no panic while locked"));
            ops.iter().filter_map(|op| read(op).expect("readable")).collect()
        }
    }

    #[async_trait::async_trait]
    impl Engine for Watched {
        fn get(&self, cf: Cf, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
            self.0.get(cf, key)
        }

        fn scan(&self, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> io::Result<Vec<KeyValue>> {
            self.0.scan(cf, from, to, limit)
        }

        fn last(&self, cf: Cf) -> io::Result<Option<KeyValue>> {
            self.0.last(cf)
        }

        fn write(&self, batch: &Batch) -> io::Result<()> {
            self.1.lock().expect("no panic while locked").extend(batch.ops.iter().cloned());
            self.0.write(batch)
        }

        async fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log_id(term: u64, index: u64) -> LogId {
        openraft::testing::log_id::<TypeConfig>(term, 1, index)
    }

    fn command(term: u64, index: u64, value: i64) -> Entry {
        let command = Command::Set("register".into(), value).encode();
        Entry { log_id: log_id(term, index), payload: EntryPayload::Normal(Bytes(command.into())) }
    }

    fn joint(term: u64, index: u64) -> Entry {
        let nodes: BTreeMap<u64, openraft::BasicNode> = (1..=5).map(|id| (id, Default::default())).collect();
        let voters = vec![BTreeSet::from([1, 2, 3]), BTreeSet::from([1, 2, 4])];
        let membership = openraft::Membership::new(voters, nodes).expect("every voter has an address");
        Entry::new_membership(log_id(term, index), membership)
    }

    fn at(term: u64, index: u64) -> Option<Position> {
        Some(Position { term, index })
    }

    fn entries(changes: Vec<Change>) -> Vec<StoredEntry> {
        changes.into_iter().map(|c| if let Change::Entry(entry) = c { entry } else { panic!("{c:?}") }).collect()
    }

    #[tokio::test]
    async fn what_a_log_writes_is_read_back() {
        let engine = Arc::new(Watched::default());
        let mut log = Log::new(Arc::new(Disk::new(engine.clone(), Env::real())));
        let mut vote = Vote::new(7, 3);
        log.save_vote(&vote).await.expect("saved");
        assert_eq!(engine.changes(), [Change::Vote(Some(StoredVote { term: 7, voted_for: 3, committed: false }))]);
        vote.committed = true;
        log.save_vote(&vote).await.expect("saved");
        assert_eq!(engine.changes(), [Change::Vote(Some(StoredVote { term: 7, voted_for: 3, committed: true }))]);

        let blank = Entry { log_id: log_id(6, 2), payload: EntryPayload::Blank };
        let empty = Entry { log_id: log_id(7, 3), payload: EntryPayload::Normal(Bytes::default()) };
        let all = [command(1, 0, 5), command(6, 1, 5), blank, empty, joint(7, 4), command(7, 5, 6)];
        log.blocking_append(all).await.expect("appended");
        let read = entries(engine.changes());
        let places: Vec<_> = read.iter().map(|e| (e.at.term, e.at.index)).collect();
        assert_eq!(places, [(1, 0), (6, 1), (6, 2), (7, 3), (7, 4), (7, 5)]);
        assert_eq!(read[0].fingerprint, read[1].fingerprint, "the same words have the same hash");
        let different: BTreeSet<u64> = read.iter().map(|e| e.fingerprint).collect();
        assert_eq!(different.len(), 5, "and others another one");
        let members = read[4].members.as_ref().expect("it changes the members");
        assert_eq!(members.voters, [BTreeSet::from([1, 2, 3]), BTreeSet::from([1, 2, 4])]);
        assert_eq!(members.learners, BTreeSet::from([5]));
        assert!(read.iter().filter(|e| e.members.is_some()).count() == 1);

        log.save_committed(Some(log_id(7, 3))).await.expect("saved");
        assert_eq!(engine.changes(), [Change::Committed(at(7, 3))]);
        log.truncate_after(Some(log_id(7, 4))).await.expect("truncated");
        assert_eq!(engine.changes(), [Change::EntriesGone { from: 5, to: u64::MAX }]);
        log.purge(log_id(6, 1)).await.expect("purged");
        assert_eq!(engine.changes(), [Change::EntriesGone { from: 0, to: 2 }, Change::Purged(at(6, 1))]);
    }

    #[tokio::test]
    async fn what_a_machine_writes_is_read_back_and_the_domain_s_pairs_are_nobody_s_business() {
        let engine = Arc::new(Watched::default());
        let disk = Arc::new(Disk::new(engine.clone(), Env::real()));
        let snapshots = Arc::new(Snapshots::open(disk.clone(), 16).await.expect("snapshots open"));
        let shared = Arc::new(Shared::new(Registers::default()));
        let mut machine = Machine::open(disk, shared, snapshots, 0).expect("the state opens");
        engine.changes();
        let entries = [joint(1, 0), command(2, 1, 5)].map(|entry| Ok((entry, None)));
        machine.apply(stream::iter(entries)).await.expect("applied");
        let changes = engine.changes();
        let [Change::Applied { at: applied, members_at, members }] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!((*applied, *members_at, members.voters.len()), (at(2, 1), at(1, 0), 2));
        // The same from what lies there, for a reader that starts late.
        let pairs = engine.scan(Cf::State, &[], None, usize::MAX).expect("scanned");
        assert!(pairs.len() > 1, "the domain has pairs as well");
        let found: Vec<_> = pairs.iter().filter_map(|(k, v)| read_pair(Cf::State, k, Some(v)).expect("read")).collect();
        assert_eq!(found, changes);
    }

    #[test]
    fn damage_is_an_error_and_what_is_foreign_is_none() {
        let sealed = crate::log::encode_entry(&command(1, 4, 5));
        let key = crate::log::key;
        assert!(read_pair(Cf::Log, &key(4), Some(&sealed)).is_ok());
        assert!(read_pair(Cf::Log, &key(5), Some(&sealed)).is_err(), "at the wrong place");
        assert!(read_pair(Cf::Log, &key(4), Some(&sealed[..sealed.len() - 1])).is_err(), "torn");
        assert!(read_pair(Cf::Log, b"short", Some(&sealed)).is_err(), "not an index");
        assert!(read_pair(Cf::Meta, VOTE, Some(&[])).is_err(), "no vote");
        assert_eq!(read_pair(Cf::Log, &key(4), None).expect("read"), Some(Change::EntriesGone { from: 4, to: 5 }));
        assert_eq!(read_pair(Cf::Meta, b"identity", Some(&[1])).expect("read"), None);
        assert_eq!(read_pair(Cf::Snapshot, b"record", Some(&[1])).expect("read"), None);
    }
}
