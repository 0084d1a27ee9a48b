//! Torn and rotten values, points of the disk, and the tap that follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cara_env::{Batch, Cf};
use cara_netsim::{Boot, Change, World};

const VALUE: [u8; 64] = [7; 64];

/// Appends to the log, rewrites a key of the state, removes an old key now and then, and syncs every fifth time.
async fn work(boot: Boot, synced: Arc<AtomicU64>) -> Result<(), String> {
    let last = boot.engine.last(Cf::Log).map_err(|e| e.to_string())?;
    let mut number = last.map_or(0, |(key, _)| u64::from_be_bytes(key.try_into().unwrap()));
    loop {
        number += 1;
        let mut batch = Batch::new();
        batch.put(Cf::Log, number.to_be_bytes(), VALUE);
        boot.engine.write(&batch).map_err(|e| e.to_string())?;
        let mut batch = Batch::new();
        batch.put(Cf::State, b"applied".to_vec(), number.to_be_bytes());
        batch.put(Cf::Snapshot, b"big".to_vec(), VALUE);
        if number.is_multiple_of(20) {
            batch.delete_range(Cf::Log, (number - 19).to_be_bytes(), (number - 10).to_be_bytes());
        }
        boot.engine.write(&batch).map_err(|e| e.to_string())?;
        if number.is_multiple_of(5) {
            boot.engine.sync().await.map_err(|e| e.to_string())?;
            synced.store(number, Ordering::Relaxed);
        }
        boot.env.clock.sleep(Duration::from_millis(2)).await;
    }
}

fn world(seed: u64) -> (World, Arc<AtomicU64>) {
    let synced = Arc::new(AtomicU64::new(0));
    let mut world = World::new(seed);
    let inside = synced.clone();
    world.host("disk", None, move |boot| work(boot, inside.clone()));
    (world, synced)
}

fn run_for(world: &mut World, ms: u64) {
    let until = world.now() + Duration::from_millis(ms);
    world.run_until(until, |_| false).unwrap();
}

#[test]
fn a_tear_hits_the_last_entry_of_the_log_and_no_synced_one() {
    let mut torn = 0;
    for seed in 0..30 {
        let (mut world, synced) = world(seed);
        run_for(&mut world, 100 + seed);
        world.tear_last("disk");
        world.power_loss("disk");
        let log = world.disk("disk").dump(Cf::Log);
        let short: Vec<u64> = log
            .iter()
            .filter(|(_, value)| value.len() < VALUE.len())
            .map(|(key, _)| u64::from_be_bytes(key.clone().try_into().unwrap()))
            .collect();
        assert!(short.len() <= 1, "seed {seed}: {short:?}");
        if let [number] = short[..] {
            torn += 1;
            assert!(number > synced.load(Ordering::Relaxed), "seed {seed}: entry {number} was synced");
            assert_eq!(log.last().unwrap().0, number.to_be_bytes(), "seed {seed}: it is the last one");
            let applied = world.disk("disk").dump(Cf::State).pop().unwrap().1;
            assert!(
                u64::from_be_bytes(applied.try_into().unwrap()) < number,
                "seed {seed}: nothing written later is left"
            );
        }
        world.restart("disk");
        run_for(&mut world, 100);
        world.power_loss("disk");
        let again = world.disk("disk").dump(Cf::Log);
        assert!(again.iter().filter(|(_, value)| value.len() < VALUE.len()).count() <= short.len(), "one tear a call");
    }
    assert!(torn > 10, "the fault must bite: {torn}");
}

