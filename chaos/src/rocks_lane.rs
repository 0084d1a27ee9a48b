//! The RocksDB lane: the servers of a simulated world keep their data in real RocksDB databases, in a temporary folder.
//!
//! ```text
//!   server ──► LaneEngine ──┬─► simulated disk   latency, errors, room, what a loss of power takes
//!                           └─► RocksDB          the bytes; its answer is compared and given
//! ```
//!
//! Both get every write, so each world is a differential test as well, and everything that looks at the simulated disk
//! goes on working. A crash opens the folder again. A loss of power opens a copy whose write-ahead log is cut behind
//! the last write that the simulated disk has kept, plus a part of the next one: what a real device could have left.
//! After a change that is no write (a new disk, a restored one, a rotten bit) the database is made anew from the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cara_env::{Batch, Cf, Engine, KeyValue};
use cara_netsim::{Boot, Disk, Fate};
use raft_store::rocks::RocksEngine;

/// Disagreements that are kept: the first ones tell.
const DISAGREEMENTS_MAX: usize = 20;

/// Where the write-ahead log ends after a write.
type Mark = (PathBuf, u64);

/// The databases of one world. A clone is the same lane.
#[derive(Clone)]
pub struct RocksLane(Arc<Lane>);

struct Lane {
    root: PathBuf,
    servers: Mutex<BTreeMap<String, Arc<Server>>>,
    disagreements: Mutex<Vec<String>>,
}

struct Server {
    name: String,
    disk: Arc<Disk>,
    open: Mutex<Option<Open>>,
    opened: AtomicU64,
}

/// A database that is open, and what a loss of power may do to it.
struct Open {
    folder: PathBuf,
    engine: RocksEngine,
    /// The log's end when it was opened, and after each write since.
    marks: Vec<Mark>,
    fate: Fate,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RocksLane {
    /// A lane in a new temporary folder, which goes with the last clone.
    pub fn new() -> Self {
        static LANES: AtomicU64 = AtomicU64::new(0);
        let number = LANES.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("cara-chaos-rocks-{}-{number}", std::process::id()));
        Self(Arc::new(Lane { root, servers: Mutex::default(), disagreements: Mutex::default() }))
    }

    /// The database of a process that has just started, instead of [`Boot::engine`]. Once a process.
    ///
    /// # Errors
    /// When RocksDB can't open what the last process left.
    pub fn open(&self, boot: &Boot) -> Result<Arc<dyn Engine>, String> {
        let server = {
            let mut servers = lock(&self.0.servers);
            let new = || Server {
                name: boot.name.clone(),
                disk: boot.disk.clone(),
                open: Mutex::default(),
                opened: AtomicU64::new(0),
            };
            servers.entry(boot.name.clone()).or_insert_with(|| Arc::new(new())).clone()
        };
        server.reopen(&self.0.root).map_err(|error| format!("can't open RocksDB of {}: {error}", boot.name))?;
        Ok(Arc::new(LaneEngine { lane: self.0.clone(), server, simulated: boot.engine.clone() }))
    }

    /// All pairs of a column family as RocksDB has them now; nothing before the server's first start.
    pub fn dump(&self, server: &str, cf: Cf) -> Vec<KeyValue> {
        let server = lock(&self.0.servers).get(server).cloned();
        let Some(server) = server else { return Vec::new() };
        let open = lock(&server.open);
        open.as_ref().and_then(|open| open.engine.scan(cf, &[], None, usize::MAX).ok()).unwrap_or_default()
    }

    /// Where RocksDB and the simulated disk gave different answers; the first 20.
    pub fn disagreements(&self) -> Vec<String> {
        lock(&self.0.disagreements).clone()
    }
}

impl Default for RocksLane {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        lock(&self.servers).clear();
        // A folder that stays is only litter in the system's temporary folder.
        drop(std::fs::remove_dir_all(&self.root));
    }
}

