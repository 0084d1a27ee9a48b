//! Partitions block, in the direction they say, and lift; a dead process is refused, a dark machine is silent.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_netsim::World;

use crate::ping::{self, Answers};

fn run_for(world: &mut World, ms: u64) {
    let until = world.now() + Duration::from_millis(ms);
    world.run_until(until, |_| false).unwrap();
}

fn pair(seed: u64) -> (World, Arc<Answers>) {
    let answers = Arc::new(Answers::default());
    let mut world = World::new(seed);
    world.host("server", None, ping::serve);
    let inside = answers.clone();
    world.client("client", move |boot| ping::ask(boot, "server".to_owned(), inside.clone()));
    run_for(&mut world, 300);
    assert!(answers.count.load(Ordering::Relaxed) > 3);
    (world, answers)
}

/// Applies a fault, sees that no answer comes while it lasts, lifts it, sees that answers come again.
fn check(seed: u64, fault: impl Fn(&mut World, bool)) {
    let (mut world, answers) = pair(seed);
    fault(&mut world, true);
    run_for(&mut world, 50); // What was on its way may still arrive.
    let blocked = answers.count.load(Ordering::Relaxed);
    run_for(&mut world, 3_000);
    assert_eq!(answers.count.load(Ordering::Relaxed), blocked, "an answer came through");
    fault(&mut world, false);
    run_for(&mut world, 8_000);
    assert!(answers.count.load(Ordering::Relaxed) > blocked + 10, "the link works again");
}

#[test]
fn a_partition_blocks_until_it_is_repaired() {
    check(1, |world, on| if on { world.partition("client", "server") } else { world.repair("client", "server") });
}

#[test]
fn a_one_way_cut_blocks_answers_as_well() {
    check(2, |world, on| world.cut("client", "server", on));
    check(3, |world, on| world.cut("server", "client", on));
}

#[test]
fn an_isolated_host_reaches_nobody() {
    check(4, |world, on| world.isolate("server", on));
}

#[test]
fn held_messages_arrive_after_the_release_on_the_same_connection() {
    let (mut world, answers) = pair(5);
    world.hold("client", "server", true);
    run_for(&mut world, 300);
    let held = answers.count.load(Ordering::Relaxed);
    world.hold("client", "server", false);
    run_for(&mut world, 30);
    assert!(answers.count.load(Ordering::Relaxed) > held);
}

/// What a client sees when it connects to a host in this state, and how long that took.
fn connect(fault: impl FnOnce(&mut World)) -> (String, Duration) {
    let seen = Arc::new(Mutex::new(None));
    let mut world = World::new(9);
    world.host("server", None, ping::serve);
    let inside = seen.clone();
    world.client("client", move |boot| {
        let (env, seen) = (boot.env, inside.clone());
        async move {
            env.clock.sleep(Duration::from_millis(100)).await;
            let from = env.clock.monotonic();
            let connecting = env.net.connect("server:7000");
            let result = match cara_env::timeout(&*env.clock, Duration::from_secs(5), connecting).await {
                Ok(Ok(_)) => "connected".to_owned(),
                Ok(Err(error)) => error.kind().to_string(),
                Err(_) => "silence".to_owned(),
            };
            *seen.lock().unwrap() = Some((result, env.clock.monotonic() - from));
            Ok(())
        }
    });
    run_for(&mut world, 50);
    fault(&mut world);
    run_for(&mut world, 10_000);
    let seen = seen.lock().unwrap().take();
    seen.unwrap()
}

#[test]
fn a_dead_process_is_refused_at_once_and_a_dark_machine_is_silent() {
    assert_eq!(connect(|_| {}).0, "connected");
    let (refused, took) = connect(|world| world.crash("server"));
    assert_eq!(refused, "connection refused");
    assert!(took < Duration::from_millis(100));
    assert_eq!(connect(|world| world.power_loss("server")).0, "silence");
    assert_eq!(connect(|world| world.partition("client", "server")).0, "silence");
    assert_eq!(connect(|world| world.freeze("server")).0, "silence");
}

#[test]
fn a_host_listens_only_on_its_own_addresses_and_once_per_port() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut world = World::new(10);
    let inside = seen.clone();
    world.client("a", move |boot| {
        let (env, seen) = (boot.env, inside.clone());
        async move {
            let first = env.net.listen("a:0").await.map_err(|e| e.to_string())?;
            seen.lock().unwrap().push(first.local_address());
            let second = env.net.listen(&first.local_address()).await.err().unwrap();
            seen.lock().unwrap().push(second.kind().to_string());
            let foreign = env.net.listen("b:80").await.err().unwrap();
            seen.lock().unwrap().push(foreign.kind().to_string());
            Ok(())
        }
    });
    run_for(&mut world, 20);
    let seen = seen.lock().unwrap().clone();
    assert!(seen[0].starts_with("a:") && !seen[0].ends_with(":0"), "{seen:?}");
    assert_eq!(seen[1..], ["address in use", "address not available"]);
}
