//! Replication alone under the simulator: three members of raft-store on simulated disks and links, counting. It finds
//! trouble with determinism, durability and agreement without the weight of a whole server.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod disk;
mod failover;
mod member;

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use cara_netsim::{SimRng, World, trace};

use crate::member::{Counted, NAMES, host_all};

cara_netsim::override_libc!();

/// Set by the parent for its children: the seed to run.
const SEED: &str = "CARA_CHAOS_TEST_SEED";

fn run_for(world: &mut World, ms: u64) {
    let until = world.now() + Duration::from_millis(ms);
    world.run_until(until, |_| false).unwrap();
}

/// Faults for a while, then peace; checks that nothing was lost and that all members agree.
fn run(seed: u64) -> String {
    let counted = Arc::new(Counted::default());
    let mut world = World::new(seed);
    host_all(&mut world, &counted);
    run_for(&mut world, 3_000);
    let rng = SimRng::new(seed, "nemesis");
    for _ in 0..10 {
        let host = counted.leader().filter(|_| rng.chance(60)).unwrap_or_else(|| (*rng.pick(&NAMES).unwrap()).into());
        match rng.between(0, 4) {
            0 => world.freeze(&host),
            1 => world.crash(&host),
            2 => world.power_loss(&host),
            3 => world.isolate(&host, true),
            _ => world.disk_stall(&host, true),
        }
        run_for(&mut world, rng.between(500, 4_000));
        world.heal_network();
        world.thaw(&host);
        world.disk_stall(&host, false);
        world.restart(&host);
        run_for(&mut world, rng.between(0, 1_500));
    }
    counted.stop();
    let agreed = world.run_until(world.now() + Duration::from_secs(40), |_| counted.all_agree()).unwrap();
    assert!(agreed, "seed {seed}: the members don't agree: {:?}", counted.states());
    counted.nothing_lost(seed);
    let digest = trace::digest();
    format!(
        "hash {:016x} events {} bytes {} acknowledged {}",
        digest.hash,
        digest.events,
        digest.wire_bytes,
        counted.acknowledged()
    )
}

/// The child's part; without a parent it runs one seed for itself.
#[test]
fn members_under_faults_lose_nothing_and_agree() {
    let seed = std::env::var(SEED).map_or(1, |seed| seed.parse().unwrap());
    println!("{}", run(seed));
}

fn child(seed: u64) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "members_under_faults_lose_nothing_and_agree", "--nocapture"])
        .env(SEED, seed.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("hash "));
    line.unwrap_or_else(|| panic!("seed {seed}: {text}{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

#[test]
fn one_seed_in_two_processes_is_the_same_history_and_five_seeds_pass() {
    let first: Vec<String> = (1..=5).map(child).collect();
    let again: Vec<String> = (1..=2).map(child).collect();
    assert_eq!(first[..2], again);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 5, "five seeds must be five histories: {first:?}");
}
