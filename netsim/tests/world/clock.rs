//! Wall and monotonic time are two clocks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_netsim::{EPOCH_MS, World};

#[test]
fn a_step_of_the_wall_clock_leaves_the_monotonic_clock_alone() {
    let readings = Arc::new(Mutex::new(Vec::new()));
    let mut world = World::new(1);
    let inside = readings.clone();
    world.host("a", None, move |boot| {
        let (env, readings) = (boot.env, inside.clone());
        async move {
            loop {
                readings.lock().unwrap().push((env.clock.monotonic(), env.clock.wall_ms()));
                env.clock.sleep(Duration::from_millis(100)).await;
            }
        }
    });
    let mut until = Duration::ZERO;
    for step in [3_600_000, -7_200_000] {
        until += Duration::from_secs(1);
        world.run_until(until, |_| false).unwrap();
        world.step_wall_clock("a", step);
    }
    world.run_until(until + Duration::from_secs(1), |_| false).unwrap();
    let readings = readings.lock().unwrap();
    assert!(readings.windows(2).all(|two| two[0].0 < two[1].0), "monotonic time only rises");
    let offset = |i: usize| readings[i].1.wrapping_sub(EPOCH_MS + readings[i].0.as_millis() as u64).cast_signed();
    assert_eq!(offset(2), 0);
    assert_eq!(offset(15), 3_600_000);
    assert_eq!(offset(readings.len() - 1), -3_600_000);
}

#[test]
fn the_clock_goes_on_while_the_machine_is_down() {
    let booted_at = Arc::new(Mutex::new(Vec::new()));
    let mut world = World::new(2);
    let inside = booted_at.clone();
    world.host("a", None, move |boot| {
        inside.lock().unwrap().push(boot.env.clock.monotonic());
        std::future::pending()
    });
    world.run_until(Duration::from_secs(1), |_| false).unwrap();
    world.crash("a");
    world.run_until(Duration::from_secs(3), |_| false).unwrap();
    world.restart("a");
    world.run_until(Duration::from_secs(4), |_| false).unwrap();
    let booted_at = booted_at.lock().unwrap();
    assert_eq!(booted_at.len(), 2);
    assert_eq!(booted_at[1], Duration::from_secs(3));
}

/// A host's readings of its two clocks every 100 ms of its own time, with the world's time of each.
type Readings = Arc<Mutex<Vec<(Duration, u64)>>>;

fn reader(world: &mut World, name: &str) -> Readings {
    let readings = Readings::default();
    let inside = readings.clone();
    world.host(name, None, move |boot| {
        let (env, readings) = (boot.env, inside.clone());
        async move {
            loop {
                readings.lock().unwrap().push((env.clock.monotonic(), env.clock.wall_ms()));
                env.clock.sleep(Duration::from_millis(100)).await;
            }
        }
    });
    readings
}

#[test]
fn a_drifting_clock_runs_at_its_own_rate_and_so_do_its_sleeps() {
    let mut world = World::new(3);
    let readings: Vec<Readings> = ["exact", "fast", "slow"].iter().map(|name| reader(&mut world, name)).collect();
    // A tenth, far beyond any real clock, so that it shows in a short test.
    world.drift("fast", 100_000);
    world.drift("slow", -100_000);
    world.run_until(Duration::from_secs(10), |_| false).unwrap();
    let counts: Vec<usize> = readings.iter().map(|readings| readings.lock().unwrap().len()).collect();
    assert!((98..=101).contains(&counts[0]), "{counts:?}");
    assert!((107..=111).contains(&counts[1]), "a fast host does more in the same time: {counts:?}");
    assert!((88..=91).contains(&counts[2]), "{counts:?}");
    for (readings, ends) in readings.iter().zip([10_000, 11_000, 9_000]) {
        let readings = readings.lock().unwrap();
        let (monotonic, wall) = *readings.last().unwrap();
        assert!((ends - 130..=ends).contains(&(monotonic.as_millis() as u64)), "{ends}: {monotonic:?}");
        assert_eq!(wall, EPOCH_MS + monotonic.as_millis() as u64, "the wall clock has the same crystal");
    }
    assert_eq!(world.clock("fast").monotonic(), Duration::from_secs(11), "what outlives processes has it as well");
}

#[test]
fn a_clock_whose_drift_changes_never_goes_back_or_jumps() {
    let mut world = World::new(4);
    let readings = reader(&mut world, "a");
    for (second, ppm) in [(1, 500), (2, -500), (3, 0), (4, -100_000), (5, 100_000)] {
        world.drift("a", ppm);
        world.run_until(Duration::from_secs(second), |_| false).unwrap();
    }
    world.crash("a");
    world.restart("a");
    world.run_until(Duration::from_secs(6), |_| false).unwrap();
    let readings = readings.lock().unwrap();
    for two in readings.windows(2) {
        let step = (two[1].0 - two[0].0).as_millis();
        assert!((1..=112).contains(&step), "{two:?}");
    }
}

#[test]
fn a_machine_may_be_born_with_a_wrong_wall_clock() {
    let mut world = World::new(5);
    let readings = reader(&mut world, "a");
    world.step_wall_clock("a", -86_400_000);
    world.run_until(Duration::from_secs(1), |_| false).unwrap();
    assert_eq!(readings.lock().unwrap()[0], (Duration::ZERO, EPOCH_MS - 86_400_000));
}
