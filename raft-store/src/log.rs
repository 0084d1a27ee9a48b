//! The raft log: one key per entry, checksummed, and group commit.
//!
//! Appends are written at once and become durable together: one task takes all waiting completions, syncs once, and
//! reports them in order. The vote goes through the same engine, so it can't overtake an entry.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_env::{Batch, Cf};
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{OptionalSend, entry::RaftEntry};
use tokio::sync::mpsc;

use crate::codec::{Unsealed, damaged, decode, encode_sealed, unseal, unseal_or_fail};
use crate::disk::{Disk, same};
use crate::meta;
use crate::recent::{Recent, size};
use crate::types::{Entry, LogId, TypeConfig, Vote};

/// Appends that may wait for a sync. More than a core can submit during one; when it is full, appending waits.
const PENDING_MAX: usize = 1024;

/// Bytes of entries in one answer to a replication task, unless a single entry is larger. Far below a gRPC message.
const READ_BYTES: usize = 2 * 1024 * 1024;

pub(crate) fn key(index: u64) -> [u8; 8] {
    index.to_be_bytes()
}

pub(crate) fn index_of(key: &[u8]) -> io::Result<u64> {
    let key = key.try_into().map_err(|_| damaged("a log key is not an index"))?;
    Ok(u64::from_be_bytes(key))
}

pub(crate) fn encode_entry(entry: &Entry) -> Vec<u8> {
    encode_sealed(entry, size(entry))
}

pub(crate) fn decode_entry(index: u64, value: &[u8]) -> io::Result<Entry> {
    let what = format!("log entry {index}");
    let entry: Entry = decode(unseal_or_fail(value, &what)?, &what)?;
    if entry.log_id.index() == index { Ok(entry) } else { Err(damaged(format!("{what} stands at the wrong place"))) }
}

/// Looks at every entry. A torn last entry that nobody can have relied on is cut off; anything else is damage.
pub(crate) async fn verify(disk: &Disk, applied: Option<u64>) -> io::Result<()> {
    let purged = meta::read_purged(disk)?.map(|id| id.index());
    let relied_on = meta::read_committed(disk)?.map(|id| id.index()).max(applied).max(purged);
    let last = disk.engine.last(Cf::Log)?.map(|(key, _)| index_of(&key)).transpose()?;
    let first = purged.map_or(0, |index| index + 1);
    let mut torn = None;
    let mut pairs = disk.pairs(Cf::Log, &[], None);
    for (expected, (key, value)) in (first..).zip(pairs.by_ref()) {
        let index = index_of(&key)?;
        if index != expected {
            return Err(damaged(format!("log entry {expected} is missing, the next one is {index}")));
        }
        match unseal(&value) {
            Err(_) if cara_env::planted("damage-taken-for-torn-tail") => {
                torn = Some(index);
                break;
            }
            Err(Unsealed::Torn) if Some(index) == last && Some(index) > relied_on => torn = Some(index),
            _ => drop(decode_entry(index, &value)?),
        }
    }
    pairs.finish()?;
    if let Some(index) = torn {
        tracing::warn!(index, "the last log entry was cut off by a crash; it is dropped");
        let mut batch = Batch::new();
        batch.delete_range(Cf::Log, key(index), key(u64::MAX));
        disk.write(&batch).await?;
        disk.engine.sync().await?;
    }
    Ok(())
}

/// openraft's log storage over the engine.
#[derive(Clone)]
pub struct Log {
    disk: Arc<Disk>,
    recent: Arc<Mutex<Recent>>,
    flush: mpsc::Sender<IOFlushed<TypeConfig>>,
}

