//! The state machine's worker: applies committed entries in memory, and lets [`Behind`] keep state and position.
//!
//! ```text
//!   state/ m         -> last applied position and membership
//!          d <key>   -> what the domain's machine wrote
//! ```
//!
//! State writes are late and not synced. The log is, and comes earlier in the same write-ahead log, so after a crash the
//! state is at most older, and raft applies the missing entries again.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use cara_env::{Batch, Cf};
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::behind::Behind;
use crate::codec::{damaged, decode, encode};
use crate::disk::{Disk, PAGE};
use crate::snapshot::{Record, SnapshotData, Snapshots};
use crate::types::{Bytes, Entry, LogId, Membership, Snapshot, SnapshotMeta, TypeConfig, position};
use crate::{Position, StateMachine};

pub(crate) const POSITION: &[u8] = b"m";
pub(crate) const DATA: &[u8] = b"d";
const DATA_END: &[u8] = b"e";

/// Entries that are applied under one lock: enough to share the cost, few enough that readers don't wait long.
const APPLY_MAX: usize = 256;

/// The domain's machine and how far it is; readers share it.
pub(crate) struct Shared<SM> {
    inner: RwLock<(SM, Option<Position>)>,
}

impl<SM> Shared<SM> {
    pub(crate) fn new(machine: SM) -> Self {
        Self { inner: RwLock::new((machine, None)) }
    }

