//! Work that blocks on a slow kernel takes its time, goes on when nobody waits for it, and dies with its process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cara_netsim::{Boot, Spread, World};

/// What the work of a host has done.
#[derive(Default)]
struct Done {
    pieces: AtomicU64,
    /// Milliseconds that the last piece took for the one who waited.
    last_ms: AtomicU64,
}

/// One piece of work after the other.
async fn work(boot: Boot, done: Arc<Done>) -> Result<(), String> {
    loop {
        let from = boot.env.clock.monotonic();
        piece(done.clone()).await;
        let took = boot.env.clock.monotonic() - from;
        done.last_ms.store(took.as_millis() as u64, Ordering::Relaxed);
        boot.env.clock.sleep(Duration::from_millis(10)).await;
    }
}

/// Begins a piece, and gives up waiting for it after 50 ms.
async fn begin_and_leave(boot: Boot, done: Arc<Done>) -> Result<(), String> {
    boot.env.clock.sleep(Duration::from_millis(20)).await;
    let waiting = cara_env::timeout(&*boot.env.clock, Duration::from_millis(50), piece(done));
    assert!(waiting.await.is_err(), "the kernel is slower than that");
    std::future::pending().await
}

async fn piece(done: Arc<Done>) {
    cara_env::blocking(move || done.pieces.fetch_add(1, Ordering::Relaxed)).await;
}

fn run_for(world: &mut World, ms: u64) {
    let until = world.now() + Duration::from_millis(ms);
    world.run_until(until, |_| false).unwrap();
}

#[test]
fn a_slow_kernel_makes_each_piece_of_work_slow_until_it_is_lifted() {
    let (mut world, done) = (World::new(1), Arc::new(Done::default()));
    let inside = done.clone();
    world.host("a", None, move |boot| work(boot, inside.clone()));
    run_for(&mut world, 100);
    assert!(done.pieces.load(Ordering::Relaxed) >= 8, "nothing waits on a healthy machine");
    assert_eq!(done.last_ms.load(Ordering::Relaxed), 0);

    world.slow_kernel("a", Some(Spread::uniform_ms(200, 300)));
    let before = done.pieces.load(Ordering::Relaxed);
    run_for(&mut world, 2_000);
    let slow = done.pieces.load(Ordering::Relaxed) - before;
    assert!((6..=10).contains(&slow), "{slow} pieces in two seconds");
    assert!((200..=301).contains(&done.last_ms.load(Ordering::Relaxed)));
    world.crash("a");
    world.restart("a");
    run_for(&mut world, 1_000);
    assert!(done.last_ms.load(Ordering::Relaxed) >= 200, "another process on the same machine waits as long");

    world.slow_kernel("a", None);
    run_for(&mut world, 1_000);
    assert_eq!(done.last_ms.load(Ordering::Relaxed), 0);
}

#[test]
fn work_goes_on_when_nobody_waits_for_it_and_dies_with_its_process() {
    for (crash, pieces) in [(false, 1), (true, 0)] {
        let (mut world, done) = (World::new(1), Arc::new(Done::default()));
        let inside = done.clone();
        world.host("a", None, move |boot| begin_and_leave(boot, inside.clone()));
        world.slow_kernel("a", Some(Spread::uniform_ms(500, 500)));
        run_for(&mut world, 200);
        assert_eq!(done.pieces.load(Ordering::Relaxed), 0);
        if crash {
            world.crash("a");
        }
        run_for(&mut world, 1_000);
        assert_eq!(done.pieces.load(Ordering::Relaxed), pieces, "crash: {crash}");
    }
}
