//! One seed is one history, to the byte, in any process.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use cara_netsim::{SimRng, Spread, World, trace};

use crate::ping::{self, Answers};

/// Set by the parent for its children: the seed to run.
const SEED: &str = "CARA_NETSIM_TEST_SEED";

/// Three servers, three clients, faults from the seed, and everything in it that tends to differ from run to run.
fn run(seed: u64) -> String {
    let mut world = World::new(seed);
    for i in 0..3 {
        world.host(&format!("server{i}"), Some(Duration::from_secs(1)), ping::serve);
        world.client(&format!("client{i}"), move |boot| {
            let noise = noise(boot.env.clone());
            drop(noise);
            ping::ask(boot, format!("server{i}"), Arc::<Answers>::default())
        });
    }
    world.client("noisy", |boot| noise(boot.env));
    let rng = SimRng::new(seed, "nemesis");
    for _ in 0..12 {
        let host = format!("server{}", rng.between(0, 2));
        let until = world.now() + Duration::from_millis(rng.between(200, 900));
        let (from, to) = (host.clone(), format!("client{}", rng.between(0, 2)));
        let slow = Spread::Exponential {
            min: Duration::ZERO,
            mean: Duration::from_millis(rng.between(1, 80)),
            max: Duration::from_millis(300),
        };
        match rng.between(0, 10) {
            0 => world.freeze(&host),
            1 => world.crash(&host),
            2 => world.power_loss(&host),
            3 => world.isolate(&host, true),
            4 => world.slow_link(&from, &to, slow, true),
            5 => world.limit_link(&from, &to, 100, true),
            6 => world.clog(&to, &from, true),
            7 => drop(world.reset_connections(&from, &to)),
            8 => world.drift(&host, 500),
            9 => world.stop(&host, Duration::from_millis(100)),
            _ => world.slow_cpu(&host, Some(1)),
        }
        world.run_until(until, |_| false).unwrap();
        world.heal_network();
        world.thaw(&host);
        world.slow_cpu(&host, None);
        world.restart(&host);
    }
    let digest = trace::digest();
    assert!(cara_netsim::libc::calls() > 0, "the override of libc is not linked in");
    assert!(digest.events > 500, "the world did nothing: {digest:?}");
    format!("hash {:016x} events {} bytes {}", digest.hash, digest.events, digest.wire_bytes)
}

/// What libraries do behind our backs: hash maps with random order, the kernel's clock.
#[allow(clippy::disallowed_types, clippy::disallowed_methods)] // This is what the override of libc is for.
async fn noise(env: cara_env::Env) -> Result<(), String> {
    loop {
        let map: std::collections::HashMap<u64, u64> = (0..50).map(|i| (i, i)).collect();
        let order: Vec<u64> = map.into_keys().collect();
        trace::event("noisy", "map order", &order);
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        trace::event("noisy", "clock", &[wall.as_nanos() as u64]);
        tokio::select! { // Unbiased on purpose: tokio's own random choices are seeded too.
            () = tokio::task::yield_now() => trace::event("noisy", "first", &[]),
            () = std::future::ready(()) => trace::event("noisy", "second", &[]),
        }
        env.clock.sleep(Duration::from_millis(env.rng.below(100))).await;
    }
}

/// The child's part; without a parent it runs one seed for itself.
#[test]
fn a_world_under_faults_runs() {
    let seed = std::env::var(SEED).map_or(1, |seed| seed.parse().unwrap());
    println!("{}", run(seed));
}

#[test]
fn the_same_seed_in_two_processes_is_the_same_history() {
    let child = |seed: u64| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "determinism::a_world_under_faults_runs", "--nocapture"])
            .env(SEED, seed.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.contains("hash "));
        line.unwrap_or_else(|| panic!("no hash in {text}{}", String::from_utf8_lossy(&output.stderr))).to_owned()
    };
    let first: Vec<String> = (1..=4).map(child).collect();
    let again: Vec<String> = (1..=4).map(child).collect();
    assert_eq!(first, again);
    let different: std::collections::BTreeSet<&String> = first.iter().collect();
    assert_eq!(different.len(), 4, "four seeds must be four histories");
}