impl Log {
    pub(crate) fn new(disk: Arc<Disk>) -> Self {
        let (flush, waiting) = mpsc::channel(PENDING_MAX);
        drop(cara_env::spawn(flush_loop(disk.clone(), waiting)));
        Self { disk, recent: Arc::default(), flush }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads `start..end`, stopping behind `bytes_max`, but never before the first entry.
    fn read(&self, start: u64, end: Option<u64>, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let recent = self.recent().read(start, end, bytes_max);
        recent.map_or_else(|| read(&self.disk, start, end, bytes_max), Ok)
    }

    fn has(&self, index: u64) -> bool {
        self.disk.engine.get(Cf::Log, &key(index)).is_ok_and(|found| found.is_some())
    }

    fn last_in_log(&self) -> io::Result<Option<LogId>> {
        let Some((key, value)) = self.disk.engine.last(Cf::Log)? else { return Ok(None) };
        Ok(Some(decode_entry(index_of(&key)?, &value)?.log_id))
    }
}

/// Syncs for all who wait, and tells them in the order in which they came. Ends when the log is dropped.
async fn flush_loop(disk: Arc<Disk>, mut waiting: mpsc::Receiver<IOFlushed<TypeConfig>>) {
    let mut batch = Vec::new();
    let mut sync_at = Duration::ZERO;
    while waiting.recv_many(&mut batch, PENDING_MAX).await > 0 {
        if cara_env::planted("ack-before-sync") {
            batch.drain(..).for_each(|callback| callback.io_completed(Ok(())));
            let now = disk.env.clock.monotonic();
            if now < sync_at {
                continue;
            }
            sync_at = now + Duration::from_secs(2);
        }
        let synced = disk.engine.sync().await;
        for callback in batch.drain(..) {
            callback.io_completed(same(&synced));
        }
    }
}

fn bounds(range: &impl RangeBounds<u64>) -> (u64, Option<u64>) {
    let start = match range.start_bound() {
        Bound::Included(index) => *index,
        Bound::Excluded(index) => index.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(index) => index.checked_add(1),
        Bound::Excluded(index) => Some(*index),
        Bound::Unbounded => None,
    };
    (start, end)
}

/// The same from the store.
fn read(disk: &Disk, start: u64, end: Option<u64>, bytes_max: usize) -> io::Result<Vec<Entry>> {
    if end.is_some_and(|end| end <= start) {
        return Ok(Vec::new());
    }
    let to = end.map(key);
    let mut entries: Vec<Entry> = Vec::new();
    let mut bytes = 0;
    let mut pairs = disk.pairs(Cf::Log, &key(start), to.as_ref().map(|to| &to[..]));
    for (key, value) in pairs.by_ref() {
        bytes += value.len();
        if bytes > bytes_max && !entries.is_empty() {
            break;
        }
        let entry = decode_entry(index_of(&key)?, &value)?;
        if let Some(before) = entries.last()
            && before.log_id.index() + 1 != entry.log_id.index()
        {
            return Err(damaged(format!("log entry {} is missing", before.log_id.index() + 1)));
        }
        entries.push(entry);
    }
    pairs.finish()?;
    Ok(entries)
}

impl RaftLogReader<TypeConfig> for Log {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let (start, end) = bounds(&range);
        self.read(start, end, usize::MAX)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        meta::read_vote(&self.disk)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        let entries = self.read(start, Some(end), READ_BYTES)?;
        if start < end && entries.first().is_none_or(|first| first.log_id.index() != start) {
            // The beginning was purged since the range was chosen. What follows the gap must not be sent in the place
            // of what is missing. Nothing is sent, and the stream that wanted it ends: see `Paced`.
            self.disk.gaps.fetch_add(1, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        Ok(entries)
    }
}

impl RaftLogStorage<TypeConfig> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let last_purged_log_id = meta::read_purged(&self.disk)?;
        let last_log_id = self.last_in_log()?.or(last_purged_log_id);
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        meta::save_vote(&self.disk, vote).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        meta::save_committed(&self.disk, &committed).await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        meta::read_committed(&self.disk)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut batch = Batch::new();
        let mut written = Vec::new();
        for entry in entries {
            if cara_env::planted("log-tail-not-truncated") && self.has(entry.index()) {
                continue; // It is here already.
            }
            batch.put(Cf::Log, key(entry.index()), encode_entry(&entry));
            written.push(entry);
        }
        self.disk.write(&batch).await?;
        self.recent().add(written);
        // The loop ends only after the last sender is gone, and this is one.
        self.flush.send(callback).await.map_err(|_| io::Error::other("the sync task is gone"))
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        if cara_env::planted("log-tail-not-truncated") {
            return Ok(()); // The leader's entries come over it.
        }
        let from = last_log_id.map_or(0, |id| id.index() + 1);
        let mut batch = Batch::new();
        batch.delete_range(Cf::Log, key(from), key(u64::MAX));
        self.recent().truncate(from);
        self.disk.write(&batch).await
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        let end = log_id.index() + if cara_env::planted("purged-too-early") { 2 } else { 1 };
        let mut batch = Batch::new();
        batch.delete_range(Cf::Log, key(0), key(end));
        meta::put_purged(&mut batch, &log_id);
        self.recent().purge(end);
        self.disk.write(&batch).await?;
        cara_env::point("raft.purged", || format!("index={}", log_id.index())).await;
        Ok(())
    }
}
