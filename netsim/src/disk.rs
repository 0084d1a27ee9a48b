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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cara_env::{Batch, Cf, KeyValue, Op, Rng};

use crate::clock::Now;
use crate::points::Points;
use crate::snapshot::Image;
use crate::tap::{Change, Tap};
use crate::{SimRng, trace};

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
pub(crate) type Undo = (Cf, Vec<u8>, Option<Vec<u8>>);

/// A sync of the device that covers all writes up to a number and ends at a time.
#[derive(Debug, Clone, Copy)]
struct Sync {
    ends: Duration,
    covers: u64,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) maps: Image,
    /// Number of the last write.
    written: u64,
    pub(crate) unsynced: VecDeque<(u64, Vec<Undo>)>,
    running: Option<Sync>,
    next: Option<Sync>,
    pub(crate) latency: Latency,
    pub(crate) stalled: bool,
    bytes: u64,
    bytes_max: Option<u64>,
    pub(crate) fail_writes: bool,
    pub(crate) fail_syncs: bool,
    lying: bool,
    /// The next loss of power tears the last surviving write of the log.
    tear: bool,
    tap: Option<Tap>,
    fate: Fate,
}

/// What became of a disk beside its writes, counted since the world began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// Writes that losses of power have undone, always the newest.
    pub lost: u64,
    /// Times that something else than a write changed what is there: another content, a torn value, a flipped bit.
    pub altered: u64,
}

/// The disk of one host, shared by all its incarnations.
#[derive(Debug)]
pub struct Disk {
    pub(crate) host: String,
    now: Now,
    pub(crate) points: Arc<Points>,
    state: Mutex<State>,
    pub(crate) rng: SimRng,
    tear_rng: SimRng,
    rot_rng: SimRng,
}

