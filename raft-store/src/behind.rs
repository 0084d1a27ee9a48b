//! Write-behind: what was applied in memory and is not in the store yet.
//!
//! The log is what makes a change durable; the state in the store only shortens what a restart has to apply again. So it
//! is written every few thousand entries, in one batch with its position, and a key that changed often is written once.
//!
//! Invariant: the store's state is at least as new as its snapshot. The log is purged up to a snapshot at most, so what
//! is missing in the state is always in the log.

use std::collections::BTreeMap;
use std::io;

use cara_env::{Batch, Cf};

use crate::codec::encode;
use crate::disk::Disk;
use crate::state::{Applied, POSITION, data_key};

/// See the module.
pub(crate) struct Behind {
    /// How far the machine in memory is.
    pub(crate) applied: Applied,
    /// The newest value of each key that has changed since the last write; none = the key is gone.
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// What the entries since then have changed, each change counted: also the measure of what a restart applies again.
    bytes: usize,
    bytes_max: usize,
    /// The store is as new as [`Behind::applied`].
    written: bool,
    /// On its way to the store. Kept until it is there: whoever waited for that may have given up.
    batch: Batch,
}

impl Behind {
    /// Nothing is behind; at most `bytes_max` will be after [`Behind::keep_up`].
    pub(crate) fn new(applied: Applied, bytes_max: usize) -> Self {
        Self { applied, changes: BTreeMap::new(), bytes: 0, bytes_max, written: true, batch: Batch::new() }
    }

    /// The machine has gone on: whoever changes [`Behind::applied`] says so.
    pub(crate) fn advanced(&mut self) {
        self.written = false;
    }

    /// A key has changed.
    pub(crate) fn note(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        self.changes.insert(key, value);
    }

    /// Writes everything when it has become too much.
    pub(crate) async fn keep_up(&mut self, disk: &Disk) -> io::Result<()> {
        if self.bytes < self.bytes_max { Ok(()) } else { self.write(disk).await }
    }

    /// Writes everything.
    pub(crate) async fn write(&mut self, disk: &Disk) -> io::Result<()> {
        if self.written {
            return Ok(());
        }
        for (key, value) in std::mem::take(&mut self.changes) {
            match value {
                Some(value) => self.batch.put(Cf::State, data_key(&key), value),
                None => self.batch.delete(Cf::State, data_key(&key)),
            }
        }
        self.bytes = 0;
        if cara_env::planted("applied-not-atomic-with-state") {
            let mut first = Batch::new();
            first.put(Cf::State, POSITION, encode(&self.applied));
            disk.write(&first).await?;
        }
        self.batch.put(Cf::State, POSITION, encode(&self.applied));
        disk.write(&self.batch).await?;
        self.batch.ops.clear();
        self.written = true;
        Ok(())
    }

    /// The store has this state now, as a snapshot brought it.
    pub(crate) fn replace(&mut self, applied: Applied) {
        *self = Self::new(applied, self.bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use cara_env::Env;

    use super::*;
    use crate::testing::JournalEngine;

    fn stored(disk: &Disk, key: &[u8]) -> Option<Vec<u8>> {
        disk.engine.get(Cf::State, &data_key(key)).expect("get")
    }

    fn note(behind: &mut Behind, key: &[u8], value: Option<&[u8]>) {
        behind.advanced();
        behind.note(key.to_vec(), value.map(<[u8]>::to_vec));
    }

    #[tokio::test]
    async fn it_writes_only_when_enough_has_come_together_and_then_the_newest() {
        let disk = Disk::new(Arc::new(JournalEngine::default()), Env::real());
        let mut behind = Behind::new(Applied::default(), 9);
        note(&mut behind, b"a", Some(b"1"));
        note(&mut behind, b"b", Some(b"1"));
        note(&mut behind, b"b", None);
        note(&mut behind, b"a", Some(b"2"));
        behind.keep_up(&disk).await.expect("nothing to do");
        assert_eq!(stored(&disk, b"a"), None, "7 bytes have changed");
        note(&mut behind, b"a", Some(b"3"));
        behind.keep_up(&disk).await.expect("written");
        assert_eq!((stored(&disk, b"a"), stored(&disk, b"b")), (Some(b"3".to_vec()), None));
        assert!(disk.engine.get(Cf::State, POSITION).expect("get").is_some(), "with the position");
        assert_eq!(behind.bytes, 0);
    }

    #[tokio::test]
    async fn what_somebody_gave_up_to_write_is_written_by_the_next() {
        let engine = Arc::new(JournalEngine::default());
        let disk = Disk::new(engine.clone(), Env::real());
        let mut behind = Behind::new(Applied::default(), usize::MAX);
        note(&mut behind, b"a", Some(b"1"));
        note(&mut behind, b"b", Some(b"1"));
        engine.set_full(true);
        assert!(futures_util::poll!(pin!(behind.write(&disk))).is_pending(), "it waits for room, and then nobody does");
        engine.set_full(false);
        note(&mut behind, b"b", Some(b"2"));
        behind.write(&disk).await.expect("there is room");
        assert_eq!((stored(&disk, b"a"), stored(&disk, b"b")), (Some(b"1".to_vec()), Some(b"2".to_vec())));
    }
}