    /// Reads the machine and its position, consistent with each other.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&SM, Option<Position>) -> T) -> T {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        read(&inner.0, inner.1)
    }

    fn write<T>(&self, write: impl FnOnce(&mut SM, &mut Option<Position>) -> T) -> T {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let (machine, at) = &mut *inner;
        write(machine, at)
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Applied {
    pub(crate) log_id: Option<LogId>,
    pub(crate) membership: Membership,
}

/// Index of the last applied entry that the store knows of.
pub(crate) fn applied_index(disk: &Disk) -> io::Result<Option<u64>> {
    Ok(read_applied(disk)?.log_id.map(|log_id| log_id.index()))
}

fn read_applied(disk: &Disk) -> io::Result<Applied> {
    let stored = disk.engine.get(Cf::State, POSITION)?;
    stored.map_or(Ok(Applied::default()), |bytes| decode(&bytes, "the applied position"))
}

/// The position of a snapshot; 0 for an empty one.
fn index_of(meta: &SnapshotMeta) -> u64 {
    meta.last_log_id.as_ref().map_or(0, LogId::index)
}

/// The index and the members of an entry that changes them.
fn membership_of(entry: &Entry) -> Option<(u64, &openraft::Membership<u64, openraft::BasicNode>)> {
    match &entry.payload {
        EntryPayload::Membership(membership) => Some((entry.log_id.index(), membership)),
        EntryPayload::Blank | EntryPayload::Normal(_) => None,
    }
}

pub(crate) fn data_key(key: &[u8]) -> Vec<u8> {
    [DATA, key].concat()
}

/// openraft's state machine over the domain's.
pub struct Machine<SM> {
    disk: Arc<Disk>,
    shared: Arc<Shared<SM>>,
    snapshots: Arc<Snapshots>,
    behind: Arc<Mutex<Behind>>,
}

impl<SM: StateMachine> Machine<SM> {
    /// Loads the stored state into the domain's machine.
    pub(crate) fn open(
        disk: Arc<Disk>,
        shared: Arc<Shared<SM>>,
        snapshots: Arc<Snapshots>,
        write_behind: usize,
    ) -> io::Result<Self> {
        let applied = read_applied(&disk)?;
        let mut pairs = disk.pairs(Cf::State, DATA, Some(DATA_END));
        let mut stripped = pairs.by_ref().map(|(key, value)| (key[DATA.len()..].to_vec(), value));
        let loaded = shared.write(|machine, at| {
            *at = applied.log_id.as_ref().map(position);
            machine.load(&mut stripped)
        });
        pairs.finish()?;
        loaded.map_err(|error| damaged(error.to_string()))?;
        Ok(Self { disk, shared, snapshots, behind: Arc::new(Mutex::new(Behind::new(applied, write_behind))) })
    }

    /// What is not in the store yet, for whoever needs it there.
    pub(crate) fn behind(&self) -> Arc<Mutex<Behind>> {
        self.behind.clone()
    }

    /// Applies entries in memory and gives the replies.
    fn apply_in_memory(&self, behind: &mut Behind, entries: &[Entry]) -> Vec<Bytes> {
        behind.advanced();
        self.shared.write(|machine, at| {
            let mut replies = Vec::with_capacity(entries.len());
            for entry in entries {
                let here = position(&entry.log_id);
                let mut reply = Bytes::default();
                match &entry.payload {
                    EntryPayload::Blank => {}
                    EntryPayload::Membership(membership) => {
                        behind.applied.membership = Membership::new(Some(entry.log_id), membership.clone());
                    }
                    EntryPayload::Normal(command) => {
                        let done = machine.apply(here, &command.0);
                        done.writes.into_iter().for_each(|(key, value)| behind.note(key, value));
                        reply = Bytes(done.reply.into());
                    }
                }
                behind.applied.log_id = Some(entry.log_id);
                *at = Some(here);
                replies.push(reply);
            }
            replies
        })
    }

    /// Copies the state between two applies, so that the copy is of one moment.
    async fn build(&self) -> io::Result<Snapshot> {
        let previous = self.snapshots.current()?;
        let mut behind = self.behind.lock().await;
        let applied = &behind.applied;
        let meta = SnapshotMeta { last_log_id: applied.log_id, last_membership: applied.membership.clone() };
        if let Some(current) = &previous
            && current.meta == meta
        {
            return Ok(Snapshot { meta, snapshot: self.snapshots.data(current) });
        }
        behind.write(&self.disk).await?;
        let mut writer = self.snapshots.writer();
        let mut from = DATA.to_vec();
        // Page by page and not through one iterator: that one would have to live across the awaits.
        loop {
            let page = self.disk.engine.scan(Cf::State, &from, Some(DATA_END), PAGE)?;
            let Some((last, _)) = page.last() else { break };
            from = [last, &[0][..]].concat(); // The smallest key behind it.
            for (key, value) in page {
                if cara_env::planted("snapshot-without-dedupe-table") && key.starts_with(b"dreply/") {
                    continue; // Replies are no state that anyone can list.
                }
                writer.add_pair((key[DATA.len()..].to_vec(), value)).await?;
            }
        }
        let data = writer.finish().await?;
        let record = Record { id: data.id, meta: meta.clone(), chunks: data.chunks };
        let mut batch = Batch::new();
        self.snapshots.put_current(&mut batch, &record, previous.as_ref());
        self.disk.write(&batch).await?;
        // The log may be purged up to here next, and that must never become durable first. It can't: one write-ahead
        // log. The sync only bounds how much a restart has to apply again.
        self.disk.engine.sync().await?;
        cara_env::point("raft.snapshot_built", || format!("index={}", index_of(&meta))).await;
        Ok(Snapshot { meta, snapshot: data })
    }
}

impl<SM: StateMachine> RaftStateMachine<TypeConfig> for Machine<SM> {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = Built;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), io::Error> {
        let Applied { log_id, membership } = self.behind.lock().await.applied.clone();
        Ok((log_id, membership))
    }

    async fn apply<Strm>(&mut self, entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut chunks = entries.ready_chunks(APPLY_MAX);
        while let Some(chunk) = chunks.next().await {
            let chunk: Vec<EntryResponder<TypeConfig>> = chunk.into_iter().collect::<Result<_, _>>()?;
            let (entries, responders): (Vec<_>, Vec<_>) = chunk.into_iter().unzip();
            let mut behind = self.behind.lock().await;
            let replies = self.apply_in_memory(&mut behind, &entries);
            behind.keep_up(&self.disk).await?;
            drop(behind);
            for (at, membership) in entries.iter().filter_map(membership_of) {
                let voters = || membership.voter_ids().map(|id| id.to_string()).collect::<Vec<_>>().join(",");
                cara_env::point("raft.membership_changed", || format!("index={at} voters={}", voters())).await;
            }
            for (responder, reply) in responders.into_iter().zip(replies) {
                if let Some(responder) = responder {
                    responder.send(reply);
                }
            }
        }
        Ok(())
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Built> {
        if !force && self.disk.is_full() {
            return None;
        }
        Some(Built(Some(self.build().await)))
    }

    async fn get_snapshot_builder(&mut self) -> Built {
        Built(Some(self.build().await))
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotData) -> Result<(), io::Error> {
        let mut behind = self.behind.lock().await;
        let data = self.snapshots.adopt(snapshot).await?;
        let previous = self.snapshots.current()?;
        let record = Record { id: data.id, meta: meta.clone(), chunks: data.chunks };
        let applied = Applied { log_id: meta.last_log_id, membership: meta.last_membership.clone() };
        // The whole copy is read before anything changes: damage must leave the old state as it was.
        let mut pairs = data.pairs();
        let all: Vec<_> = pairs.by_ref().collect();
        pairs.finish()?;
        let mut batch = Batch::new();
        if !cara_env::planted("snapshot-over-old-state") {
            batch.delete_range(Cf::State, DATA, DATA_END);
        }
        for (key, value) in &all {
            batch.put(Cf::State, data_key(key), value.clone());
        }
        batch.put(Cf::State, POSITION, encode(&applied));
        self.snapshots.put_current(&mut batch, &record, previous.as_ref());
        self.disk.write(&batch).await?;
        cara_env::point("raft.snapshot_written", || format!("index={}", index_of(meta))).await;
        self.disk.engine.sync().await?;
        cara_env::point("raft.snapshot_installed", || format!("index={}", index_of(meta))).await;
        behind.replace(applied);
        let at_snapshot = meta.last_log_id.as_ref().map(position);
        self.shared
            .write(|machine, at| {
                *at = at_snapshot;
                machine.load(&mut all.into_iter())
            })
            .map_err(|error| damaged(error.to_string()))
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        let current = self.snapshots.current()?;
        Ok(current.map(|record| Snapshot { snapshot: self.snapshots.data(&record), meta: record.meta }))
    }
}

/// A snapshot that the worker has already built; openraft asks for it from a task of its own.
pub struct Built(Option<io::Result<Snapshot>>);

impl RaftSnapshotBuilder<TypeConfig> for Built {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        self.0.take().unwrap_or_else(|| Err(io::Error::other("this snapshot was already taken")))
    }
}