impl Disk {
    pub(crate) fn new(host: &str, now: Now, seed: u64, points: Arc<Points>) -> Self {
        let stream = |what: &str| SimRng::new(seed, &format!("{what}/{host}"));
        let (rng, tear_rng, rot_rng) = (stream("disk"), stream("tear"), stream("rot"));
        Self { host: host.to_owned(), now, points, state: Mutex::default(), rng, tear_rng, rot_rng }
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

    /// Counts batches written, and everything else that changes what is there: when this stands still, nothing has
    /// changed.
    pub fn written(&self) -> u64 {
        self.lock().written
    }

    /// Writes that a loss of power could still undo.
    pub fn unsynced(&self) -> usize {
        self.lock().unsynced.len()
    }

    /// What became of it beside its writes.
    pub fn fate(&self) -> Fate {
        self.lock().fate
    }

    /// All pairs of a column family as they are now, for checkers.
    pub fn dump(&self, cf: Cf) -> Vec<KeyValue> {
        let state = self.lock();
        let Some(map) = state.maps.get(&cf) else { return Vec::new() };
        map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// From now on keeps every change of log, meta and state for [`Disk::drain`]. The first drain gives a reset.
    pub fn tap(&self) {
        let mut tap = Tap::default();
        tap.reset();
        self.lock().tap = Some(tap);
    }

    /// The changes since the last call, oldest first. At most 200 000 changes and 64 MiB are kept; when there were more,
    /// the list is one reset. Empty without [`Disk::tap`].
    pub fn drain(&self) -> Vec<Change> {
        self.lock().tap.as_mut().map(Tap::drain).unwrap_or_default()
    }

    /// The power goes: what no finished sync covers is lost, from the newest write down to a random point.
    pub(crate) fn power_loss(&self) {
        let mut state = self.lock();
        state.settle(self.now.get());
        let all = state.unsynced.len() as u64;
        let mut keep = self.rng.between(0, all);
        let tear = std::mem::take(&mut state.tear);
        if tear {
            keep = keep.max(1).min(all); // A tear needs a write that was under way.
        }
        for _ in keep..all {
            state.undo_last();
        }
        if tear {
            self.tear(&mut state);
        }
        trace::event(&self.host, "disk.power_loss", &[all, state.unsynced.len() as u64]);
        state.fate.lost += all - state.unsynced.len() as u64;
        if state.unsynced.len() as u64 != all {
            state.written += 1;
        }
        state.unsynced.clear(); // What survived is on the medium now.
        state.process_gone();
    }

    /// Cuts the last value of the log short, if a write that no sync covers has put it there. What was written after it
    /// is lost with the rest of it.
    fn tear(&self, state: &mut State) {
        let puts_last = |state: &State| {
            let last = state.maps.get(&Cf::Log).and_then(BTreeMap::last_key_value).map(|(key, _)| key.clone())?;
            let (_, undo) = state.unsynced.back()?;
            undo.iter().any(|(cf, key, _)| *cf == Cf::Log && *key == last).then_some(last)
        };
        if !state.unsynced.iter().flat_map(|(_, undo)| undo).any(|(cf, _, _)| *cf == Cf::Log) {
            return;
        }
        while !state.unsynced.is_empty() {
            if let Some(key) = puts_last(state) {
                let mut value = state.maps[&Cf::Log][&key].clone();
                let left = self.tear_rng.below(value.len() as u64);
                value.truncate(usize::try_from(left).unwrap_or(0));
                state.set(Cf::Log, key, Some(value));
                state.written += 1;
                state.fate.altered += 1;
                trace::event(&self.host, "disk.torn", &[left]);
                return;
            }
            state.undo_last();
        }
    }

    /// The next loss of power tears the last surviving write of the log.
    pub(crate) fn tear_last(&self) {
        self.lock().tear = true;
    }

    /// Flips a bit of the value of the `nth` key, counted round; says which key.
    pub(crate) fn flip_bit(&self, cf: Cf, nth: u64) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let map = state.maps.get(&cf)?;
        let valued: Vec<&Vec<u8>> = map.iter().filter(|(_, value)| !value.is_empty()).map(|(key, _)| key).collect();
        let at = nth.checked_rem(valued.len() as u64)?;
        let key = valued[usize::try_from(at).ok()?].clone();
        let mut value = map[&key].clone();
        let bit = self.rot_rng.below(value.len() as u64 * 8);
        value[usize::try_from(bit / 8).ok()?] ^= 1 << (bit % 8);
        state.set(cf, key.clone(), Some(value));
        state.written += 1;
        state.fate.altered += 1;
        Some(key)
    }

    /// A process opens the database. What it finds, it makes durable before it answers: recovery ends with a flush of
    /// what the write-ahead log held.
    pub(crate) fn opened(&self) {
        let mut state = self.lock();
        if !state.lying {
            state.unsynced.clear();
        }
    }

    /// The process dies, the kernel lives: everything written stays and will reach the medium by itself.
    pub(crate) fn crash(&self) {
        self.lock().process_gone();
    }

    /// A new, empty disk.
    pub(crate) fn wipe(&self) {
        self.restore(&Image::new());
    }

    /// All there is now.
    pub(crate) fn image(&self) -> Image {
        self.lock().maps.clone()
    }

    /// A disk with these pairs, all of them durable.
    pub(crate) fn restore(&self, image: &Image) {
        let mut state = self.lock();
        let bytes = image.values().flatten().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        let mut tap = state.tap.take();
        if let Some(tap) = &mut tap {
            tap.reset();
        }
        *state = State {
            maps: image.clone(),
            bytes,
            latency: state.latency,
            written: state.written + 1,
            tap,
            fate: Fate { altered: state.fate.altered + 1, ..state.fate },
            ..State::default()
        };
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends the syncs whose time has come.
    pub(crate) fn settle(&mut self, now: Duration) {
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
    pub(crate) fn join_sync(&mut self, now: Duration, takes: Duration) -> Duration {
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
        if let Some(tap) = &mut self.tap {
            tap.push(cf, &key, value.as_deref());
        }
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
    pub(crate) fn full_for(&self, batch: &Batch) -> bool {
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

    /// Applies a batch.
    pub(crate) fn write(&mut self, batch: Batch) {
        self.written += 1;
        let number = self.written;
        let undo = batch.ops.into_iter().flat_map(|op| self.apply(op)).collect();
        self.unsynced.push_back((number, undo));
    }

    /// Undoes the newest write that is not synced.
    fn undo_last(&mut self) {
        let Some((_, undo)) = self.unsynced.pop_back() else { return };
        for (cf, key, value) in undo.into_iter().rev() {
            self.set(cf, key, value);
        }
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
