//! The ledger: the last desired set that this agent has taken, on disk, and the fences that keep older ones out.
//!
//! Rules. A set below the last one by (incarnation, term, revision) is refused: it comes from a leader that was replaced
//! and doesn't know it. A workload's generation never goes back either, also when the workload left the node in between
//! (unless the incarnation rises: then an operator has restored the cluster from a backup, on purpose).
//! Nothing is acted on before it is on disk, so after a restart without any server the agent knows what it knew.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cara_env::Files;
use cara_proto::agent::{Desired, Fence};
use prost::Message;

/// First bytes of the file; a later format gets another number.
const MAGIC: &[u8; 8] = b"caraldg1";
/// Length of a SHA-256 in hex.
const CHECKSUM: usize = 64;
/// Generations kept of workloads that left the node. The fence alone keeps old sets out; this second lock may forget the
/// oldest, and 4096 of them are 200 KiB.
const DEPARTED_MAX: usize = 4096;

/// The file's content after magic and checksum.
#[derive(Clone, PartialEq, prost::Message)]
struct Record {
    #[prost(message, optional, tag = "1")]
    desired: Option<Desired>,
    /// The highest generation seen by uid.
    #[prost(btree_map = "string, uint64", tag = "2")]
    generations: BTreeMap<String, u64>,
}

/// Why the ledger can't be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file can't be read.
    #[error("can't read the ledger {}: {source}; fix the file's owner and mode and start the agent again", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is damaged. Starting with an empty one would let an older desired set in.
    #[error(
        "the ledger {} is damaged ({problem}); containers keep running. If the cluster is healthy, remove the file and \
         start the agent again: it will take the current desired set from the leader",
        .file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Why a desired set was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It carries no fence.
    #[error("the desired set carries no fence")]
    NoFence,
    /// It is older than the last one taken.
    #[error("the desired set is older ({offered}) than the last one taken ({last}): it comes from a replaced leader")]
    Stale {
        /// Its fence.
        offered: String,
        /// Ours.
        last: String,
    },
    /// A workload would go back to an earlier placement.
    #[error("workload {uid} would go back from generation {last} to {offered}")]
    Generation {
        /// The workload.
        uid: String,
        /// In the set.
        offered: u64,
        /// Seen before.
        last: u64,
    },
    /// It could not be saved, so it is not acted on.
    #[error("can't save the ledger {}: {source}; the node goes on with the last saved set", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// The agent's memory of what it shall run.
pub struct Ledger {
    files: Arc<dyn Files>,
    file: PathBuf,
    record: Record,
}

impl Ledger {
    /// Reads the ledger; a missing file is an empty one.
    ///
    /// # Errors
    /// A file that can't be read or is damaged is never taken for an empty one.
    pub fn open(files: Arc<dyn Files>, file: PathBuf) -> Result<Self, LedgerError> {
        let record = match files.read(&file) {
            Ok(bytes) => decode(&bytes).map_err(|problem| LedgerError::Damaged { file: file.clone(), problem })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Record::default(),
            Err(source) => return Err(LedgerError::Read { file, source }),
        };
        Ok(Self { files, file, record })
    }

    /// The fence of the last set taken; all zero when there is none.
    pub fn fence(&self) -> Fence {
        self.record.desired.as_ref().and_then(|d| d.fence).unwrap_or_default()
    }

    /// The last set taken.
    pub fn desired(&self) -> Option<&Desired> {
        self.record.desired.as_ref()
    }

    /// Takes a desired set if it is not older than the last one, and saves it. `false` when it changes nothing.
    ///
    /// # Errors
    /// Says why the set is not taken; the last one stays in force.
    pub fn offer(&mut self, desired: Desired) -> Result<bool, Refused> {
        if self.record.desired.as_ref() == Some(&desired) {
            return Ok(false);
        }
        let record = accept(&self.record, desired)?;
        if !cara_env::planted("ledger-not-persisted") {
            self.files
                .write(&self.file, &encode(&record), 0o600)
                .map_err(|source| Refused::Write { file: self.file.clone(), source })?;
        }
        self.record = record;
        Ok(true)
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("file", &self.file).field("fence", &self.fence()).finish_non_exhaustive()
    }
}

/// The decision, pure: the record after the set was taken.
fn accept(last: &Record, desired: Desired) -> Result<Record, Refused> {
    let offered = desired.fence.ok_or(Refused::NoFence)?;
    let fence = last.desired.as_ref().and_then(|d| d.fence).unwrap_or_default();
    if key(&offered) < key(&fence) && !cara_env::planted("fence-not-checked-on-agent") {
        return Err(Refused::Stale { offered: text(&offered), last: text(&fence) });
    }
    let mut generations =
        if offered.incarnation > fence.incarnation { BTreeMap::new() } else { last.generations.clone() };
    for assignment in &desired.assignments {
        let seen = generations.entry(assignment.uid.clone()).or_default();
        if assignment.generation < *seen {
            let (uid, offered, last) = (assignment.uid.clone(), assignment.generation, *seen);
            return Err(Refused::Generation { uid, offered, last });
        }
        *seen = assignment.generation;
    }
    forget(&mut generations, &desired);
    Ok(Record { desired: Some(desired), generations })
}

/// Forgets the lowest generations of departed workloads above the limit.
fn forget(generations: &mut BTreeMap<String, u64>, desired: &Desired) {
    let present: std::collections::BTreeSet<&str> = desired.assignments.iter().map(|a| a.uid.as_str()).collect();
    let mut departed: Vec<(u64, String)> =
        generations.iter().filter(|(uid, _)| !present.contains(uid.as_str())).map(|(u, g)| (*g, u.clone())).collect();
    departed.sort();
    let excess = departed.len().saturating_sub(DEPARTED_MAX);
    for (_, uid) in departed.into_iter().take(excess) {
        generations.remove(&uid);
    }
}

fn key(fence: &Fence) -> (u64, u64, u64) {
    (fence.incarnation, fence.term, fence.revision)
}

fn text(fence: &Fence) -> String {
    format!("incarnation {}, term {}, revision {}", fence.incarnation, fence.term, fence.revision)
}

fn encode(record: &Record) -> Vec<u8> {
    let body = record.encode_to_vec();
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(cara_transport::fingerprint(&body).as_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Record, &'static str> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin like a ledger")?;
    let (checksum, body) = rest.split_at_checked(CHECKSUM).ok_or("it is cut short")?;
    if cara_transport::fingerprint(body).as_bytes() != checksum {
        return Err("its checksum does not fit its content");
    }
    Record::decode(body).map_err(|_| "its content can't be decoded")
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
