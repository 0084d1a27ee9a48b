//! Snapshots: a copy of the state at one position, kept as checksummed chunks in the store.
//!
//! ```text
//!   snapshot/ c <id> <chunk> -> sealed bytes      any number of copies, most of them incomplete or old
//!             record         -> Record {id, ..}   the one that counts
//! ```
//!
//! A copy is written or received under a new id; one batch then points `record` at it. Whatever crashes before that
//! leaves chunks that nobody points to, and the next start removes them. Two older copies may be kept: the one before
//! the current one, which may still be on its way to a follower, and the one that is being received.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cara_env::{Batch, Cf, Engine, KeyValue};
use serde::{Deserialize, Serialize};

use crate::codec::{damaged, decode, encode, seal, unseal_or_fail};
use crate::disk::Disk;
use crate::types::SnapshotMeta;

/// Stands behind all chunks in key order, so that removing a range of them never touches it.
const CURRENT: &[u8] = b"record";
const CHUNK: u8 = b'c';

/// One complete copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) meta: SnapshotMeta,
    pub(crate) chunks: u32,
}

/// A handle to a complete copy in an engine.
#[derive(Clone)]
pub struct SnapshotData {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) id: u64,
    pub(crate) chunks: u32,
}

impl std::fmt::Debug for SnapshotData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SnapshotData({}, {} chunks)", self.id, self.chunks)
    }
}

impl SnapshotData {
    /// The bytes of one chunk.
    pub(crate) fn chunk(&self, number: u32) -> io::Result<Vec<u8>> {
        let what = format!("chunk {number} of snapshot {}", self.id);
        let sealed = self.engine.get(Cf::Snapshot, &chunk_key(self.id, number))?;
        let sealed = sealed.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{what} is gone")))?;
        Ok(unseal_or_fail(&sealed, &what)?.to_vec())
    }

    /// The pairs of the state, in key order.
    pub(crate) fn pairs(&self) -> SnapshotPairs<'_> {
        SnapshotPairs { data: self, next: 0, buffer: Vec::new(), at: 0, error: None }
    }
}

fn chunk_key(id: u64, number: u32) -> Vec<u8> {
    let mut key = vec![CHUNK];
    key.extend_from_slice(&id.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Copies of one store.
pub(crate) struct Snapshots {
    disk: Arc<Disk>,
    chunk_bytes: usize,
    next_id: AtomicU64,
    /// The copy that is being received; it must not be cleaned up before it is installed.
    incoming: Mutex<Option<u64>>,
}

impl Snapshots {
    /// Removes what incomplete copies left behind.
    pub(crate) async fn open(disk: Arc<Disk>, chunk_bytes: usize) -> io::Result<Self> {
        let current = read_current(&disk)?;
        let id = current.as_ref().map_or(0, |record| record.id);
        let mut batch = Batch::new();
        batch.delete_range(Cf::Snapshot, chunk_key(0, 0), chunk_key(id, 0));
        batch.delete_range(Cf::Snapshot, chunk_key(id + 1, 0), chunk_key(u64::MAX, u32::MAX));
        disk.write(&batch).await?;
        Ok(Self { disk, chunk_bytes: chunk_bytes.max(1), next_id: AtomicU64::new(id + 1), incoming: Mutex::default() })
    }

    pub(crate) fn current(&self) -> io::Result<Option<Record>> {
        read_current(&self.disk)
    }

    pub(crate) fn data(&self, record: &Record) -> SnapshotData {
        SnapshotData { engine: self.disk.engine.clone(), id: record.id, chunks: record.chunks }
    }

    /// Starts a copy under a new id.
    pub(crate) fn writer(&self) -> Writer<'_> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Writer { snapshots: self, id, chunks: 0, buffer: Vec::new() }
    }

    /// Starts a copy for a sender's chunks, and removes what an earlier sender left unfinished. One at a time.
    pub(crate) async fn receive(&self) -> io::Result<Writer<'_>> {
        let writer = self.writer();
        let stale = self.set_incoming(Some(writer.id));
        if let Some(stale) = stale {
            let mut batch = Batch::new();
            batch.delete_range(Cf::Snapshot, chunk_key(stale, 0), chunk_key(stale + 1, 0));
            self.disk.write(&batch).await?;
        }
        Ok(writer)
    }

    /// The received copy is installed, or installed copies have overtaken it.
    pub(crate) fn received(&self) {
        self.set_incoming(None);
    }

    fn set_incoming(&self, id: Option<u64>) -> Option<u64> {
        std::mem::replace(&mut *self.incoming.lock().unwrap_or_else(PoisonError::into_inner), id)
    }

    /// Adds to a batch what makes a copy the current one and removes those that nobody needs any more.
    pub(crate) fn put_current(&self, batch: &mut Batch, record: &Record, previous: Option<&Record>) {
        batch.put(Cf::Snapshot, CURRENT, encode(record));
        let incoming = *self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = [previous.map(|previous| previous.id), incoming].into_iter().flatten().fold(record.id, u64::min);
        batch.delete_range(Cf::Snapshot, chunk_key(0, 0), chunk_key(keep, 0));
    }

    /// The same copy in this store; the chunks are carried over when they are in another one.
    pub(crate) async fn adopt(&self, data: SnapshotData) -> io::Result<SnapshotData> {
        if Arc::ptr_eq(&self.disk.engine, &data.engine) {
            return Ok(data);
        }
        let mut writer = self.writer();
        for number in 0..data.chunks {
            writer.add_chunk(&data.chunk(number)?).await?;
        }
        writer.finish().await
    }
}

