//! Both engines keep the contract and agree on random operations; RocksDB keeps what was written and refuses what it
//! must not open.

use std::sync::Arc;

use cara_env::{Batch, Cf, Engine, Op};
use proptest::prelude::*;
use raft_store::memory::MemoryEngine;
use raft_store::rocks::RocksEngine;
use raft_store::{OpenError, engine_contract};

#[tokio::test]
async fn memory_keeps_the_contract() {
    engine_contract::check(Arc::new(MemoryEngine::new())).await;
}

#[tokio::test]
async fn rocksdb_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    engine_contract::check(Arc::new(RocksEngine::open(folder.path()).expect("opens"))).await;
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few and short, so that operations meet.
    prop::collection::vec(0_u8..4, 0..3)
}

fn op() -> impl Strategy<Value = Op> {
    let cf = || prop::sample::select(Cf::ALL.to_vec());
    prop_oneof![
        4 => (cf(), key(), prop::collection::vec(any::<u8>(), 0..4)).prop_map(|(cf, k, v)| Op::Put(cf, k, v)),
        1 => (cf(), key()).prop_map(|(cf, k)| Op::Delete(cf, k)),
        1 => (cf(), key(), key()).prop_map(|(cf, from, to)| Op::DeleteRange(cf, from, to)),
    ]
}

fn dump(engine: &dyn Engine) -> Vec<(Cf, Vec<cara_env::KeyValue>)> {
    Cf::ALL.map(|cf| (cf, engine.scan(cf, &[], None, usize::MAX).expect("scan"))).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn rocksdb_and_memory_agree(
        batches in prop::collection::vec(prop::collection::vec(op(), 0..6), 0..24),
        from in key(), to in key(), limit in 0_usize..8,
    ) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rocks = RocksEngine::open(folder.path()).expect("opens");
        let memory = MemoryEngine::new();
        for ops in batches {
            rocks.write(&Batch { ops: ops.clone() }).expect("write");
            memory.write(&Batch { ops }).expect("write");
            for cf in Cf::ALL {
                prop_assert_eq!(rocks.last(cf).expect("last"), memory.last(cf).expect("last"));
                prop_assert_eq!(rocks.get(cf, &from).expect("get"), memory.get(cf, &from).expect("get"));
                prop_assert_eq!(
                    rocks.scan(cf, &from, Some(&to), limit).expect("scan"),
                    memory.scan(cf, &from, Some(&to), limit).expect("scan")
                );
            }
        }
        prop_assert_eq!(dump(&rocks), dump(&memory));
        drop(rocks);
        let again = RocksEngine::open(folder.path()).expect("opens again");
        prop_assert_eq!(dump(&again), dump(&memory));
    }
}

#[test]
fn a_folder_in_use_is_refused_and_free_again_after_closing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = RocksEngine::open(folder.path()).expect("opens");
    assert!(matches!(RocksEngine::open(folder.path()), Err(OpenError::Busy { .. })));
    drop(first);
    RocksEngine::open(folder.path()).expect("opens once the other is gone");
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("holiday.jpg"), b"x").expect("write");
    let error = RocksEngine::open(folder.path()).err().expect("refused");
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("holiday.jpg"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("list").count(), 1, "nothing was written into it");
}

#[test]
fn a_damaged_database_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    drop(RocksEngine::open(folder.path()).expect("opens"));
    for entry in std::fs::read_dir(folder.path()).expect("list") {
        let path = entry.expect("entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST")) {
            let mut bytes = std::fs::read(&path).expect("read");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            std::fs::write(&path, bytes).expect("write");
        }
    }
    let error = RocksEngine::open(folder.path()).err().expect("refused");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("join it again"), "says what to do: {error}");
}
