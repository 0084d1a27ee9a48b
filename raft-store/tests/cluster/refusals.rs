//! Databases that must not be opened, and a device that runs full.

use std::sync::Arc;

use cara_env::{Batch, Cf, Engine, Env};
use raft_store::memory::MemoryEngine;
use raft_store::testing::{Command, JournalEngine, Registers, reply};
use raft_store::{Config, OpenError, ProposeError};

use crate::harness::{Cluster, LIMIT, Plain, Store, config};

async fn open(config: Config, engine: Arc<dyn Engine>) -> Result<Store, OpenError> {
    Store::open(config, Env::real(), engine, Arc::new(Plain), Registers::default()).await
}

fn again(id: u64) -> Config {
    Config { expect_empty: false, ..config(id) }
}

/// A database of server 1 with 30 writes in it.
async fn used() -> Arc<MemoryEngine> {
    let engine = Arc::new(MemoryEngine::new());
    let mut cluster = Cluster::start(1, |id| (config(id), engine.clone())).await;
    for n in 0..30 {
        cluster.write(&Command::Set(format!("register {n}"), n)).await;
    }
    cluster.0.get_mut(&1).expect("a member").stop().await;
    engine
}

async fn refusal(config: Config, engine: Arc<dyn Engine>) -> OpenError {
    open(config, engine).await.err().expect("is refused")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_under_a_known_id_never_opens() {
    let error = refusal(again(1), Arc::new(MemoryEngine::new())).await;
    assert!(matches!(error, OpenError::Empty { id: 1 }), "{error}");
    assert!(error.to_string().contains("under a new id"), "says what to do: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_databases_are_refused() {
    let engine = used().await;
    assert!(matches!(refusal(config(1), engine.clone()).await, OpenError::NotEmpty { id: 1 }));
    assert!(matches!(refusal(again(2), engine.clone()).await, OpenError::Foreign { .. }));
    let other = Config { cluster: "other".into(), ..again(1) };
    let error = refusal(other, engine.clone()).await;
    assert!(error.to_string().contains("server 1 of cluster test"), "says what it found: {error}");
    let unknown = MemoryEngine::new();
    let mut batch = Batch::new();
    batch.put(Cf::State, b"x".to_vec(), b"y".to_vec());
    unknown.write(&batch).expect("write");
    assert!(matches!(refusal(config(1), Arc::new(unknown)).await, OpenError::Foreign { .. }));
    open(again(1), engine).await.expect("its own server opens it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_in_the_log_is_refused_wherever_it_is() {
    let engine = used().await;
    let log = engine.scan(Cf::Log, &[], None, usize::MAX).expect("scan");
    for at in [0, log.len() / 2, log.len() - 1] {
        let (key, value) = log[at].clone();
        let mut rotten = value.clone();
        *rotten.last_mut().expect("not empty") ^= 1;
        let mut batch = Batch::new();
        batch.put(Cf::Log, key.clone(), rotten);
        engine.write(&batch).expect("write");
        let error = refusal(again(1), engine.clone()).await;
        assert!(matches!(error, OpenError::Damaged { .. }), "entry {at}: {error}");
        assert!(error.to_string().contains("peers"), "says what to do: {error}");
        let mut batch = Batch::new();
        batch.put(Cf::Log, key, value);
        engine.write(&batch).expect("write");
    }
    let (key, value) = log[log.len() / 2].clone();
    let mut hole = Batch::new();
    hole.delete(Cf::Log, key.clone());
    engine.write(&hole).expect("write");
    assert!(matches!(refusal(again(1), engine.clone()).await, OpenError::Damaged { .. }), "a missing entry");
    let mut mended = Batch::new();
    mended.put(Cf::Log, key, value);
    engine.write(&mended).expect("write");
    open(again(1), engine).await.expect("whole again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_tail_is_cut_off_unless_it_was_committed() {
    let engine = used().await;
    let (key, value) = engine.last(Cf::Log).expect("last").expect("a log");
    let last = u64::from_be_bytes(key.clone().try_into().expect("an index"));
    let mut torn = Batch::new();
    torn.put(Cf::Log, (last + 1).to_be_bytes(), value[..value.len() - 3].to_vec());
    engine.write(&torn).expect("write");
    let store = open(again(1), engine.clone()).await.expect("opens");
    assert_eq!(store.with_state(|state| state.get("register 29")), 29, "all that was acknowledged is there");
    store.shutdown().await;

    let engine = used().await;
    let (key, value) = engine.last(Cf::Log).expect("last").expect("a log");
    let mut torn = Batch::new();
    torn.put(Cf::Log, key, value[..value.len() - 3].to_vec());
    engine.write(&torn).expect("write");
    assert!(matches!(refusal(again(1), engine).await, OpenError::Damaged { .. }), "a committed entry is not cut");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_contradict_each_other_are_refused() {
    let wrong = Config { heartbeat: LIMIT, ..config(1) };
    assert!(matches!(refusal(wrong, Arc::new(MemoryEngine::new())).await, OpenError::Config(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_device_stops_the_server_until_there_is_room() {
    let engine = Arc::new(JournalEngine::new(None));
    let cluster = Cluster::start(1, |id| (config(id), engine.clone())).await;
    cluster.write(&Command::Set("a".into(), 1)).await;
    let store = cluster.0[&1].store();
    engine.set_full(true);
    let waiting = store.propose(Command::Set("a".into(), 2).encode());
    let watching = async {
        store.wait(LIMIT, "not noticed", |status| status.storage_full).await.expect("notices");
        let refused = store.propose(Command::Set("a".into(), 3).encode()).await;
        assert_eq!(refused, Err(ProposeError::StorageFull));
        engine.set_full(false);
    };
    let (outcome, ()) = futures_util::future::join(waiting, watching).await;
    let outcome = outcome.expect("the one that waited goes on by itself");
    assert_eq!(reply(&outcome.reply), Some(2));
    store.wait(LIMIT, "still full", |status| !status.storage_full).await.expect("recovers");
    cluster.write(&Command::Set("a".into(), 4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_room_is_short_only_what_frees_room_is_taken() {
    let short = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let setup = |id| {
        let short = short.clone();
        let low = Arc::new(move || short.load(std::sync::atomic::Ordering::Relaxed));
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        (Config { low_space: Some(low), ..config(id) }, engine)
    };
    let cluster = Cluster::start(1, setup).await;
    cluster.write(&Command::Set("a".into(), 1)).await;
    short.store(true, std::sync::atomic::Ordering::Relaxed);
    let store = cluster.0[&1].store();
    assert_eq!(store.propose(Command::Set("b".into(), 1).encode()).await, Err(ProposeError::StorageFull));
    store.propose_freeing(Command::Remove("a".into()).encode()).await.expect("a removal is taken");
}
