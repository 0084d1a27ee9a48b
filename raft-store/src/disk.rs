//! The engine as the rest of this crate uses it: a write on a full device waits for room instead of failing.
//!
//! While it waits, raft's core waits as well: the server sends no heartbeats and grants no votes, so another one leads.
//! Once there is room it goes on by itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cara_env::{Batch, Cf, Engine, Env, KeyValue};
use tokio::sync::watch;

/// How often a full device is tried again. Short against the minutes that making room takes, long against a write.
const RETRY: Duration = Duration::from_millis(500);

/// Pairs read at once when a column family is walked through: bounds the memory, not the result.
pub(crate) const PAGE: usize = 256;

pub(crate) struct Disk {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) env: Env,
    /// Counts reads for replication whose beginning was purged meanwhile.
    pub(crate) gaps: Arc<AtomicU64>,
    full: watch::Sender<bool>,
    closing: watch::Sender<bool>,
}

impl Disk {
    pub(crate) fn new(engine: Arc<dyn Engine>, env: Env) -> Self {
        Self { engine, env, gaps: Arc::default(), full: watch::Sender::new(false), closing: watch::Sender::new(false) }
    }

    /// Is a write waiting for room?
    pub(crate) fn is_full(&self) -> bool {
        *self.full.borrow()
    }

    /// Ticks when [`Disk::is_full`] changes.
    pub(crate) fn full_changed(&self) -> watch::Receiver<bool> {
        self.full.subscribe()
    }

    /// Ends all waiting for room; the writes fail.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Writes a batch. On a full device it waits until there is room, or until the store closes.
    pub(crate) async fn write(&self, batch: &Batch) -> io::Result<()> {
        loop {
            match self.engine.write(batch) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => self.wait_for_room().await?,
                done => {
                    if self.full.send_if_modified(|full| std::mem::replace(full, false)) {
                        tracing::info!("the device has room again, replication goes on");
                    }
                    return done;
                }
            }
        }
    }

    async fn wait_for_room(&self) -> io::Result<()> {
        if self.full.send_if_modified(|full| !std::mem::replace(full, true)) {
            tracing::error!("the device of the data folder is full: this server steps aside until there is room");
        }
        let mut closing = self.closing.subscribe();
        let closed = async { closing.wait_for(|closing| *closing).await.is_ok() };
        match cara_env::timeout(&*self.env.clock, RETRY, closed).await {
            Ok(_) => Err(io::Error::new(io::ErrorKind::StorageFull, "closed while the device was full")),
            Err(cara_env::Elapsed) => Ok(()),
        }
    }

    /// Walks through the pairs with keys in `from..to`.
    pub(crate) fn pairs(&self, cf: Cf, from: &[u8], to: Option<&[u8]>) -> Pairs<'_> {
        Pairs {
            engine: &*self.engine,
            cf,
            next: Some(from.to_vec()),
            to: to.map(<[u8]>::to_vec),
            page: Vec::new().into_iter(),
            error: None,
        }
    }
}

/// The same outcome for one more who waits: errors can't be cloned, but their kind and words can.
pub(crate) fn same(outcome: &io::Result<()>) -> io::Result<()> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

/// Pairs in key order. It ends early on an error of the engine, which [`Pairs::finish`] then tells.
pub(crate) struct Pairs<'a> {
    engine: &'a dyn Engine,
    cf: Cf,
    /// Where the next page starts; `None` at the end.
    next: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    page: std::vec::IntoIter<KeyValue>,
    error: Option<io::Error>,
}

impl Pairs<'_> {
    /// The error that ended the walk, if there was one.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }
}

impl Iterator for Pairs<'_> {
    type Item = KeyValue;

    fn next(&mut self) -> Option<KeyValue> {
        loop {
            if let Some(pair) = self.page.next() {
                return Some(pair);
            }
            let from = self.next.take()?;
            match self.engine.scan(self.cf, &from, self.to.as_deref(), PAGE) {
                Ok(page) => {
                    if page.len() == PAGE {
                        let mut after = page.last().expect("a full page").0.clone();
                        after.push(0); // The smallest key behind the last one.
                        self.next = Some(after);
                    }
                    self.page = page.into_iter();
                }
                Err(error) => self.error = Some(error),
            }
        }
    }
}