impl Server {
    /// Ends the old process's database and opens what a machine would find after the way in which that process died.
    fn reopen(&self, root: &Path) -> io::Result<()> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let mut slot = lock(&self.open);
        let fate = self.disk.fate();
        let fresh = root.join(format!("{}-{number}", self.name));
        let folder = match slot.take() {
            None => fresh.clone(),
            Some(old) => {
                let lost = usize::try_from(fate.lost - old.fate.lost).unwrap_or(usize::MAX);
                let kept = old.marks.len().checked_sub(lost).filter(|kept| *kept > 0);
                let same_log = kept.is_some_and(|kept| old.marks[kept - 1].0 == old.marks[old.marks.len() - 1].0);
                match kept {
                    Some(_) if old.fate == fate => old.folder.clone(), // A crash, or nothing was lost.
                    Some(kept) if old.fate.altered == fate.altered && same_log => {
                        power_loss(old, kept, &fresh)?;
                        fresh.clone()
                    }
                    _ => fresh.clone(),
                }
            }
        };
        let made = !folder.exists();
        let engine = RocksEngine::open(&folder).map_err(|error| io::Error::other(error.to_string()))?;
        if made {
            for cf in Cf::ALL {
                let mut batch = Batch::new();
                self.disk.dump(cf).into_iter().for_each(|(key, value)| batch.put(cf, key, value));
                engine.write(&batch)?;
            }
            engine.sync_now()?;
        }
        let marks = vec![engine.wal()?];
        *slot = Some(Open { folder, engine, marks, fate });
        Ok(())
    }
}

/// Copies the folder as it would be found: the log ends behind `kept` marks, in the middle of the next write.
fn power_loss(old: Open, kept: usize, to: &Path) -> io::Result<()> {
    let Open { folder, engine, marks, .. } = old;
    // Closed first: its threads would remove obsolete files under the copy. Closing adds nothing to the log.
    drop(engine);
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if let Some(name) = path.file_name() {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    let (log, end) = &marks[kept - 1];
    let next = marks.get(kept).map_or(*end, |(_, next)| *next);
    // From nothing of it to nearly all, and the same in each run of a seed.
    let torn = (next - end) * (marks.len() as u64 % 7) / 7;
    let name = log.file_name().ok_or_else(|| io::Error::other("the log has no name"))?;
    std::fs::OpenOptions::new().write(true).open(to.join(name))?.set_len(end + torn)
}

/// One process's database.
struct LaneEngine {
    lane: Arc<Lane>,
    server: Arc<Server>,
    simulated: Arc<dyn Engine>,
}

impl LaneEngine {
    fn real<T>(&self, work: impl FnOnce(&mut Open) -> io::Result<T>) -> io::Result<T> {
        let mut open = lock(&self.server.open);
        work(open.as_mut().ok_or_else(|| io::Error::other("the database is closed"))?)
    }

    /// RocksDB's answer, noted if it isn't the simulated disk's.
    fn compare<T: PartialEq>(
        &self,
        what: impl FnOnce() -> String,
        simulated: T,
        real: impl FnOnce(&RocksEngine) -> io::Result<T>,
    ) -> io::Result<T> {
        let (real, fate) = self.real(|open| Ok((real(&open.engine)?, open.fate)))?;
        if real != simulated && fate == self.server.disk.fate() {
            let mut all = lock(&self.lane.disagreements);
            if all.len() < DISAGREEMENTS_MAX {
                all.push(format!("{}: RocksDB and the simulated disk disagree about {}", self.server.name, what()));
            }
        }
        // A rotten bit is the simulated disk's alone until the next start.
        Ok(if fate == self.server.disk.fate() { real } else { simulated })
    }
}

#[async_trait::async_trait]
impl Engine for LaneEngine {
    fn get(&self, cf: Cf, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let simulated = self.simulated.get(cf, key)?;
        self.compare(|| format!("{} {key:02x?}", cf.name()), simulated, |real| real.get(cf, key))
    }

    fn scan(&self, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> io::Result<Vec<KeyValue>> {
        let simulated = self.simulated.scan(cf, from, to, limit)?;
        let what = || format!("{} {from:02x?}..{to:02x?}, {limit} at most", cf.name());
        self.compare(what, simulated, |real| real.scan(cf, from, to, limit))
    }

    fn last(&self, cf: Cf) -> io::Result<Option<KeyValue>> {
        let simulated = self.simulated.last(cf)?;
        self.compare(|| format!("the last key of {}", cf.name()), simulated, |real| real.last(cf))
    }

    fn write(&self, batch: &Batch) -> io::Result<()> {
        self.simulated.write(batch)?;
        self.real(|open| {
            open.engine.write(batch)?;
            open.marks.push(open.engine.wal()?);
            Ok(())
        })
    }

    async fn sync(&self) -> io::Result<()> {
        self.simulated.sync().await?;
        self.real(|open| open.engine.sync_now())
    }
}
