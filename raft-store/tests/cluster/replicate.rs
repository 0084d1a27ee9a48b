//! Three members: writes reach all, reads are current, nothing acknowledged is lost.

use std::sync::Arc;

use raft_store::memory::MemoryEngine;
use raft_store::rocks::RocksEngine;
use raft_store::testing::Command;
use raft_store::{COMMAND_MAX, Config, ProposeError, ReadError};

use crate::harness::{Cluster, applied, config, released, tick, within};

fn add(by: i64) -> Command {
    Command::Add("sum".into(), by)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_leader_acknowledges_is_on_all_members() {
    let cluster = Cluster::start(3, |id| (config(id), Arc::new(MemoryEngine::new()))).await;
    let mut last = 0;
    for n in 1..=20 {
        let (position, sum) = cluster.write(&add(n)).await;
        assert!(position.index > last, "positions rise");
        last = position.index;
        assert!(sum >= (1..=n).sum());
    }
    let state = cluster.agree(last).await;
    assert!(state.get("sum") >= (1..=20).sum());
    let status = cluster.0[&cluster.leader().await].store().status();
    assert_eq!((status.voters.len(), status.matched.len()), (3, 3));
    assert!(status.can_lose_one(1_000), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_concurrent_writes_and_reads_share_rounds() {
    let cluster = Cluster::start(3, |id| (config(id), Arc::new(MemoryEngine::new()))).await;
    let store = cluster.0[&cluster.leader().await].store();
    let writes = (0..200).map(|_| store.propose(add(1).encode()));
    let done = futures_util::future::join_all(writes).await;
    let acknowledged = done.iter().filter(|result| result.is_ok()).count() as i64;
    let reads = futures_util::future::join_all((0..200).map(|_| store.read_barrier())).await;
    if let Some(index) = reads.into_iter().flatten().max() {
        assert!(store.with_state_at(|_, at| at.expect("applied").index) >= index);
        assert!(store.with_state(|state| state.get("sum")) >= acknowledged);
    }
    assert!(acknowledged > 0, "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_names_the_leader_and_serves_no_linearizable_read() {
    let cluster = Cluster::start(3, |id| (config(id), Arc::new(MemoryEngine::new()))).await;
    let (leader, follower) = within(async {
        loop {
            let leader = cluster.leader().await;
            let knows = |m: &&crate::harness::Member| m.store().status().leader.is_some_and(|(id, _)| id == leader);
            match cluster.running().filter(|m| m.id != leader).find(knows) {
                Some(follower) => return (leader, follower),
                None => tick().await,
            }
        }
    })
    .await;
    let address = cluster.0[&leader].address.clone();
    let wanted = Some((leader, address));
    assert_eq!(
        follower.store().propose(add(1).encode()).await,
        Err(ProposeError::NotLeader { leader: wanted.clone() })
    );
    assert_eq!(follower.store().read_barrier().await, Err(ReadError::NotLeader { leader: wanted }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let cluster = Cluster::start(1, |id| (config(id), Arc::new(MemoryEngine::new()))).await;
    let store = cluster.0[&cluster.leader().await].store();
    let refused = store.propose(vec![0; COMMAND_MAX + 1]).await;
    assert_eq!(refused, Err(ProposeError::TooLarge { bytes: COMMAND_MAX + 1, limit: COMMAND_MAX }));
    store.propose(vec![0xff; COMMAND_MAX]).await.expect("fits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_leader_goes_another_one_has_everything_and_the_old_one_catches_up() {
    let engines: Vec<_> = (0..3).map(|_| Arc::new(MemoryEngine::new())).collect();
    let mut cluster = Cluster::start(3, |id| (config(id), engines[id as usize - 1].clone())).await;
    for n in 0..10 {
        cluster.write(&Command::Set(format!("before {n}"), n)).await;
    }
    let old = cluster.leader().await;
    let term = cluster.0[&old].store().status().term;
    cluster.0.get_mut(&old).expect("a member").stop().await;
    let new = cluster.leader().await;
    assert_ne!(new, old);
    assert!(cluster.0[&new].store().status().term > term, "terms rise");
    let store = cluster.0[&new].store();
    for n in 0..10 {
        assert_eq!(store.with_state(|state| state.get(&format!("before {n}"))), n, "an acknowledged write is there");
    }
    let (position, _) = cluster.write(&Command::Set("after".into(), 1)).await;
    let again = Config { expect_empty: false, ..config(old) };
    let engine = engines[old as usize - 1].clone();
    cluster.0.get_mut(&old).expect("a member").start(again, engine).await.expect("opens again");
    assert_eq!(cluster.agree(position.index).await.get("after"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_on_rocksdb_keeps_state_and_vote() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = || Arc::new(RocksEngine::open(folder.path()).expect("rocksdb opens"));
    let engine = open();
    let weak = Arc::downgrade(&engine);
    let mut cluster = Cluster::start(1, |id| (config(id), engine.clone())).await;
    for n in 0..50 {
        cluster.write(&add(n)).await;
    }
    let before = cluster.0[&1].store().status();
    let state = cluster.0[&1].store().with_state(Clone::clone);
    let member = cluster.0.get_mut(&1).expect("a member");
    member.stop().await;
    drop(engine);
    released(weak).await;
    member.start(Config { expect_empty: false, ..config(1) }, open()).await.expect("opens again");
    assert_eq!(member.store().with_state(Clone::clone), state, "all is there before any election");
    cluster.leader().await;
    let after = cluster.0[&1].store().status();
    assert!(after.term > before.term, "a restarted leader is elected again");
    assert!(after.applied >= before.applied);
    cluster.write(&add(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_far_behind_gets_a_snapshot() {
    let small = |id| Config { snapshot_after: 40, keep_logs: 10, snapshot_chunk: 64, ..config(id) };
    let engines: Vec<_> = (0..3).map(|_| Arc::new(MemoryEngine::new())).collect();
    let mut cluster = Cluster::start(3, |id| (small(id), engines[id as usize - 1].clone())).await;
    cluster.write(&Command::Set("doomed".into(), 1)).await;
    let leader = cluster.leader().await;
    let lagging = if leader == 3 { 2 } else { 3 };
    let behind = cluster.0[&lagging].store().status().last_log.expect("it has a log");
    cluster.0.get_mut(&lagging).expect("a member").stop().await;
    let mut last = cluster.write(&Command::Remove("doomed".into())).await.0;
    for n in 0..200 {
        last = cluster.write(&Command::Set(format!("register {}", n % 30), n)).await.0;
    }
    let store = cluster.0[&cluster.leader().await].store();
    store.snapshot_now().await.expect("a snapshot");
    store
        .wait(crate::harness::LIMIT, "not purged", |status| status.purged.is_some_and(|at| at.index > behind + 50))
        .await
        .expect("purges what the follower would need");
    let engine = engines[lagging as usize - 1].clone();
    let again = Config { expect_empty: false, ..small(lagging) };
    cluster.0.get_mut(&lagging).expect("a member").start(again, engine).await.expect("opens again");
    applied(cluster.0[&lagging].store(), last.index).await;
    let state = cluster.agree(last.index).await;
    assert_eq!((state.0.len(), state.get("register 29")), (30, 179), "what was removed is not there either");
    let status = cluster.0[&lagging].store().status();
    assert!(status.snapshot.is_some_and(|at| at.index > behind), "it came by snapshot: {status:?}");
}
