//! The simulated disk behaves like RocksDB: it keeps the engine contract, and random batches leave both with the same
//! content.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cara_env::{Batch, Cf, Engine, Rng};
use cara_netsim::{SimRng, World};
use raft_store::rocks::RocksEngine;

/// Runs `work` with an engine of a simulated machine.
fn on_a_machine<F>(seed: u64, work: impl Fn(Arc<dyn Engine>) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let done = Arc::new(AtomicBool::new(false));
    let inside = done.clone();
    let mut world = World::new(seed);
    world.client("machine", move |boot| {
        let (done, work) = (inside.clone(), work(boot.engine));
        async move {
            work.await;
            done.store(true, Ordering::Relaxed);
            Ok(())
        }
    });
    world.run_until(Duration::from_secs(60), |_| done.load(Ordering::Relaxed)).unwrap();
    assert!(done.load(Ordering::Relaxed), "the work did not end");
}

#[test]
fn the_simulated_disk_keeps_the_engine_contract() {
    on_a_machine(1, raft_store::engine_contract::check);
}

fn random_batch(rng: &SimRng) -> Batch {
    let mut batch = Batch::new();
    let key = || vec![u8::try_from(rng.below(12)).unwrap(); usize::try_from(rng.between(1, 3)).unwrap()];
    for _ in 0..rng.between(0, 5) {
        let cf = *rng.pick(&Cf::ALL).unwrap();
        match rng.below(6) {
            0..4 => batch.put(cf, key(), rng.next_u64().to_be_bytes()),
            4 => batch.delete(cf, key()),
            _ => batch.delete_range(cf, key(), key()),
        }
    }
    batch
}

#[test]
fn the_simulated_disk_and_rocksdb_hold_the_same_after_any_batches() {
    for seed in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let rocks: Arc<dyn Engine> = Arc::new(RocksEngine::open(folder.path()).unwrap());
        on_a_machine(seed, move |simulated| {
            let rocks = rocks.clone();
            let rng = SimRng::new(seed, "batches");
            async move {
                for _ in 0..200 {
                    let batch = random_batch(&rng);
                    simulated.write(&batch).unwrap();
                    rocks.write(&batch).unwrap();
                    for cf in Cf::ALL {
                        let from = [u8::try_from(rng.below(12)).unwrap()];
                        let to = [u8::try_from(rng.below(12)).unwrap()];
                        let to = rng.chance(50).then_some(&to[..]);
                        let limit = usize::try_from(rng.below(6)).unwrap();
                        assert_eq!(
                            simulated.scan(cf, &from, to, limit).unwrap(),
                            rocks.scan(cf, &from, to, limit).unwrap()
                        );
                        assert_eq!(
                            simulated.scan(cf, &[], None, 100).unwrap(),
                            rocks.scan(cf, &[], None, 100).unwrap()
                        );
                        assert_eq!(simulated.last(cf).unwrap(), rocks.last(cf).unwrap());
                        assert_eq!(simulated.get(cf, &from).unwrap(), rocks.get(cf, &from).unwrap());
                    }
                }
            }
        });
    }
}
