//! The storage engine under replication: ordered keys in a few column families, atomic batches, and an explicit sync.
//!
//! The contract is the one that raft needs, no more: a batch is applied whole or not at all; batches become durable in
//! the order in which they were written; [`Engine::sync`] returns once everything written before the call is durable,
//! and concurrent calls share one sync of the device (group commit). After a crash the engine holds a prefix of the
//! written batches that includes all synced ones.

use std::io;

/// The column families of a server's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cf {
    /// Raft log: big-endian index -> checksummed entry.
    Log,
    /// Vote, committed and purged positions, membership, identity of the database.
    Meta,
    /// The state machine: one key per object, and the last applied position.
    State,
    /// The latest snapshot.
    Snapshot,
}

impl Cf {
    /// All of them, in a fixed order.
    pub const ALL: [Cf; 4] = [Cf::Log, Cf::Meta, Cf::State, Cf::Snapshot];

    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Cf::Log => "log",
            Cf::Meta => "meta",
            Cf::State => "state",
            Cf::Snapshot => "snapshot",
        }
    }
}

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Sets a key.
    Put(Cf, Vec<u8>, Vec<u8>),
    /// Removes a key; a missing one is fine.
    Delete(Cf, Vec<u8>),
    /// Removes the keys in `from..to`.
    DeleteRange(Cf, Vec<u8>, Vec<u8>),
}

/// Changes that are applied whole or not at all, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The changes.
    pub ops: Vec<Op>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put.
    pub fn put(&mut self, cf: Cf, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.ops.push(Op::Put(cf, key.into(), value.into()));
    }

    /// Adds a delete.
    pub fn delete(&mut self, cf: Cf, key: impl Into<Vec<u8>>) {
        self.ops.push(Op::Delete(cf, key.into()));
    }

    /// Adds the removal of `from..to`.
    pub fn delete_range(&mut self, cf: Cf, from: impl Into<Vec<u8>>, to: impl Into<Vec<u8>>) {
        self.ops.push(Op::DeleteRange(cf, from.into(), to.into()));
    }

    /// Nothing in it?
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// A key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// An open database. One process has it at a time.
#[async_trait::async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The value of a key.
    fn get(&self, cf: Cf, key: &[u8]) -> io::Result<Option<Vec<u8>>>;

    /// Up to `limit` pairs with keys in `from..to` (`None` = to the end), in key order.
    fn scan(&self, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> io::Result<Vec<KeyValue>>;

    /// The pair with the greatest key.
    fn last(&self, cf: Cf) -> io::Result<Option<KeyValue>>;

    /// Applies a batch. Visible at once, durable after the next [`Engine::sync`].
    ///
    /// # Errors
    /// `StorageFull` when the device has no room; nothing of the batch was applied then.
    fn write(&self, batch: &Batch) -> io::Result<()>;

    /// Makes everything written before this call durable.
    ///
    /// # Errors
    /// After an error nothing may be assumed about what was written since the last successful sync: the owner stops.
    async fn sync(&self) -> io::Result<()>;
}
