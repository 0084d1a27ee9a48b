//! The simulated storage engine: ordered maps, and a list of writes that a power loss may still undo.
//!
//! A write is visible at once and stays if the process dies. It survives a loss of power only once a sync that began
//! after it has ended. Syncs share the device: while one runs, all who come meanwhile wait for the next one together
//! (group commit).
//!
//! ```text
//!   write ──► visible ──► [ unsynced: undo records, oldest first ] ──sync ends──► durable
//!                                     │
//!                                 power loss: undone from the newest down to a random point (torn tail)
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_env::{Batch, Cf, Clock, Engine, KeyValue, Op};

use crate::clock::{Now, SimClock};
use crate::{SimRng, trace};

/// How often a sync looks whether a stalled device goes on.
const STALL_CHECK: Duration = Duration::from_millis(10);

/// How long a sync takes, in microseconds: uniform between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// At least.
    pub min_us: u64,
    /// At most.
    pub max_us: u64,
}

impl Default for Latency {
    /// A plain SSD: half a millisecond to five.
    fn default() -> Self {
        Self { min_us: 500, max_us: 5_000 }
    }
}

/// One key's value before a write.
type Undo = (Cf, Vec<u8>, Option<Vec<u8>>);

/// A sync of the device that covers all writes up to a number and ends at a time.
#[derive(Debug, Clone, Copy)]
struct Sync {
    ends: Duration,
    covers: u64,
}

#[derive(Debug, Default)]
struct State {
    maps: BTreeMap<Cf, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Number of the last write.
    written: u64,
    unsynced: VecDeque<(u64, Vec<Undo>)>,
    running: Option<Sync>,
    next: Option<Sync>,
    latency: Latency,
    stalled: bool,
    bytes: u64,
    bytes_max: Option<u64>,
    fail_writes: bool,
    fail_syncs: bool,
    lying: bool,
}

/// The disk of one host, shared by all its incarnations.
#[derive(Debug)]
pub struct Disk {
    host: String,
    now: Now,
    state: Mutex<State>,
    rng: SimRng,
}

impl Disk {
    pub(crate) fn new(host: &str, now: Now, rng: SimRng) -> Self {
        Self { host: host.to_owned(), now, state: Mutex::default(), rng }
    }

    /// How long syncs take from now on.
    pub(crate) fn set_latency(&self, latency: Latency) {
        self.lock().latency = latency;
    }

