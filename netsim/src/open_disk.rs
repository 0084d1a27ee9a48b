//! A process's open database on the simulated disk.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cara_env::{Batch, Cf, Engine, KeyValue, Op};

use crate::clock::SimClock;
use crate::disk::Disk;
use crate::trace;

/// How often a sync looks whether a stalled device goes on.
const STALL_CHECK: Duration = Duration::from_millis(10);
/// The chaos point after each write. These three exist only while somebody watches them: they are too frequent.
const WRITE: &str = "disk.write";
/// The chaos point at which a sync begins: nothing of it is durable yet.
const SYNC: &str = "disk.sync";
/// The chaos point at which a sync has ended well and its caller does not know it yet.
const SYNCED: &str = "disk.synced";

/// One incarnation's open database on its host's disk.
pub(crate) struct OpenDisk {
    disk: Arc<Disk>,
    clock: Arc<SimClock>,
    running: Arc<AtomicU64>,
    boot: u64,
}

impl OpenDisk {
    pub(crate) fn new(disk: Arc<Disk>, clock: Arc<SimClock>, running: Arc<AtomicU64>) -> Self {
        let boot = running.load(Ordering::Relaxed);
        disk.opened();
        Self { disk, clock, running, boot }
    }

    /// A dead process reads and writes nothing, not even from its destructors.
    fn alive(&self) -> io::Result<()> {
        if self.running.load(Ordering::Relaxed) == self.boot {
            return Ok(());
        }
        Err(io::Error::other("the process is gone"))
    }
}

fn io_error(what: &str) -> io::Error {
    io::Error::other(format!("input/output error on {what}"))
}

#[async_trait::async_trait]
impl Engine for OpenDisk {
    fn get(&self, cf: Cf, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.alive()?;
        Ok(self.disk.lock().maps.get(&cf).and_then(|map| map.get(key)).cloned())
    }

    fn scan(&self, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> io::Result<Vec<KeyValue>> {
        self.alive()?;
        if to.is_some_and(|to| from >= to) {
            return Ok(Vec::new());
        }
        let state = self.disk.lock();
        let Some(map) = state.maps.get(&cf) else { return Ok(Vec::new()) };
        let range = (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded));
        let pairs = map.range::<[u8], _>(range).take(limit);
        Ok(pairs.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn last(&self, cf: Cf) -> io::Result<Option<KeyValue>> {
        self.alive()?;
        let state = self.disk.lock();
        let last = state.maps.get(&cf).and_then(BTreeMap::last_key_value);
        Ok(last.map(|(key, value)| (key.clone(), value.clone())))
    }

    fn write(&self, batch: &Batch) -> io::Result<()> {
        self.alive()?;
        let mut state = self.disk.lock();
        if state.fail_writes {
            return Err(io_error("write"));
        }
        if state.full_for(batch) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        trace_write(&self.disk.host, batch);
        let ops = batch.ops.len();
        state.write(batch.clone());
        drop(state);
        if self.disk.points.is_watched(WRITE) {
            cara_env::mark(WRITE, || ops.to_string());
        }
        Ok(())
    }

    async fn sync(&self) -> io::Result<()> {
        self.alive()?;
        if self.disk.points.is_watched(SYNC) {
            cara_env::point(SYNC, || self.disk.unsynced().to_string()).await;
        }
        let now = self.clock.world();
        let ends = {
            let mut state = self.disk.lock();
            let latency = state.latency;
            let takes = Duration::from_micros(self.disk.rng.between(latency.min_us, latency.max_us));
            state.join_sync(now, takes)
        };
        self.clock.sleep_world(ends.saturating_sub(now)).await;
        while self.disk.lock().stalled {
            self.clock.sleep_world(STALL_CHECK).await;
        }
        self.alive()?;
        let unsynced = {
            let mut state = self.disk.lock();
            if state.fail_syncs {
                return Err(io_error("sync"));
            }
            state.settle(self.clock.world());
            state.unsynced.len() as u64
        };
        trace::event(&self.disk.host, SYNC, &[unsynced]);
        if self.disk.points.is_watched(SYNCED) {
            cara_env::point(SYNCED, || unsynced.to_string()).await;
        }
        Ok(())
    }
}

fn trace_write(host: &str, batch: &Batch) {
    let mut hash = 0;
    for op in &batch.ops {
        let (cf, a, b): (Cf, &[u8], &[u8]) = match op {
            Op::Put(cf, key, value) => (*cf, key, value),
            Op::Delete(cf, key) => (*cf, key, &[]),
            Op::DeleteRange(cf, from, to) => (*cf, from, to),
        };
        hash = trace::fingerprint(
            &[hash, trace::fingerprint(cf.name().as_bytes()), trace::fingerprint(a), trace::fingerprint(b)]
                .map(u64::to_le_bytes)
                .concat(),
        );
    }
    trace::event(host, WRITE, &[batch.ops.len() as u64, hash]);
}
