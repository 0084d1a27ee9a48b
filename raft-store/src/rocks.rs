//! The engine of production: one RocksDB database per server.
//!
//! One thread syncs the write-ahead log. Whoever wants a sync queues up; the thread takes all who wait, syncs once and
//! answers them together (group commit). There are no statistics threads.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cara_env::{Batch, Cf, Clock, Engine, KeyValue, Op};
use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, DBRecoveryMode, ErrorKind, Options, ReadOptions, WriteBatch};
use tokio::sync::oneshot;

use crate::disk::same;
use crate::{LowSpace, OpenError};

/// Below this much free room nothing is written any more. RocksDB doesn't recover by itself from a device that is really
/// full, so it is never let run into one: this is more than its write buffers and one compaction of them.
const RESERVE: u64 = 128 * 1024 * 1024;

/// Below this much free room, only what frees room is accepted. Twice the reserve, so that deleting still works.
const LOW: u64 = 2 * RESERVE;

/// For so long it counts what was seen of the device's room: no device fills the reserve in that time.
const LOOK: Duration = Duration::from_millis(50);

/// Write buffer of a column family, of which there may be two for a while. Small: the whole state is in memory anyway.
const WRITE_BUFFER: usize = 8 * 1024 * 1024;

/// The write-ahead logs are trimmed at this size by flushing the column family that holds them back.
const WAL_MAX: u64 = 128 * 1024 * 1024;

/// RocksDB's own text logs: four files of 4 MiB.
const TEXT_LOGS: usize = 4;
const TEXT_LOG_BYTES: usize = 4 * 1024 * 1024;

/// See the module.
pub struct RocksEngine {
    folder: PathBuf,
    db: Arc<DB>,
    queue: Arc<Queue>,
    syncer: Option<JoinHandle<()>>,
}

impl RocksEngine {
    /// Opens the database in `folder`; makes both when they are missing.
    ///
    /// # Errors
    /// `Busy` when another process has it, `Foreign` when the folder holds something else, `Damaged` when RocksDB finds
    /// what it did not write, `StorageFull` when there is no room.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        make_folder(folder)?;
        if free(folder)? < RESERVE {
            return Err(OpenError::StorageFull);
        }
        let families = Cf::ALL.map(|cf| ColumnFamilyDescriptor::new(cf.name(), family_options()));
        let db = DB::open_cf_descriptors(&database_options(), folder, families).map_err(|e| open_error(folder, &e))?;
        let (db, queue) = (Arc::new(db), Arc::new(Queue::default()));
        let (thread_db, thread_queue) = (db.clone(), queue.clone());
        let syncer = std::thread::Builder::new()
            .name("wal-sync".into())
            .spawn(move || thread_queue.serve(|| thread_db.flush_wal(true).map_err(|error| to_io(&error))))?;
        Ok(Self { folder: folder.to_owned(), db, queue, syncer: Some(syncer) })
    }

    /// Tells when room is short on the device, for [`crate::Config::low_space`]. It is asked with every proposal and looks
    /// at the device some twenty times a second; each write looks by itself.
    pub fn low_space(&self, clock: Arc<dyn Clock>) -> LowSpace {
        let (folder, known) = (self.folder.clone(), Mutex::new((Duration::ZERO, false)));
        Arc::new(move || {
            let now = clock.monotonic();
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if now >= known.0 {
                // A device that can't be asked isn't called full: the write itself will tell.
                *known = (now + LOOK, free(&folder).is_ok_and(|free| free < LOW));
            }
            known.1
        })
    }

    /// The write-ahead log that is written now and its length in bytes, for tests that take the power: a copy of the
    /// folder whose log is cut at an earlier length is what a loss of power at that moment could have left.
    ///
    /// # Errors
    /// When the folder can't be read, or has no such log.
    pub fn wal(&self) -> io::Result<(PathBuf, u64)> {
        let mut newest: Option<PathBuf> = None;
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // Their names are numbers of one length, so the greatest is the newest.
            if path.extension().is_some_and(|end| end == "log") && newest.as_ref().is_none_or(|newest| *newest < path) {
                newest = Some(path);
            }
        }
        let path = newest.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no write-ahead log"))?;
        let length = std::fs::metadata(&path)?.len();
        Ok((path, length))
    }

    /// Syncs on the caller's thread, for simulations that must not wait for another one.
    ///
    /// # Errors
    /// When the device fails.
    pub fn sync_now(&self) -> io::Result<()> {
        self.db.flush_wal(true).map_err(|error| to_io(&error))
    }

    fn cf(&self, cf: Cf) -> &ColumnFamily {
        self.db.cf_handle(cf.name()).expect("all families are opened")
    }
}

impl Drop for RocksEngine {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(syncer) = self.syncer.take() {
            // The thread holds the database; when this returns, another process can open it.
            drop(syncer.join());
        }
    }
}

#[async_trait::async_trait]
impl Engine for RocksEngine {
    fn get(&self, cf: Cf, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.db.get_cf(self.cf(cf), key).map_err(|error| to_io(&error))
    }

