//! A leader whose process ends is replaced at once; one that is only out of a follower's reach is not.

use std::sync::Arc;
use std::time::Duration;

use cara_netsim::World;
use raft_store::ProposeError;

use crate::member::{Counted, NAMES, host_all};
use crate::run_for;

/// A third of the shortest silence that raft's own timer waits for.
const AT_ONCE: Duration = Duration::from_millis(333);

/// A world with a leader that has acknowledged something.
fn settled(seed: u64) -> (World, Arc<Counted>, u64, String) {
    let counted = Arc::new(Counted::default());
    let mut world = World::new(seed);
    host_all(&mut world, &counted);
    run_for(&mut world, 5_000);
    let (term, leader) = counted.led().expect("a leader");
    (world, counted, term, leader)
}

#[test]
fn a_leader_whose_process_dies_is_replaced_long_before_its_lease_ends() {
    for seed in 1..=8 {
        let (mut world, counted, term, leader) = settled(seed);
        let begun = world.now();
        world.crash(&leader);
        let replaced = |_: &World| counted.led().is_some_and(|(now, _)| now > term);
        assert!(world.run_until(begun + AT_ONCE, replaced).unwrap(), "seed {seed}: nobody leads after {AT_ONCE:?}");
        let (now, _) = counted.led().expect("a leader");
        assert_eq!(now, term + 1, "seed {seed}: one election");
    }
}

#[test]
fn a_follower_that_is_kept_from_the_leader_unseats_nobody() {
    for seed in 1..=8 {
        let (mut world, counted, term, leader) = settled(seed);
        let follower = NAMES.iter().find(|name| **name != leader).unwrap();
        world.reject(follower, &leader, true);
        for _ in 0..4 {
            assert!(world.reset_connections(follower, &leader) > 0, "seed {seed}: nothing was reset");
            run_for(&mut world, 700);
        }
        assert_eq!(counted.led(), Some((term, leader)), "seed {seed}: a new leader");
    }
}

/// Between the end of a leader's lease, 700 ms, and the shortest silence after which followers elect, 1 s.
const UNCONFIRMED_MS: u64 = 850;

#[test]
fn a_leader_whom_nobody_answered_for_a_moment_refuses_nothing() {
    for seed in 1..=8 {
        let (mut world, counted, term, leader) = settled(seed);
        let followers = || NAMES.iter().filter(|name| **name != leader);
        followers().for_each(|name| world.freeze(name));
        run_for(&mut world, UNCONFIRMED_MS);
        counted.ask();
        run_for(&mut world, 50);
        followers().for_each(|name| world.thaw(name));
        run_for(&mut world, 1_000);
        assert_eq!(counted.answers(), [Ok(())], "seed {seed}");
        assert_eq!(counted.led(), Some((term, leader.clone())), "seed {seed}: a new leader");
    }
}

#[test]
fn a_leader_whom_nobody_answers_says_so_and_does_nothing() {
    let (mut world, counted, term, leader) = settled(1);
    let followers = || NAMES.iter().filter(|name| **name != leader);
    followers().for_each(|name| world.freeze(name));
    run_for(&mut world, UNCONFIRMED_MS);
    counted.ask();
    run_for(&mut world, 5_000);
    assert_eq!(counted.answers(), [Err(ProposeError::NoQuorum)]);
    assert_eq!(counted.led(), Some((term, leader.clone())));
    followers().for_each(|name| world.thaw(name));
    run_for(&mut world, 10_000);
    assert!(counted.states().values().all(|state| state.get("asked") == 0), "{:?}", counted.states());
}

#[test]
fn a_leader_without_power_is_replaced_by_the_timer() {
    let (mut world, counted, term, leader) = settled(1);
    let begun = world.now();
    world.power_loss(&leader);
    let replaced = |_: &World| counted.led().is_some_and(|(now, _)| now > term);
    assert!(!world.run_until(begun + AT_ONCE, replaced).unwrap(), "silence proves nothing so soon");
    assert!(world.run_until(begun + Duration::from_secs(5), replaced).unwrap(), "nobody leads");
}
