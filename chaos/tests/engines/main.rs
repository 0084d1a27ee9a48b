//! The simulated disk and RocksDB, driven by the same random writes, reads, syncs, crashes and losses of power, must
//! agree on every answer. The log of RocksDB is cut behind the last write that the simulated disk has kept, and in the
//! middle of the next one.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_chaos::rocks_lane::RocksLane;
use cara_env::{Batch, Cf, Engine, Op};
use cara_netsim::{SimRng, World};

cara_netsim::override_libc!(); // RocksDB's threads must get along with it.

/// Operations a seed.
const STEPS: usize = 1_500;
const HOST: &str = "s1";

type Model = BTreeMap<(Cf, Vec<u8>), Vec<u8>>;

/// What the driver and the process on the simulated machine share.
#[derive(Default)]
struct Shared {
    engine: Mutex<Option<Arc<dyn Engine>>>,
    sync: Mutex<bool>,
}

fn key(rng: &SimRng) -> Vec<u8> {
    // Few and short, so that operations meet.
    (0..rng.between(0, 2)).map(|_| rng.between(0, 3) as u8).collect()
}

fn op(rng: &SimRng) -> Op {
    let cf = *rng.pick(&Cf::ALL).unwrap();
    match rng.between(0, 5) {
        0 => Op::Delete(cf, key(rng)),
        1 => Op::DeleteRange(cf, key(rng), key(rng)),
        _ => Op::Put(cf, key(rng), vec![rng.between(0, 255) as u8; rng.between(0, 400) as usize]),
    }
}

fn apply(model: &mut Model, ops: &[Op]) {
    for op in ops {
        match op.clone() {
            Op::Put(cf, key, value) => drop(model.insert((cf, key), value)),
            Op::Delete(cf, key) => drop(model.remove(&(cf, key))),
            Op::DeleteRange(cf, from, to) => model.retain(|(of, key), _| *of != cf || *key < from || *key >= to),
        }
    }
}

struct Bench {
    world: World,
    lane: RocksLane,
    shared: Arc<Shared>,
    /// The content after each write that a loss of power may undo, beginning with what it can't.
    models: Vec<Model>,
    what: String,
}

impl Bench {
    fn engine(&self) -> Arc<dyn Engine> {
        self.shared.engine.lock().unwrap().clone().unwrap()
    }

    fn boot(&mut self) {
        let until = self.world.now() + Duration::from_secs(1);
        let shared = self.shared.clone();
        let is_open = self.world.run_until(until, |_| shared.engine.lock().unwrap().is_some()).unwrap();
        assert!(is_open, "{}: {:?}", self.what, self.world.take_exits());
    }

    fn sync(&mut self) {
        *self.shared.sync.lock().unwrap() = true;
        let (until, shared) = (self.world.now() + Duration::from_secs(1), self.shared.clone());
        assert!(self.world.run_until(until, |_| !*shared.sync.lock().unwrap()).unwrap(), "{}: sync", self.what);
        self.models.drain(..self.models.len() - 1);
    }

    fn down(&mut self, power: bool) {
        *self.shared.engine.lock().unwrap() = None;
        let before = self.world.disk(HOST).fate().lost;
        if power {
            self.world.power_loss(HOST)
        } else {
            self.world.crash(HOST)
        }
        let lost = usize::try_from(self.world.disk(HOST).fate().lost - before).unwrap();
        assert!(lost < self.models.len(), "{}: {lost} writes are lost, some of them synced", self.what);
        self.models.truncate(self.models.len() - lost);
        self.world.restart(HOST);
        self.boot();
        // What power leaves is durable; and what RocksDB recovers after a crash it makes durable as well.
        self.models.drain(..self.models.len() - 1);
        self.read_all();
    }

    fn read_all(&self) {
        for cf in Cf::ALL {
            let real = self.lane.dump(HOST, cf);
            assert_eq!(real, self.world.disk(HOST).dump(cf), "{}: {} differs", self.what, cf.name());
            let model = self.models.last().unwrap().iter().filter(|((of, _), _)| *of == cf);
            let model: Vec<_> = model.map(|((_, key), value)| (key.clone(), value.clone())).collect();
            assert_eq!(real, model, "{}: {} is no prefix of what was written", self.what, cf.name());
        }
        assert_eq!(self.lane.disagreements(), Vec::<String>::new(), "{}", self.what);
    }

    fn step(&mut self, rng: &SimRng) {
        let cf = *rng.pick(&Cf::ALL).unwrap();
        match rng.between(0, 99) {
            0..=44 => {
                let ops: Vec<Op> = (0..rng.between(0, 5)).map(|_| op(rng)).collect();
                self.engine().write(&Batch { ops: ops.clone() }).unwrap();
                let mut model = self.models.last().unwrap().clone();
                apply(&mut model, &ops);
                self.models.push(model);
            }
            45..=59 => drop(self.engine().get(cf, &key(rng)).unwrap()),
            60..=74 => {
                let (from, to, limit) = (key(rng), key(rng), rng.between(0, 8) as usize);
                let to = rng.chance(70).then_some(&to[..]);
                drop(self.engine().scan(cf, &from, to, limit).unwrap());
            }
            75..=84 => drop(self.engine().last(cf).unwrap()),
            85..=92 => self.sync(),
            93..=95 => self.down(false),
            _ => self.down(true),
        }
        assert_eq!(self.lane.disagreements(), Vec::<String>::new(), "{}", self.what);
    }
}

fn run(seed: u64) {
    let (lane, shared) = (RocksLane::new(), Arc::new(Shared::default()));
    let mut world = World::new(seed);
    let (inside, of_host) = (lane.clone(), shared.clone());
    world.host(HOST, None, move |boot| {
        let (lane, shared) = (inside.clone(), of_host.clone());
        async move {
            let engine = lane.open(&boot)?;
            *shared.engine.lock().unwrap() = Some(engine.clone());
            loop {
                boot.env.clock.sleep(Duration::from_millis(1)).await;
                if *shared.sync.lock().unwrap() {
                    engine.sync().await.map_err(|error| error.to_string())?;
                    *shared.sync.lock().unwrap() = false;
                }
            }
        }
    });
    let mut bench = Bench { world, lane, shared, models: vec![Model::new()], what: String::new() };
    let rng = SimRng::new(seed, "engines");
    bench.boot();
    for step in 0..STEPS {
        bench.what = format!("seed {seed}, step {step}");
        bench.step(&rng);
    }
    assert!(bench.world.disk(HOST).fate().lost > 0, "{}: no loss of power has taken anything", bench.what);
}

#[test]
fn the_simulated_disk_and_rocksdb_agree_through_crashes_and_losses_of_power() {
    for seed in 1..=4 {
        run(seed);
    }
}
