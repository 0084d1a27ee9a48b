//! How large the volumes in quarantine are: measured in the background, one after the other, never for a report.
//!
//! Nothing mounts such a volume, so it is measured once for as long as it stays there. What could not be measured is tried
//! again, rarely: to the operator it is a number that helps to decide, and to everything else it is nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cara_env::{Env, Task};
use tokio::sync::watch;

use crate::runtime::ContainerRuntime;

/// A volume that takes longer has so many files that its size is not worth the disk's time.
const DEADLINE: Duration = Duration::from_secs(10 * 60);
/// After a failure: an engine that was away is back by then, and a volume that is too large costs a minute a day.
const RETRY: Duration = Duration::from_secs(6 * 3600);

/// The task that measures, and what it knows.
pub(crate) struct Sizes {
    wanted: watch::Sender<BTreeSet<String>>,
    known: watch::Receiver<BTreeMap<String, u64>>,
    _measuring: Task<()>,
}

impl Sizes {
    /// Measures nothing until it is told what.
    pub(crate) fn new(env: Env, runtime: Arc<dyn ContainerRuntime>) -> Self {
        let (wanted, of) = watch::channel(BTreeSet::new());
        let (found, known) = watch::channel(BTreeMap::new());
        let measure = Measure { env, runtime, of, found, not_before: BTreeMap::new() };
        Self { wanted, known, _measuring: cara_env::spawn(measure.run()) }
    }

    /// The engine names of what is in quarantine now; what left it is forgotten, since it may come back changed.
    pub(crate) fn follow(&self, names: BTreeSet<String>) {
        self.wanted.send_if_modified(|wanted| {
            let changed = *wanted != names;
            *wanted = names;
            changed
        });
    }

    /// Bytes by engine name; a volume that is not there has not been measured.
    pub(crate) fn known(&mut self) -> BTreeMap<String, u64> {
        self.known.borrow_and_update().clone()
    }

    /// Returns when more is known.
    pub(crate) async fn changed(&mut self) {
        if self.known.changed().await.is_err() {
            std::future::pending::<()>().await; // The task ends only with the agent.
        }
    }
}

struct Measure {
    env: Env,
    runtime: Arc<dyn ContainerRuntime>,
    of: watch::Receiver<BTreeSet<String>>,
    found: watch::Sender<BTreeMap<String, u64>>,
    /// When what could not be measured is tried again, on the monotonic clock.
    not_before: BTreeMap<String, Duration>,
}

impl Measure {
    async fn run(mut self) {
        loop {
            let wanted = self.of.borrow_and_update().clone();
            self.not_before.retain(|name, _| wanted.contains(name));
            self.found.send_if_modified(|found| {
                let before = found.len();
                found.retain(|name, _| wanted.contains(name));
                found.len() != before
            });
            let now = self.env.clock.monotonic();
            let unknown = wanted.iter().filter(|name| !self.found.borrow().contains_key(*name));
            let due = unknown.map(|name| (self.not_before.get(name).copied().unwrap_or_default(), name)).min();
            match due {
                Some((at, name)) if at <= now => self.measure(name.clone()).await,
                Some((at, _)) => {
                    // Something else may be wanted before; that the sender is gone is seen by the next wait.
                    drop(cara_env::timeout(&*self.env.clock, at - now, self.of.changed()).await);
                }
                None if self.of.changed().await.is_err() => return,
                None => {}
            }
            if self.of.has_changed().is_err() {
                return;
            }
        }
    }

    async fn measure(&mut self, name: String) {
        let measuring = self.runtime.volume_bytes(&name);
        match cara_env::timeout(&*self.env.clock, DEADLINE, measuring).await {
            Ok(Ok(Some(bytes))) => {
                self.found.send_modify(|found| {
                    found.insert(name, bytes);
                });
                return;
            }
            Ok(Ok(None)) => {
                tracing::debug!(volume = name, "its size can't be told here, or takes too long to find out")
            }
            Ok(Err(error)) => tracing::debug!(volume = name, "not measured: {error}"),
            Err(_) => tracing::debug!(volume = name, "not measured within {DEADLINE:?}"),
        }
        self.not_before.insert(name, self.env.clock.monotonic() + RETRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;
    use crate::runtime::Object;
    use crate::runtime::memory::MemoryRuntime;
    use crate::testing::{ManualClock, env};

    fn held(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn each_is_measured_once_and_forgotten_when_it_leaves() {
        let clock = ManualClock::hurried();
        let runtime = MemoryRuntime::new(clock.clone());
        for name in ["one", "two"] {
            let object = Object { name: name.into(), labels: Labels::new() };
            runtime.ensure_volume(&object).await.expect("made");
        }
        let mut sizes = Sizes::new(env(clock.clone()), Arc::new(runtime.clone()));
        sizes.follow(held(&["missing", "one", "two"]));
        while sizes.known().len() < 2 {
            sizes.changed().await;
        }
        assert_eq!(sizes.known(), [("one".to_owned(), 0), ("two".to_owned(), 0)].into());
        let object = Object { name: "missing".into(), labels: Labels::new() };
        runtime.ensure_volume(&object).await.expect("made");
        sizes.follow(held(&["missing", "two"]));
        sizes.changed().await;
        assert_eq!(sizes.known(), [("two".to_owned(), 0)].into(), "a failure is not tried again at once");
        clock.advance(RETRY);
        sizes.changed().await;
        assert_eq!(sizes.known().len(), 2);
    }
}
