//! An engine that notes every write and sync, and breaks at a chosen one: a crash between any two writes.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cara_env::{Batch, Cf, Engine, KeyValue};

use crate::memory::MemoryEngine;

#[derive(Debug, Default)]
struct State {
    written: Vec<Batch>,
    /// How many of them a finished sync covers.
    synced: usize,
    /// Writes and syncs so far.
    steps: usize,
    breaks_at: Option<usize>,
    full: bool,
}

/// Memory, a journal, and a point at which it stops for good.
#[derive(Debug, Default)]
pub struct JournalEngine {
    memory: MemoryEngine,
    state: Mutex<State>,
}

impl JournalEngine {
    /// An empty engine; the write or sync with this number (from 0), and all later ones, fail.
    pub fn new(breaks_at: Option<usize>) -> Self {
        Self { state: Mutex::new(State { breaks_at, ..State::default() }), ..Self::default() }
    }

    /// What is left after a crash when this many writes made it to the device.
    ///
    /// # Panics
    /// Panics when there were fewer writes.
    pub fn survivor(&self, writes: usize) -> Self {
        let survivor = Self::default();
        for batch in &self.lock().written[..writes] {
            survivor.write(batch).expect("this engine doesn't break");
        }
        let mut state = survivor.lock();
        state.synced = writes;
        state.steps = 0;
        drop(state);
        survivor
    }

    /// Number of writes that every crash leaves, and of all writes.
    pub fn writes(&self) -> (usize, usize) {
        let state = self.lock();
        (state.synced, state.written.len())
    }

    /// Writes and syncs so far.
    pub fn steps(&self) -> usize {
        self.lock().steps
    }

    /// Breaks at the step with this number from now on.
    pub fn break_at(&self, step: usize) {
        self.lock().breaks_at = Some(step);
    }

    /// While set, the device has no room.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn step(&mut self) -> io::Result<()> {
        let step = self.steps;
        self.steps += 1;
        match self.breaks_at {
            Some(at) if step >= at => Err(io::Error::other("the engine has broken, as the test wanted")),
            _ => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Engine for JournalEngine {
    fn get(&self, cf: Cf, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.memory.get(cf, key)
    }

    fn scan(&self, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> io::Result<Vec<KeyValue>> {
        self.memory.scan(cf, from, to, limit)
    }

    fn last(&self, cf: Cf) -> io::Result<Option<KeyValue>> {
        self.memory.last(cf)
    }

    fn write(&self, batch: &Batch) -> io::Result<()> {
        let mut state = self.lock();
        if state.full {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no room, as the test wanted"));
        }
        state.step()?;
        state.written.push(batch.clone());
        self.memory.write(batch)
    }

    async fn sync(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        state.synced = state.written.len();
        Ok(())
    }
}