fn read_current(disk: &Disk) -> io::Result<Option<Record>> {
    disk.engine.get(Cf::Snapshot, CURRENT)?.map(|bytes| decode(&bytes, "the snapshot's record")).transpose()
}

/// A copy that is being written.
pub(crate) struct Writer<'a> {
    snapshots: &'a Snapshots,
    id: u64,
    chunks: u32,
    buffer: Vec<u8>,
}

impl Writer<'_> {
    /// Adds a pair of the state. Pairs are a byte stream: lengths, key, value; chunks cut it anywhere.
    pub(crate) async fn add_pair(&mut self, (key, value): KeyValue) -> io::Result<()> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("keys and values are far below 4 GiB");
        self.buffer.extend_from_slice(&length(&key).to_le_bytes());
        self.buffer.extend_from_slice(&length(&value).to_le_bytes());
        self.buffer.extend_from_slice(&key);
        self.buffer.extend_from_slice(&value);
        while self.buffer.len() >= self.snapshots.chunk_bytes {
            let rest = self.buffer.split_off(self.snapshots.chunk_bytes);
            let chunk = std::mem::replace(&mut self.buffer, rest);
            self.add_chunk(&chunk).await?;
        }
        Ok(())
    }

    /// Adds a chunk as another store cut it.
    pub(crate) async fn add_chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut batch = Batch::new();
        batch.put(Cf::Snapshot, chunk_key(self.id, self.chunks), seal(bytes));
        self.snapshots.disk.write(&batch).await?;
        self.chunks += 1;
        tokio::task::yield_now().await; // A large state must not hold up heartbeats on the same thread.
        Ok(())
    }

    /// Writes what is left. The copy is complete then, but not the current one.
    pub(crate) async fn finish(mut self) -> io::Result<SnapshotData> {
        if !self.buffer.is_empty() {
            let rest = std::mem::take(&mut self.buffer);
            self.add_chunk(&rest).await?;
        }
        Ok(SnapshotData { engine: self.snapshots.disk.engine.clone(), id: self.id, chunks: self.chunks })
    }
}

/// The pairs in a copy. It ends early on damage, which [`SnapshotPairs::finish`] then tells.
pub(crate) struct SnapshotPairs<'a> {
    data: &'a SnapshotData,
    next: u32,
    buffer: Vec<u8>,
    at: usize,
    error: Option<io::Error>,
}

impl SnapshotPairs<'_> {
    /// The error that ended the walk, if there was one.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    /// The next `n` bytes of the stream; `None` at its end or after an error.
    fn take(&mut self, n: usize) -> Option<Vec<u8>> {
        while self.buffer.len() - self.at < n {
            if self.next == self.data.chunks {
                return None;
            }
            match self.data.chunk(self.next) {
                Ok(chunk) => {
                    self.buffer.drain(..self.at);
                    self.at = 0;
                    self.buffer.extend_from_slice(&chunk);
                    self.next += 1;
                }
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            }
        }
        let bytes = self.buffer[self.at..self.at + n].to_vec();
        self.at += n;
        Some(bytes)
    }

    fn pair(&mut self) -> Option<KeyValue> {
        let lengths = self.take(8)?;
        let (key, value) = lengths.split_at(4);
        let length = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
        let key = self.take(length(key));
        let value = self.take(length(value));
        match (key, value) {
            (Some(key), Some(value)) => Some((key, value)),
            _ => {
                self.error.get_or_insert_with(|| damaged("a snapshot ends in the middle of a pair"));
                None
            }
        }
    }
}

impl Iterator for SnapshotPairs<'_> {
    type Item = KeyValue;

    fn next(&mut self) -> Option<KeyValue> {
        if self.error.is_some() {
            return None;
        }
        let pair = self.pair();
        if pair.is_none() && self.error.is_none() && self.at != self.buffer.len() {
            self.error = Some(damaged("a snapshot ends in the middle of a pair"));
        }
        pair
    }
}