    /// A stalled device ends no sync until it goes on.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        self.lock().stalled = stalled;
    }

    /// Room for this many bytes of keys and values; `None` for no limit.
    pub(crate) fn set_bytes_max(&self, bytes_max: Option<u64>) {
        self.lock().bytes_max = bytes_max;
    }

    /// Writes and syncs fail with an input/output error while set.
    pub(crate) fn set_failing(&self, writes: bool, syncs: bool) {
        let mut state = self.lock();
        state.fail_writes = writes;
        state.fail_syncs = syncs;
    }

    /// A lying disk acknowledges syncs and keeps nothing of them through a loss of power. No software survives that: it
    /// is for proving that checkers notice.
    pub(crate) fn set_lying(&self, lying: bool) {
        self.lock().lying = lying;
    }

    /// Bytes of keys and values now.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Batches written so far: when this stands still, nothing has changed.
    pub fn written(&self) -> u64 {
        self.lock().written
    }

    /// Writes that a loss of power could still undo.
    pub fn unsynced(&self) -> usize {
        self.lock().unsynced.len()
    }

    /// All pairs of a column family as they are now, for checkers.
    pub fn dump(&self, cf: Cf) -> Vec<KeyValue> {
        let state = self.lock();
        let Some(map) = state.maps.get(&cf) else { return Vec::new() };
        map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The power goes: what no finished sync covers is lost, from the newest write down to a random point.
    pub(crate) fn power_loss(&self) {
        let mut state = self.lock();
        state.settle(self.now.get());
        let all = state.unsynced.len() as u64;
        let keep = self.rng.between(0, all);
        for _ in keep..all {
            let Some((_, undo)) = state.unsynced.pop_back() else { break };
            for (cf, key, value) in undo.into_iter().rev() {
                state.set(cf, key, value);
            }
        }
        trace::event(&self.host, "disk.power_loss", &[all, keep]);
        state.unsynced.clear(); // What survived is on the medium now.
        state.process_gone();
    }

    /// The process dies, the kernel lives: everything written stays and will reach the medium by itself.
    pub(crate) fn crash(&self) {
        self.lock().process_gone();
    }

    /// A new, empty disk.
    pub(crate) fn wipe(&self) {
        let mut state = self.lock();
        *state = State { latency: state.latency, written: state.written, ..State::default() };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends the syncs whose time has come.
    fn settle(&mut self, now: Duration) {
        while let Some(sync) = self.running {
            if sync.ends > now || self.stalled {
                return;
            }
            while !self.lying && self.unsynced.front().is_some_and(|(number, _)| *number <= sync.covers) {
                self.unsynced.pop_front();
            }
            self.running = self.next.take();
        }
    }

    /// Joins the next sync that covers everything written so far, and says when it ends.
    fn join_sync(&mut self, now: Duration, takes: Duration) -> Duration {
        self.settle(now);
        let covers = self.written;
        match (self.running, self.next.as_mut()) {
            (None, _) => {
                self.running = Some(Sync { ends: now + takes, covers });
                now + takes
            }
            (Some(running), None) => {
                let ends = running.ends.max(now) + takes;
                self.next = Some(Sync { ends, covers });
                ends
            }
            (Some(_), Some(next)) => {
                next.covers = covers;
                next.ends
            }
        }
    }

    fn process_gone(&mut self) {
        self.running = None;
        self.next = None;
        self.stalled = false;
        self.fail_writes = false;
        self.fail_syncs = false;
    }

    /// Sets or removes a key and returns what was there.
    fn set(&mut self, cf: Cf, key: Vec<u8>, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let map = self.maps.entry(cf).or_default();
        let key_bytes = key.len() as u64;
        let added = value.as_ref().map_or(0, |value| key_bytes + value.len() as u64);
        let old = match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
        let freed = old.as_ref().map_or(0, |old| key_bytes + old.len() as u64);
        self.bytes = self.bytes + added - freed;
        old
    }

    /// Does the batch need room that isn't there? Removing always works.
    fn full_for(&self, batch: &Batch) -> bool {
        let Some(bytes_max) = self.bytes_max else { return false };
        let needed: u64 = batch
            .ops
            .iter()
            .map(|op| match op {
                Op::Put(_, key, value) => (key.len() + value.len()) as u64,
                Op::Delete(..) | Op::DeleteRange(..) => 0,
            })
            .sum();
        needed > 0 && self.bytes + needed > bytes_max
    }

    fn apply(&mut self, op: Op) -> Vec<Undo> {
        match op {
            Op::Put(cf, key, value) => {
                let old = self.set(cf, key.clone(), Some(value));
                vec![(cf, key, old)]
            }
            Op::Delete(cf, key) => {
                let old = self.set(cf, key.clone(), None);
                vec![(cf, key, old)]
            }
            Op::DeleteRange(cf, from, to) => {
                let Some(map) = self.maps.get(&cf) else { return Vec::new() };
                if from >= to {
                    return Vec::new();
                }
                let keys: Vec<Vec<u8>> = map.range(from..to).map(|(key, _)| key.clone()).collect();
                keys.into_iter()
                    .map(|key| {
                        let old = self.set(cf, key.clone(), None);
                        (cf, key, old)
                    })
                    .collect()
            }
        }
    }
}

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

    fn write(&self, batch: Batch) -> io::Result<()> {
        self.alive()?;
        let mut state = self.disk.lock();
        if state.fail_writes {
            return Err(io_error("write"));
        }
        if state.full_for(&batch) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        trace_write(&self.disk.host, &batch);
        state.written += 1;
        let number = state.written;
        let undo = batch.ops.into_iter().flat_map(|op| state.apply(op)).collect();
        state.unsynced.push_back((number, undo));
        Ok(())
    }

    async fn sync(&self) -> io::Result<()> {
        self.alive()?;
        let now = self.clock.monotonic();
        let ends = {
            let mut state = self.disk.lock();
            let latency = state.latency;
            let takes = Duration::from_micros(self.disk.rng.between(latency.min_us, latency.max_us));
            state.join_sync(now, takes)
        };
        self.clock.sleep(ends.saturating_sub(now)).await;
        while self.disk.lock().stalled {
            self.clock.sleep(STALL_CHECK).await;
        }
        self.alive()?;
        let mut state = self.disk.lock();
        if state.fail_syncs {
            return Err(io_error("sync"));
        }
        state.settle(self.clock.monotonic());
        trace::event(&self.disk.host, "disk.sync", &[state.unsynced.len() as u64]);
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
    trace::event(host, "disk.write", &[batch.ops.len() as u64, hash]);
}
