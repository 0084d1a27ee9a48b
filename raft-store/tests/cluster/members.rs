//! Changing who belongs: learn, vote, hand over, leave.

use std::sync::Arc;

use raft_store::memory::MemoryEngine;
use raft_store::testing::Command;
use raft_store::{ChangeError, Role};

use crate::harness::{Cluster, LIMIT, Member, applied, config};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_learns_votes_and_leaves() {
    let mut cluster = Cluster::start(1, |id| (config(id), Arc::new(MemoryEngine::new()))).await;
    let (last, _) = cluster.write(&Command::Set("a".into(), 1)).await;
    for id in 2..=3 {
        let mut member = Member::new(id);
        member.start(config(id), Arc::new(MemoryEngine::new())).await.expect("opens");
        let leader = cluster.leader().await;
        cluster.0[&leader].store().add_learner(id, &member.address).await.expect("is added");
        applied(member.store(), last.index).await;
        assert_eq!(member.store().status().role, Role::Learner);
        let leader = cluster.0[&leader].store();
        let caught_up = |s: &raft_store::Status| s.matched.get(&id).copied().flatten() >= s.last_log;
        leader.wait(LIMIT, "not caught up", caught_up).await.expect("catches up");
        leader.promote(id).await.expect("is promoted");
        leader.promote(id).await.expect("promoting twice is fine");
        cluster.0.insert(id, member);
    }
    let leader = cluster.leader().await;
    let store = cluster.0[&leader].store();
    assert_eq!(store.status().voters.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    assert!(store.status().learners.is_empty());
    let wrong = store.add_learner(2, "127.0.0.1:1").await;
    assert!(matches!(wrong, Err(ChangeError::Refused { .. })), "another address under a known id: {wrong:?}");
    let unknown = store.promote(9).await;
    assert!(matches!(unknown, Err(ChangeError::Refused { .. })), "{unknown:?}");

    let other = if leader == 3 { 2 } else { 3 };
    store.remove(other).await.expect("is removed");
    assert!(!store.status().voters.contains_key(&other) && !store.status().learners.contains_key(&other));
    cluster.0.get_mut(&other).expect("a member").stop().await;
    let (position, _) = cluster.write(&Command::Set("b".into(), 2)).await;
    assert_eq!(cluster.agree(position.index).await.get("b"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leadership_moves_where_it_is_sent() {
    let cluster = Cluster::start(3, |id| (config(id), Arc::new(MemoryEngine::new()))).await;
    cluster.write(&Command::Set("a".into(), 1)).await;
    let old = cluster.leader().await;
    let to = old % 3 + 1;
    cluster.0[&old].store().transfer_leader(to).await.expect("hands over");
    let new = cluster.leader().await;
    assert_ne!(new, old);
    let not_leading = cluster.0[&old].store().transfer_leader(to).await;
    assert!(matches!(not_leading, Err(ChangeError::NotLeader { .. })), "{not_leading:?}");
    let (position, _) = cluster.write(&Command::Set("a".into(), 2)).await;
    assert_eq!(cluster.agree(position.index).await.get("a"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_voter_stays() {
    let cluster = Cluster::start(1, |id| (config(id), Arc::new(MemoryEngine::new()))).await;
    let store = cluster.0[&cluster.leader().await].store();
    let refused = store.remove(1).await;
    assert!(matches!(refused, Err(ChangeError::Refused { .. })), "{refused:?}");
    let again = store.initialize(raft_store::members([(1, "127.0.0.1:1")])).await;
    assert!(matches!(again, Err(ChangeError::Refused { .. })), "{again:?}");
}
