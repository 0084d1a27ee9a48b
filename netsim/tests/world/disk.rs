//! What survives which fault: a crash keeps every write, a power loss every synced one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cara_env::{Batch, Cf};
use cara_netsim::{Boot, Latency, World};

/// Writes 1, 2, 3, ... and syncs each; says which are durable and which were only written.
#[derive(Default)]
struct Progress {
    written: AtomicU64,
    synced: AtomicU64,
    /// The highest number found on the disk at the last start.
    found: AtomicU64,
    failed: AtomicBool,
}

async fn count_up(boot: Boot, progress: Arc<Progress>) -> Result<(), String> {
    let last = boot.engine.last(Cf::Log).map_err(|e| e.to_string())?;
    let found = last.map_or(0, |(key, _)| u64::from_be_bytes(key.try_into().unwrap()));
    progress.found.store(found, Ordering::Relaxed);
    let mut number = found;
    loop {
        number += 1;
        let mut batch = Batch::new();
        batch.put(Cf::Log, number.to_be_bytes(), vec![0; 100]);
        if let Err(error) = boot.engine.write(&batch) {
            progress.failed.store(true, Ordering::Relaxed);
            return Err(error.to_string());
        }
        progress.written.store(number, Ordering::Relaxed);
        if number.is_multiple_of(3) {
            boot.engine.sync().await.map_err(|e| e.to_string())?;
            progress.synced.store(number, Ordering::Relaxed);
        }
        boot.env.clock.sleep(Duration::from_millis(2)).await;
    }
}

fn world(seed: u64, restart_after: Option<Duration>) -> (World, Arc<Progress>) {
    let progress = Arc::new(Progress::default());
    let mut world = World::new(seed);
    let inside = progress.clone();
    world.host("disk", restart_after, move |boot| count_up(boot, inside.clone()));
    (world, progress)
}

fn run_for(world: &mut World, ms: u64) {
    let until = world.now() + Duration::from_millis(ms);
    world.run_until(until, |_| false).unwrap();
}

#[test]
fn a_power_loss_keeps_what_was_synced_and_a_prefix_of_the_rest() {
    let mut lost_something = 0;
    let mut kept_unsynced = 0;
    for seed in 0..40 {
        let (mut world, progress) = world(seed, None);
        run_for(&mut world, 150 + seed);
        world.power_loss("disk");
        let (written, synced) = (progress.written.load(Ordering::Relaxed), progress.synced.load(Ordering::Relaxed));
        world.restart("disk");
        run_for(&mut world, 2);
        let found = progress.found.load(Ordering::Relaxed);
        assert!(found >= synced, "seed {seed}: {synced} was synced, {found} found");
        assert!(found <= written, "seed {seed}: {found} was never written");
        assert_eq!(world.disk("disk").dump(Cf::Log).len() as u64, progress.written.load(Ordering::Relaxed), "a hole");
        lost_something += u64::from(found < written);
        kept_unsynced += u64::from(found > synced);
    }
    assert!(lost_something > 3, "the fault must bite: {lost_something}");
    assert!(kept_unsynced > 3, "a torn tail must sometimes keep a part: {kept_unsynced}");
}

#[test]
fn a_crash_of_the_process_loses_no_write() {
    for seed in 0..10 {
        let (mut world, progress) = world(seed, None);
        run_for(&mut world, 150 + seed);
        world.crash("disk");
        let written = progress.written.load(Ordering::Relaxed);
        world.restart("disk");
        run_for(&mut world, 2);
        assert_eq!(progress.found.load(Ordering::Relaxed), written);
    }
}

#[test]
fn a_stalled_disk_ends_no_sync_until_it_goes_on() {
    let (mut world, progress) = world(5, None);
    world.disk_latency("disk", Latency { min_us: 100, max_us: 200 });
    run_for(&mut world, 100);
    world.disk_stall("disk", true);
    run_for(&mut world, 50);
    let synced = progress.synced.load(Ordering::Relaxed);
    run_for(&mut world, 500);
    assert_eq!(progress.synced.load(Ordering::Relaxed), synced);
    world.disk_stall("disk", false);
    run_for(&mut world, 100);
    assert!(progress.synced.load(Ordering::Relaxed) > synced);
}

#[test]
fn a_full_disk_refuses_writes_and_the_machine_tries_again_until_there_is_room() {
    let (mut world, progress) = world(6, Some(Duration::from_millis(100)));
    world.disk_room("disk", Some(1_000));
    run_for(&mut world, 500);
    assert!(progress.failed.load(Ordering::Relaxed));
    let exits = world.take_exits();
    assert!(exits.len() > 2, "a service manager starts it again each time: {exits:?}");
    assert!(exits[0].1.as_ref().unwrap_err().contains("no space left"));
    let written = progress.written.load(Ordering::Relaxed);
    world.disk_room("disk", None);
    run_for(&mut world, 500);
    assert!(progress.written.load(Ordering::Relaxed) > written + 50);
}

#[test]
fn a_failed_sync_is_reported_and_the_next_process_works_again() {
    let (mut world, _progress) = world(7, Some(Duration::from_millis(10)));
    run_for(&mut world, 50);
    world.disk_errors("disk", false, true);
    run_for(&mut world, 100);
    let exits = world.take_exits();
    assert_eq!(exits.len(), 1, "{exits:?}");
    assert!(exits[0].1.as_ref().unwrap_err().contains("input/output error on sync"));
    assert!(world.is_running("disk"));
}

#[test]
fn syncs_that_wait_together_end_together() {
    let ended = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut world = World::new(8);
    let inside = ended.clone();
    world.host("disk", None, move |boot| {
        let ended = inside.clone();
        async move {
            for i in 0..10_u64 {
                let (engine, clock, ended) = (boot.engine.clone(), boot.env.clock.clone(), ended.clone());
                drop(cara_env::spawn(async move {
                    clock.sleep(Duration::from_millis(i)).await;
                    engine.sync().await.unwrap();
                    ended.lock().unwrap().push(clock.monotonic().as_millis() as u64);
                }));
            }
            std::future::pending().await
        }
    });
    world.disk_latency("disk", Latency { min_us: 10_000, max_us: 10_000 });
    run_for(&mut world, 100);
    let ended = ended.lock().unwrap().clone();
    let (first, rest) = ended.split_first().unwrap();
    assert_eq!(rest.len(), 9);
    assert!(
        rest.iter().all(|at| *at == first + 10),
        "one sync of the device for the nine who came meanwhile: {ended:?}"
    );
}