    fn scan(&self, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> io::Result<Vec<KeyValue>> {
        let mut options = ReadOptions::default();
        if let Some(to) = to {
            options.set_iterate_upper_bound(to);
        }
        let mut cursor = self.db.raw_iterator_cf_opt(self.cf(cf), options);
        let mut pairs = Vec::new();
        cursor.seek(from);
        while pairs.len() < limit
            && let Some((key, value)) = cursor.item()
        {
            pairs.push((key.to_vec(), value.to_vec()));
            cursor.next();
        }
        cursor.status().map_err(|error| to_io(&error))?;
        Ok(pairs)
    }

    fn last(&self, cf: Cf) -> io::Result<Option<KeyValue>> {
        let mut cursor = self.db.raw_iterator_cf(self.cf(cf));
        cursor.seek_to_last();
        let pair = cursor.item().map(|(key, value)| (key.to_vec(), value.to_vec()));
        cursor.status().map_err(|error| to_io(&error))?;
        Ok(pair)
    }

    fn write(&self, batch: &Batch) -> io::Result<()> {
        if free(&self.folder)? < RESERVE {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the device of the data folder is nearly full"));
        }
        let mut native = WriteBatch::default();
        for op in &batch.ops {
            match op {
                Op::Put(cf, key, value) => native.put_cf(self.cf(*cf), key, value),
                Op::Delete(cf, key) => native.delete_cf(self.cf(*cf), key),
                // RocksDB refuses ranges that end before they begin; for us they are empty.
                Op::DeleteRange(cf, from, to) if from < to => native.delete_range_cf(self.cf(*cf), from, to),
                Op::DeleteRange(..) => {}
            }
        }
        self.db.write(native).map_err(|error| to_io(&error))
    }

    async fn sync(&self) -> io::Result<()> {
        let done = self.queue.enter()?;
        done.await.map_err(|_| io::Error::other("the sync thread has ended"))?
    }
}

/// Callers who wait for a sync.
#[derive(Default)]
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
    /// A sync has failed once. Nothing can be promised after that, even if a later one succeeds.
    failed: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    callers: Vec<oneshot::Sender<io::Result<()>>>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> io::Result<oneshot::Receiver<io::Result<()>>> {
        if self.failed.load(Ordering::Acquire) {
            return Err(io::Error::other("an earlier sync has failed; the server has to be restarted"));
        }
        let (done, wait) = oneshot::channel();
        self.lock().callers.push(done);
        self.changed.notify_one();
        Ok(wait)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Runs on the thread until the queue is closed and empty.
    fn serve(&self, mut sync: impl FnMut() -> io::Result<()>) {
        loop {
            let callers = {
                let mut state = self.lock();
                while state.callers.is_empty() && !state.closed {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                std::mem::take(&mut state.callers)
            };
            if callers.is_empty() {
                return;
            }
            let result = sync();
            if result.is_err() {
                self.failed.store(true, Ordering::Release);
            }
            for caller in callers {
                // A caller that has gone away needs no answer.
                drop(caller.send(same(&result)));
            }
        }
    }
}

fn make_folder(folder: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.push(entry?.file_name());
    }
    let ours = names.is_empty() || names.iter().any(|name| name == "CURRENT");
    // A crash during the very first start leaves these and no CURRENT yet.
    let begun = names.iter().all(|name| {
        let name = name.to_string_lossy();
        name == "LOCK"
            || name == "IDENTITY"
            || ["LOG", "MANIFEST", "OPTIONS"].iter().any(|p| name.starts_with(p))
            || name.ends_with(".log")
            || name.ends_with(".dbtmp")
            || name == "lost+found"
    });
    if ours || begun {
        return Ok(());
    }
    names.sort();
    let wanted = format!("a data folder ({})", folder.display());
    let found = format!("it holds other files, such as {}", names[0].to_string_lossy());
    Err(OpenError::Foreign { wanted, found })
}

fn free(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn database_options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // A power loss leaves a torn tail: the log is read up to there. A log that was closed and synced is checked whole.
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_paranoid_checks(true);
    options.set_max_total_wal_size(WAL_MAX);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_keep_log_file_num(TEXT_LOGS);
    options.set_max_log_file_size(TEXT_LOG_BYTES);
    options.set_log_level(rocksdb::LogLevel::Warn);
    options
}

fn family_options() -> Options {
    let mut options = Options::default();
    options.set_write_buffer_size(WRITE_BUFFER);
    options.set_compression_type(rocksdb::DBCompressionType::None);
    options
}

fn is_full(message: &str) -> bool {
    message.contains("No space left") || message.contains("NoSpace") || message.contains("quota exceeded")
}

fn to_io(error: &rocksdb::Error) -> io::Error {
    let message = error.to_string();
    let kind = match error.kind() {
        ErrorKind::Corruption => io::ErrorKind::InvalidData,
        _ if is_full(&message) => io::ErrorKind::StorageFull,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, message)
}

fn open_error(folder: &Path, error: &rocksdb::Error) -> OpenError {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::IOError if message.contains("/LOCK") => OpenError::Busy { folder: folder.display().to_string() },
        ErrorKind::Corruption => OpenError::Damaged { what: message },
        // A missing column family, a newer format.
        ErrorKind::InvalidArgument => {
            OpenError::Foreign { wanted: format!("our database ({})", folder.display()), found: message }
        }
        _ if is_full(&message) => OpenError::StorageFull,
        _ => OpenError::Io(to_io(error)),
    }
}
