//! While a host is frozen, not one of its tasks is polled; after the thaw it goes on, and its clock has gone on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_netsim::World;
use tokio::runtime::Handle;

use crate::ping::{self, Answers};

#[derive(Default)]
struct Seen {
    /// Turns of ten busy tasks, counted inside them.
    turns: AtomicU64,
    last_ms: AtomicU64,
    runtime: Mutex<Option<Handle>>,
}

async fn busy(boot: cara_netsim::Boot, seen: Arc<Seen>) -> Result<(), String> {
    *seen.runtime.lock().unwrap() = Some(Handle::current());
    for i in 1..=10 {
        let (env, seen) = (boot.env.clone(), seen.clone());
        drop(cara_env::spawn(async move {
            loop {
                env.clock.sleep(Duration::from_millis(i)).await;
                // A task of a task: it must belong to the same host.
                let (seen, clock) = (seen.clone(), env.clock.clone());
                cara_env::spawn(async move {
                    seen.turns.fetch_add(1, Ordering::Relaxed);
                    seen.last_ms.store(clock.monotonic().as_millis() as u64, Ordering::Relaxed);
                })
                .await;
            }
        }));
    }
    std::future::pending().await
}

fn run_for(world: &mut World, ms: u64) {
    let until = world.now() + Duration::from_millis(ms);
    world.run_until(until, |_| false).unwrap();
}

#[test]
fn a_frozen_host_polls_nothing_and_goes_on_after_the_thaw() {
    let seen = Arc::new(Seen::default());
    let mut world = World::new(11);
    let inside = seen.clone();
    world.host("busy", None, move |boot| busy(boot, inside.clone()));
    run_for(&mut world, 100);
    let handle = seen.runtime.lock().unwrap().clone().unwrap();
    let alive = |world: &World| {
        // The root runs on turmoil's LocalSet, which tokio's count of tasks does not include.
        assert_eq!(handle.metrics().num_alive_tasks() as i64, world.gate("busy").counters().tasks - 1);
    };
    alive(&world);

    world.freeze("busy");
    let (turns, before) = (seen.turns.load(Ordering::Relaxed), world.gate("busy").counters());
    assert!(turns > 50, "the host was busy before: {turns}");
    let tokio_before = handle.metrics().worker_poll_count(0);
    run_for(&mut world, 2_000);
    let after = world.gate("busy").counters();
    assert_eq!(seen.turns.load(Ordering::Relaxed), turns, "a task ran on a frozen host");
    assert_eq!(after.polls, before.polls, "the gate admitted a poll on a frozen host");
    assert!(after.refused > before.refused, "timers must go on expiring into the gates");
    // Every poll that tokio made in this time was one that a gate refused: no task lives outside the gates.
    let tokio_polls = handle.metrics().worker_poll_count(0) - tokio_before;
    assert_eq!(tokio_polls, after.refused - before.refused);
    alive(&world);

    world.thaw("busy");
    run_for(&mut world, 100);
    assert!(seen.turns.load(Ordering::Relaxed) > turns + 50, "the host goes on after the thaw");
    assert!(seen.last_ms.load(Ordering::Relaxed) >= 2_100, "its clock went on while it was frozen");
}

#[test]
fn connections_of_a_frozen_host_stay_open() {
    let answers = Arc::new(Answers::default());
    let mut world = World::new(12);
    world.host("server", None, ping::serve);
    let inside = answers.clone();
    world.client("client", move |boot| ping::ask(boot, "server".to_owned(), inside.clone()));
    run_for(&mut world, 500);
    let before = answers.count.load(Ordering::Relaxed);
    assert!(before > 5);
    world.freeze("server");
    run_for(&mut world, 300); // Shorter than the client's patience: it waits on its open connection.
    let frozen = answers.count.load(Ordering::Relaxed);
    assert!(frozen <= before + 1, "one answer may have been on its way");
    world.thaw("server");
    run_for(&mut world, 300);
    assert!(answers.count.load(Ordering::Relaxed) > frozen + 3);
}

#[test]
fn a_crash_ends_a_freeze_and_every_task() {
    let seen = Arc::new(Seen::default());
    let mut world = World::new(13);
    let inside = seen.clone();
    world.host("busy", None, move |boot| busy(boot, inside.clone()));
    run_for(&mut world, 50);
    world.freeze("busy");
    run_for(&mut world, 50);
    world.crash("busy");
    assert_eq!(world.gate("busy").counters().tasks, 0);
    assert!(!world.gate("busy").is_frozen());
    world.restart("busy");
    let turns = seen.turns.load(Ordering::Relaxed);
    run_for(&mut world, 100);
    assert!(seen.turns.load(Ordering::Relaxed) > turns);
}
