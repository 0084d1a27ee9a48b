//! A crash between any two writes: whatever of them survives, the server boots and has all that it acknowledged.

use std::sync::Arc;
use std::time::Duration;

use cara_env::{Cf, Engine, Env};
use raft_store::testing::{Command, JournalEngine, Registers};
use raft_store::{Config, OpenError, Role};

use crate::harness::{LIMIT, Plain, Store};

/// Of a dozen writes the state is written at each, after every few, and only with a snapshot.
const WRITE_BEHIND: [usize; 3] = [0, 60, usize::MAX];

fn quick(expect_empty: bool, write_behind: usize) -> Config {
    Config {
        heartbeat: Duration::from_millis(20),
        election_min: Duration::from_millis(50),
        election_max: Duration::from_millis(100),
        snapshot_after: 4,
        keep_logs: 2,
        snapshot_chunk: 32,
        expect_empty,
        write_behind,
        ..Config::new(1, "test")
    }
}

async fn open(engine: Arc<dyn Engine>, expect_empty: bool, write_behind: usize) -> Result<Store, OpenError> {
    Store::open(quick(expect_empty, write_behind), Env::real(), engine, Arc::new(Plain), Registers::default()).await
}

async fn leads(store: &Store) -> bool {
    store.wait(LIMIT, "no leader", |status| status.role == Role::Leader).await.is_ok()
}

/// Lives until the engine breaks; gives the number of acknowledged writes.
async fn live(engine: Arc<JournalEngine>, write_behind: usize) -> i64 {
    let mut acknowledged = 0;
    let Ok(store) = open(engine, true, write_behind).await else { return 0 };
    if store.initialize(raft_store::members([(1, "127.0.0.1:1")])).await.is_ok() && leads(&store).await {
        for n in 1..=12 {
            if store.propose(Command::Set(format!("register {n}"), n).encode()).await.is_err() {
                break;
            }
            acknowledged = n;
        }
        if acknowledged == 12 {
            drop(store.snapshot_now().await); // Fails when the engine breaks in it.
        }
    }
    store.shutdown().await;
    acknowledged
}

/// Boots from what survives, checks it, and works on.
async fn boot(engine: JournalEngine, write_behind: usize, acknowledged: i64, what: &str) {
    let vote = engine.get(Cf::Meta, b"vote").expect("get").is_some();
    let known = engine.get(Cf::Meta, b"identity").expect("get").is_some();
    let engine = Arc::new(engine);
    if !known {
        assert_eq!(acknowledged, 0, "{what}");
        assert!(
            matches!(open(engine, false, write_behind).await, Err(OpenError::Empty { .. })),
            "{what}: empty must not run"
        );
        return;
    }
    let store = open(engine, false, write_behind).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    for n in 1..=acknowledged {
        let value = store.with_state(|state| state.get(&format!("register {n}")));
        // The state may be older than the log; then the entry is there and applied once there is a leader.
        if value != n {
            assert!(leads(&store).await, "{what}");
            store.read_barrier().await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(store.with_state(|state| state.get(&format!("register {n}"))), n, "{what}");
        }
    }
    if !vote {
        assert_eq!(acknowledged, 0, "{what}");
        let members = raft_store::members([(1, "127.0.0.1:1")]);
        drop(store.initialize(members).await); // Refused when the first entry is there without a vote.
    }
    assert!(leads(&store).await, "{what}");
    store.propose(Command::Set("after".into(), 1).encode()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_write_loses_nothing_that_was_acknowledged() {
    for write_behind in WRITE_BEHIND {
        let whole = Arc::new(JournalEngine::new(None));
        assert_eq!(live(whole.clone(), write_behind).await, 12);
        let steps = whole.steps();
        assert!(steps > 20, "there are many places to crash: {steps}");
        // Eight at a time: each is mostly waiting for its election timeout.
        let all: Vec<usize> = (0..steps).collect();
        for some in all.chunks(8) {
            futures_util::future::join_all(some.iter().map(|breaks_at| crash(*breaks_at, write_behind))).await;
        }
    }
}

/// Lives until one write breaks, and boots from what each kind of crash leaves.
async fn crash(breaks_at: usize, write_behind: usize) {
    let engine = Arc::new(JournalEngine::new(Some(breaks_at)));
    let acknowledged = live(engine.clone(), write_behind).await;
    let (synced, written) = engine.writes();
    for survives in [synced, (synced + written) / 2, written] {
        let what = format!("broken at {breaks_at}, {survives} of {written} survive, {write_behind} bytes behind");
        boot(engine.survivor(survives), write_behind, acknowledged, &what).await;
    }
}