#[test]
fn a_flipped_bit_changes_one_value_by_one_bit() {
    let (mut world, _) = world(1);
    run_for(&mut world, 100);
    let before = world.disk("disk").dump(Cf::Log);
    let written = world.disk("disk").written();
    let nth = before.len() as u64 + 2; // Counted round: the third.
    let key = world.flip_bit("disk", Cf::Log, nth).unwrap();
    let after = world.disk("disk").dump(Cf::Log);
    assert_eq!(key, before[2].0);
    assert!(world.disk("disk").written() > written);
    let bits = |i: usize| -> u32 {
        assert_eq!(before[i].1.len(), after[i].1.len());
        before[i].1.iter().zip(&after[i].1).map(|(a, b)| (a ^ b).count_ones()).sum()
    };
    assert_eq!((0..before.len()).map(bits).sum::<u32>(), 1);
    assert_eq!(bits(2), 1);
    assert_eq!(world.flip_bit("disk", Cf::Meta, 0), None, "nothing is there");
}

#[test]
fn syncs_and_writes_are_points_only_while_somebody_watches() {
    let (mut world, synced) = world(2);
    run_for(&mut world, 100);
    assert!(world.take_points().is_empty());
    world.watch_points(BTreeSet::from(["disk.sync".to_owned()]));
    let mut seen = 0;
    while seen < 3 {
        world.step().unwrap();
        let points = world.take_points();
        assert!(points.iter().all(|point| point.point == "disk.sync" && point.host == "disk"));
        seen += points.len();
    }
    // The third sync has been asked for and has not begun: the fault hits exactly there.
    let before = synced.load(Ordering::Relaxed);
    assert!(world.disk("disk").unsynced() > 0);
    world.power_loss("disk");
    world.restart("disk");
    assert_eq!(synced.load(Ordering::Relaxed), before);

    world.watch_points(BTreeSet::from(["disk.synced".to_owned(), "disk.write".to_owned()]));
    run_for(&mut world, 50);
    let points = world.take_points();
    let count = |name: &str| points.iter().filter(|point| point.point == name).count();
    assert!(count("disk.write") > 20 && count("disk.synced") > 1, "{points:?}");
    assert_eq!(count("disk.write") + count("disk.synced"), points.len());
}

#[test]
fn a_mirror_that_follows_the_tap_is_the_disk() {
    let (mut world, _) = world(3);
    run_for(&mut world, 50);
    assert!(world.disk("disk").drain().is_empty(), "nobody asked");
    world.disk("disk").tap();
    let mut mirror: BTreeMap<(Cf, Vec<u8>), Vec<u8>> = BTreeMap::new();
    let (mut resets, mut followed) = (0, 0);
    for round in 0..60 {
        run_for(&mut world, 7);
        match round % 12 {
            3 => world.power_loss("disk"),
            5 => drop(world.flip_bit("disk", Cf::Log, 3)),
            8 => world.crash("disk"),
            _ => world.restart("disk"),
        }
        if round == 32 {
            world.wipe("disk");
        }
        let now: BTreeMap<(Cf, Vec<u8>), Vec<u8>> = [Cf::Log, Cf::Meta, Cf::State]
            .into_iter()
            .flat_map(|cf| world.disk("disk").dump(cf).into_iter().map(move |(key, value)| ((cf, key), value)))
            .collect();
        for change in world.disk("disk").drain() {
            followed += 1;
            match change {
                Change::Put(cf, key, value) => drop(mirror.insert((cf, key), value)),
                Change::Delete(cf, key) => drop(mirror.remove(&(cf, key))),
                Change::Reset => {
                    resets += 1;
                    mirror.clone_from(&now);
                }
            }
        }
        assert_eq!(mirror, now, "round {round}");
    }
    assert_eq!(resets, 2, "at the begin and at the wipe");
    assert!(followed > 300, "{followed}");
}

#[test]
fn a_power_loss_that_takes_something_counts_as_a_change() {
    let mut changed = 0;
    for seed in 0..10 {
        let (mut world, _) = world(seed);
        run_for(&mut world, 103);
        let (before, written) = (world.disk("disk").dump(Cf::State), world.disk("disk").written());
        world.power_loss("disk");
        if world.disk("disk").dump(Cf::State) != before {
            changed += 1;
            assert!(world.disk("disk").written() > written);
        }
    }
    assert!(changed > 2, "{changed}");
}
