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
