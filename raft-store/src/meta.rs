//! The small records beside the log: who the database belongs to, the vote, and positions.

use std::io;

use cara_env::{Batch, Cf};
use serde::{Deserialize, Serialize};

use crate::codec::{decode, encode};
use crate::disk::Disk;
use crate::types::{LogId, Vote};
use crate::{Config, OpenError};

/// The newest format of a database that this code reads and writes.
pub(crate) const FORMAT: u32 = 1;

const IDENTITY: &[u8] = b"identity";
pub(crate) const VOTE: &[u8] = b"vote";
pub(crate) const COMMITTED: &[u8] = b"committed";
pub(crate) const PURGED: &[u8] = b"purged";

/// Whose database it is. Fields are only ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    format: u32,
    cluster: String,
    id: u64,
}

impl Identity {
    fn wanted(&self) -> String {
        format!("the database of server {} of cluster {}", self.id, self.cluster)
    }
}

/// Checks that the database is what the configuration says; marks a new one as ours.
pub(crate) async fn check_identity(disk: &Disk, config: &Config) -> Result<(), OpenError> {
    let ours = Identity { format: FORMAT, cluster: config.cluster.clone(), id: config.id };
    let Some(stored) = disk.engine.get(Cf::Meta, IDENTITY)? else {
        return claim(disk, config, &ours).await;
    };
    let stored: Identity =
        decode(&stored, "the identity").map_err(|error| OpenError::Damaged { what: error.to_string() })?;
    if stored.format > FORMAT {
        return Err(OpenError::TooNew { found: stored.format, known: FORMAT });
    }
    if (&stored.cluster, stored.id) != (&ours.cluster, ours.id) {
        let found = format!("it is server {} of cluster {}", stored.id, stored.cluster);
        return Err(OpenError::Foreign { wanted: ours.wanted(), found });
    }
    if config.expect_empty && !is_unused(disk)? {
        return Err(OpenError::NotEmpty { id: config.id });
    }
    Ok(())
}

async fn claim(disk: &Disk, config: &Config, ours: &Identity) -> Result<(), OpenError> {
    for cf in Cf::ALL {
        if disk.engine.last(cf)?.is_some() {
            let found = "it holds data without an identity, written by another program".to_owned();
            return Err(OpenError::Foreign { wanted: ours.wanted(), found });
        }
    }
    if !config.expect_empty {
        return Err(OpenError::Empty { id: config.id });
    }
    let mut batch = Batch::new();
    batch.put(Cf::Meta, IDENTITY, encode(ours));
    match disk.engine.write(&batch) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => return Err(OpenError::StorageFull),
        done => done?,
    }
    disk.engine.sync().await?;
    Ok(())
}

/// Has the database nothing but its identity, as after a creation that was cut off?
fn is_unused(disk: &Disk) -> io::Result<bool> {
    let empty = |cf| disk.engine.last(cf).map(|last| last.is_none());
    Ok(empty(Cf::Log)? && empty(Cf::State)? && read_vote(disk)?.is_none())
}

pub(crate) fn read_vote(disk: &Disk) -> io::Result<Option<Vote>> {
    disk.engine.get(Cf::Meta, VOTE)?.map(|bytes| decode(&bytes, "the vote")).transpose()
}

/// Durable once it returns.
pub(crate) async fn save_vote(disk: &Disk, vote: &Vote) -> io::Result<()> {
    let mut batch = Batch::new();
    batch.put(Cf::Meta, VOTE, encode(vote));
    disk.write(&batch).await?;
    cara_env::point("raft.vote_written", || format!("term={}", vote.leader_id.term)).await;
    if !cara_env::planted("vote-not-synced") {
        disk.engine.sync().await?;
    }
    cara_env::point("raft.vote_saved", || format!("term={}", vote.leader_id.term)).await;
    Ok(())
}

pub(crate) fn read_committed(disk: &Disk) -> io::Result<Option<LogId>> {
    disk.engine.get(Cf::Meta, COMMITTED)?.map(|bytes| decode(&bytes, "the committed position")).transpose()
}

/// Not synced: an older position is safe, it is only used to reach the newest state sooner after a restart.
pub(crate) async fn save_committed(disk: &Disk, committed: &Option<LogId>) -> io::Result<()> {
    let mut batch = Batch::new();
    match committed {
        Some(log_id) => batch.put(Cf::Meta, COMMITTED, encode(log_id)),
        None => batch.delete(Cf::Meta, COMMITTED),
    }
    disk.write(&batch).await
}

pub(crate) fn read_purged(disk: &Disk) -> io::Result<Option<LogId>> {
    disk.engine.get(Cf::Meta, PURGED)?.map(|bytes| decode(&bytes, "the purged position")).transpose()
}

/// Adds the purged position to the batch that removes the entries.
pub(crate) fn put_purged(batch: &mut Batch, log_id: &LogId) {
    batch.put(Cf::Meta, PURGED, encode(log_id));
}
