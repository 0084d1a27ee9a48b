//! openraft's own storage suite on both engines, and the install of a snapshot with a crash at every write.

use std::sync::Arc;

use cara_env::{Engine, Env};
use futures_util::stream;
use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::{EntryPayload, StorageError};

use crate::disk::Disk;
use crate::log::Log;
use crate::memory::MemoryEngine;
use crate::rocks::RocksEngine;
use crate::snapshot::Snapshots;
use crate::state::{Machine, Shared};
use crate::testing::{Command, JournalEngine, Registers};
use crate::types::{Bytes, Entry, TypeConfig};

async fn open(engine: Arc<dyn Engine>) -> (Log, Machine<Registers>, Arc<Shared<Registers>>) {
    let disk = Arc::new(Disk::new(engine, Env::real()));
    let snapshots = Arc::new(Snapshots::open(disk.clone(), 16).await.expect("snapshots open"));
    let shared = Arc::new(Shared::new(Registers::default()));
    let machine = Machine::open(disk.clone(), shared.clone(), snapshots, 0).expect("the state opens");
    (Log::new(disk), machine, shared)
}

struct InMemory;

impl StoreBuilder<TypeConfig, Log, Machine<Registers>> for InMemory {
    async fn build(&self) -> Result<((), Log, Machine<Registers>), StorageError<TypeConfig>> {
        let (log, machine, _) = open(Arc::new(MemoryEngine::new())).await;
        Ok(((), log, machine))
    }
}

struct OnRocks;

impl StoreBuilder<TypeConfig, Log, Machine<Registers>, tempfile::TempDir> for OnRocks {
    async fn build(&self) -> Result<(tempfile::TempDir, Log, Machine<Registers>), StorageError<TypeConfig>> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = RocksEngine::open(folder.path()).expect("rocksdb opens");
        let (log, machine, _) = open(Arc::new(engine)).await;
        Ok((folder, log, machine))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openraft_suite_in_memory() {
    Suite::test_all(InMemory).await.expect("the suite passes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openraft_suite_on_rocksdb() {
    Suite::test_all(OnRocks).await.expect("the suite passes");
}

#[tokio::test]
async fn entries_behind_a_gap_are_never_sent_in_the_place_of_purged_ones() {
    use openraft::RaftLogReader;
    use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
    let (mut log, _machine, _) = open(Arc::new(MemoryEngine::new())).await;
    let entries: Vec<Entry> =
        (0..10).map(|index| entry(index, &Command::Set("a".into(), i64::try_from(index).expect("small")))).collect();
    let fifth = entries[5].log_id;
    log.blocking_append(entries).await.expect("appended");
    log.purge(fifth).await.expect("purged");
    let indexes = async |log: &mut Log, start| {
        let read = log.limited_get_log_entries(start, 9).await.expect("read");
        read.iter().map(|entry| entry.log_id.index()).collect::<Vec<_>>()
    };
    assert_eq!(indexes(&mut log, 6).await, [6, 7, 8]);
    assert_eq!(indexes(&mut log, 4).await, Vec::<u64>::new(), "4 and 5 are gone: 6 must not stand for 4");
}

fn entry(index: u64, command: &Command) -> Entry {
    let log_id = openraft::testing::log_id::<TypeConfig>(1, 1, index);
    Entry { log_id, payload: EntryPayload::Normal(Bytes(command.encode().into())) }
}

async fn apply(machine: &mut Machine<Registers>, entries: Vec<Entry>) {
    let entries = stream::iter(entries.into_iter().map(|entry| Ok((entry, None))));
    machine.apply(entries).await.expect("apply");
}

#[tokio::test]
async fn a_snapshot_install_that_crashes_anywhere_leaves_the_old_state_or_the_new_one() {
    let (_log, mut leader, leader_state) = open(Arc::new(MemoryEngine::new())).await;
    let many = (0..40).map(|n| entry(n, &Command::Set(format!("register {n}"), n as i64))).collect();
    apply(&mut leader, many).await;
    let built = leader.try_create_snapshot_builder(true).await.expect("forced").build_snapshot().await.expect("built");
    let new = leader_state.read(|registers, _| registers.clone());

    // Without a crash first, to count the steps.
    let mut outcomes = std::collections::BTreeSet::new();
    for breaks_at in 0.. {
        let engine = Arc::new(JournalEngine::default());
        let (_log, mut follower, state) = open(engine.clone()).await;
        apply(&mut follower, vec![entry(0, &Command::Set("old".into(), 7))]).await;
        let old = state.read(|registers, _| registers.clone());
        engine.sync().await.expect("sync");
        engine.break_at(engine.steps() + breaks_at);
        let installed = follower.install_snapshot(&built.meta, built.snapshot.clone()).await.is_ok();
        let (synced, written) = engine.writes();
        for survives in synced..=written {
            let (_log, mut machine, state) = open(Arc::new(engine.survivor(survives))).await;
            let now = state.read(|registers, _| registers.clone());
            let (applied, _) = machine.applied_state().await.expect("applied state");
            let current = machine.get_current_snapshot().await.expect("current snapshot");
            if applied == built.meta.last_log_id {
                assert_eq!(now, new, "broken at {breaks_at}, {survives} writes survive");
                assert_eq!(current.map(|current| current.meta), Some(built.meta.clone()));
            } else {
                assert_eq!(now, old, "broken at {breaks_at}, {survives} writes survive");
                assert!(current.is_none(), "nobody points to an incomplete copy");
                assert!(!installed, "an acknowledged install must survive");
            }
            outcomes.insert(now == new);
        }
        if installed {
            assert!(breaks_at > 10, "the copy has many chunks, so there were many places to crash");
            break;
        }
    }
    assert_eq!(outcomes.len(), 2, "both outcomes were seen");
}
