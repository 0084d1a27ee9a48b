//! An engine that keeps everything in memory, for tests: the contract without a device. Nothing in it ever fails.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cara_env::{Batch, Cf, Engine, KeyValue, Op};

type Maps = BTreeMap<Cf, BTreeMap<Vec<u8>, Vec<u8>>>;

/// See the module.
#[derive(Debug, Default)]
pub struct MemoryEngine(Mutex<Maps>);

impl MemoryEngine {
    /// An empty engine.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Maps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Engine for MemoryEngine {
    fn get(&self, cf: Cf, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.lock().get(&cf).and_then(|map| map.get(key).cloned()))
    }

    fn scan(&self, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> io::Result<Vec<KeyValue>> {
        let maps = self.lock();
        let Some(map) = maps.get(&cf) else { return Ok(Vec::new()) };
        let pairs = map.range(from.to_vec()..).take_while(|(key, _)| to.is_none_or(|to| key.as_slice() < to));
        Ok(pairs.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn last(&self, cf: Cf) -> io::Result<Option<KeyValue>> {
        let maps = self.lock();
        Ok(maps.get(&cf).and_then(|map| map.last_key_value()).map(|(key, value)| (key.clone(), value.clone())))
    }

    fn write(&self, batch: &Batch) -> io::Result<()> {
        let mut maps = self.lock();
        for op in batch.ops.iter().cloned() {
            match op {
                Op::Put(cf, key, value) => drop(maps.entry(cf).or_default().insert(key, value)),
                Op::Delete(cf, key) => drop(maps.entry(cf).or_default().remove(&key)),
                Op::DeleteRange(cf, from, to) => {
                    maps.entry(cf).or_default().retain(|key, _| *key < from || *key >= to);
                }
            }
        }
        Ok(())
    }

    async fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
