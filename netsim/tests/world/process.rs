//! Graceful stops, machines that come later, and data that goes back in time or to another machine.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_env::{Batch, Cf};
use cara_netsim::{Boot, World};

use crate::ping::{self, Answers};

fn run_for(world: &mut World, ms: u64) {
    let until = world.now() + Duration::from_millis(ms);
    world.run_until(until, |_| false).unwrap();
}

/// Ends `takes` after it is told to.
async fn polite(boot: Boot, takes: Duration) -> Result<(), String> {
    let mut shutdown = boot.shutdown;
    shutdown.wait_for(|stop| *stop).await.map_err(|e| e.to_string())?;
    boot.env.clock.sleep(takes).await;
    Ok(())
}

fn stopped_after(takes_ms: u64, grace_ms: u64) -> (World, u64) {
    let mut world = World::new(1);
    let takes = Duration::from_millis(takes_ms);
    world.host("a", Some(Duration::from_millis(50)), move |boot| polite(boot, takes));
    run_for(&mut world, 100);
    assert!(world.is_running("a") && !world.is_stopping("a"));
    world.stop("a", Duration::from_millis(grace_ms));
    assert!(world.is_running("a") && world.is_stopping("a"));
    let from = world.now();
    assert!(world.run_until(from + Duration::from_secs(5), |world| !world.is_running("a")).unwrap());
    let took = (world.now() - from).as_millis() as u64;
    (world, took)
}

#[test]
fn a_process_that_is_stopped_ends_by_itself_and_stays_down_until_it_is_started() {
    let (mut world, took) = stopped_after(200, 1_000);
    assert!((200..=205).contains(&took), "{took}");
    assert_eq!(world.take_exits(), [("a".to_owned(), Ok(()))]);
    run_for(&mut world, 1_000);
    assert!(!world.is_running("a") && !world.is_stopping("a"), "nobody starts what was stopped");
    world.restart("a");
    run_for(&mut world, 1_000);
    assert!(world.is_running("a"), "the next process was not told to stop");
}

#[test]
fn a_process_that_does_not_end_in_time_is_killed() {
    let (mut world, took) = stopped_after(60_000, 1_000);
    assert!((1_000..=1_005).contains(&took), "{took}");
    assert!(world.take_exits().is_empty(), "it did not end by itself");
    run_for(&mut world, 1_000);
    assert!(!world.is_running("a"));
}

#[test]
fn a_machine_that_is_started_while_it_stops_ends_first() {
    let mut world = World::new(1);
    world.host("a", None, |boot| polite(boot, Duration::from_millis(200)));
    run_for(&mut world, 100);
    world.stop("a", Duration::from_secs(1));
    world.restart("a");
    run_for(&mut world, 150);
    assert!(world.is_stopping("a"), "the old process has its time");
    run_for(&mut world, 100);
    assert_eq!(world.take_exits(), [("a".to_owned(), Ok(()))]);
    assert!(world.is_running("a") && !world.is_stopping("a"), "the new process runs");
}

#[test]
fn a_machine_that_comes_later_has_the_worlds_time_and_reaches_the_others() {
    let mut world = World::new(2);
    world.host("server", None, ping::serve);
    world.host("dark", None, ping::serve);
    run_for(&mut world, 1_500);
    world.power_loss("dark");
    run_for(&mut world, 500);
    let booted_at = Arc::new(Mutex::new(Duration::ZERO));
    let (reached, silent) = (Arc::new(Answers::default()), Arc::new(Answers::default()));
    for (name, to, answers) in [("late1", "server", &reached), ("late2", "dark", &silent)] {
        let (answers, at) = (answers.clone(), booted_at.clone());
        world.host(name, None, move |boot| {
            *at.lock().unwrap() = boot.env.clock.monotonic();
            ping::ask(boot, to.to_owned(), answers.clone())
        });
    }
    run_for(&mut world, 1_000);
    assert_eq!(*booted_at.lock().unwrap(), Duration::from_secs(2));
    assert!(reached.count.load(Ordering::Relaxed) > 5);
    assert!((2_000..=3_000).contains(&reached.last_ms.load(Ordering::Relaxed)), "its clock is the world's");
    assert_eq!(silent.count.load(Ordering::Relaxed), 0, "a dark machine is silent for a new one too");
    world.restart("dark");
    run_for(&mut world, 8_000);
    assert!(silent.count.load(Ordering::Relaxed) > 5);
    assert_eq!(world.names(), ["dark", "late1", "late2", "server"]);
}

/// Writes its incarnation everywhere, and says what it found.
async fn remember(boot: Boot, found: Arc<Mutex<Vec<String>>>) -> Result<(), String> {
    let (file, text) =
        (Path::new("/id"), |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).unwrap());
    let (before, disk) = (boot.env.files.read(file).ok(), boot.engine.get(Cf::Meta, b"id").unwrap());
    found.lock().unwrap().push(format!("{}/{}", text(before), text(disk)));
    let own = format!("{}{}", boot.name, boot.incarnation);
    boot.env.files.write(file, own.as_bytes(), 0o600).unwrap();
    let mut batch = Batch::new();
    batch.put(Cf::Meta, b"id".to_vec(), own.into_bytes());
    boot.engine.write(&batch).unwrap();
    std::future::pending().await
}

#[test]
fn data_can_go_back_in_time_and_to_another_machine() {
    let mut world = World::new(3);
    let (a, b) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    for (name, found) in [("a", &a), ("b", &b)] {
        let found = found.clone();
        world.host(name, None, move |boot| remember(boot, found.clone()));
    }
    run_for(&mut world, 10);
    let snapshot = world.snapshot("a");
    for _ in 0..2 {
        world.crash("a");
        world.restart("a");
        run_for(&mut world, 10);
    }
    world.crash("a");
    world.crash("b");
    let written = world.disk("a").written();
    world.restore("a", &snapshot);
    world.restore("b", &snapshot);
    assert!(world.disk("a").written() > written, "a checker must see that something has changed");
    world.restart("a");
    world.restart("b");
    run_for(&mut world, 10);
    assert_eq!(*a.lock().unwrap(), ["/", "a1/a1", "a2/a2", "a1/a1"]);
    assert_eq!(*b.lock().unwrap(), ["/", "a1/a1"], "a clone of a");
    world.power_loss("b");
    world.restore("b", &snapshot);
    assert_eq!(world.snapshot("b"), snapshot);
}

#[test]
#[should_panic(expected = "a runs; only a stopped machine gets other data")]
fn a_running_machine_keeps_its_data() {
    let mut world = World::new(4);
    world.host("a", None, |_| std::future::pending());
    let snapshot = world.snapshot("a");
    world.restore("a", &snapshot);
}
