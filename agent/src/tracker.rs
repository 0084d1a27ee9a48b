//! What the agent remembers between two looks at the engine: failures, how often a container was restarted, and when to
//! try again. In memory only: after a restart of the agent everything is tried at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_proto::workload::Assignment;

use crate::backoff::doubled;
use crate::labels::spec_hash;
use crate::mode::Mode;
use crate::observed::{Held, Observed};
use crate::plan::newest;
use crate::runtime::RuntimeError;

/// First wait before a failed container or action is tried again.
pub const RETRY_MIN: Duration = Duration::from_secs(5);
/// The longest such wait.
pub const RETRY_MAX: Duration = Duration::from_secs(300);
/// A container that has run for this long has recovered: its next failure waits [`RETRY_MIN`] again.
pub const STABLE: Duration = Duration::from_secs(300);

/// A workload's part: a service, or the whole (empty).
type Part = (String, String);

/// Failures and waits by workload and service.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    parts: BTreeMap<Part, Attempts>,
    /// Images that were fetched for a workload that is being received: uid and image.
    images: BTreeSet<(String, String)>,
}

/// What is known of one part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Failures in a row.
    pub failures: u32,
    /// How often its container was started again after it had run.
    pub restarts: u64,
    /// Not tried before this moment of the monotonic clock.
    pub not_before: Duration,
    /// The last failure, until it has recovered: reason and message.
    pub error: Option<(String, String)>,
    /// Since when its container runs without interruption, as seen here.
    running_since: Option<Duration>,
}

impl Attempts {
    fn look(&mut self, held: &Held, now: Duration) {
        if held.info.state.is_alive() {
            let since = *self.running_since.get_or_insert(now);
            if now.saturating_sub(since) >= STABLE {
                self.failures = 0;
            }
            // It runs, so whatever was wrong is over; the count stays until it has run for long.
            self.error = None;
        } else if self.running_since.is_some() {
            let code = held.info.exit_code.unwrap_or_default();
            let wait = doubled(RETRY_MIN, RETRY_MAX, self.failures).as_secs();
            let message =
                format!("service {} has ended with exit code {code}; it is started again {wait} s later", held.service);
            self.failed(now, "Exited", message);
        }
    }

    fn failed(&mut self, now: Duration, reason: &str, message: String) {
        self.not_before = now + doubled(RETRY_MIN, RETRY_MAX, self.failures);
        self.failures = self.failures.saturating_add(1);
        self.error = Some((reason.to_owned(), message));
        self.running_since = None;
    }
}

impl Tracker {
    /// What is known of a service, or of the whole workload (empty service).
    pub fn get(&self, uid: &str, service: &str) -> Option<&Attempts> {
        self.parts.get(&(uid.to_owned(), service.to_owned()))
    }

    /// When this part may be tried; zero when at once.
    pub fn not_before(&self, uid: &str, service: &str) -> Duration {
        self.get(uid, service).map(|a| a.not_before).unwrap_or_default()
    }

    /// Takes in what the engine shows: containers that run, and those that have ended since they were seen running.
    pub fn look(&mut self, desired: &[Assignment], observed: &Observed, now: Duration) {
        for (uid, assignment) in newest(desired) {
            if Mode::of(assignment) != Mode::Run {
                continue; // That a container ends is what is wanted of it.
            }
            let services = assignment.spec.iter().flat_map(|spec| &spec.services);
            let containers = observed.workloads.get(uid).into_iter().flat_map(|footprint| &footprint.containers);
            for service in services {
                let hash = spec_hash(service);
                // Only the container that is wanted says how the service does; one that is being replaced says nothing.
                let is_wanted = |held: &&Held| {
                    held.service == service.name && held.generation == assignment.generation && held.spec == hash
                };
                if let Some(held) = containers.clone().find(is_wanted) {
                    self.parts.entry((uid.to_owned(), held.service.clone())).or_default().look(held, now);
                }
            }
        }
        let known: BTreeSet<&str> =
            desired.iter().map(|a| a.uid.as_str()).chain(observed.workloads.keys().map(String::as_str)).collect();
        self.parts.retain(|(uid, _), _| known.contains(uid.as_str()));
        self.images.retain(|(uid, _)| known.contains(uid.as_str()));
    }

    /// The image is on this machine.
    pub fn image_fetched(&mut self, uid: &str, image: &str) {
        self.images.insert((uid.to_owned(), image.to_owned()));
    }

    /// Was the image fetched for this workload since the agent has started?
    pub fn has_image(&self, uid: &str, image: &str) -> bool {
        self.images.contains(&(uid.to_owned(), image.to_owned()))
    }

    /// Is the service's last failure that it can't be stopped? Waits after other failures are no reason to let it run.
    pub fn has_failed_stop(&self, uid: &str, service: &str) -> bool {
        let error = self.get(uid, service).and_then(|attempts| attempts.error.as_ref());
        error.is_some_and(|(reason, _)| ["StopFailed", "EngineAway"].contains(&reason.as_str()))
    }

    /// An action for this part has failed.
    pub fn failed(&mut self, uid: &str, service: &str, error: &RuntimeError, now: Duration) {
        let attempts = self.parts.entry((uid.to_owned(), service.to_owned())).or_default();
        attempts.failed(now, error.reason(), error.to_string());
    }

    /// A container that had run before was started again.
    pub fn restarted(&mut self, uid: &str, service: &str, now: Duration) {
        let attempts = self.parts.entry((uid.to_owned(), service.to_owned())).or_default();
        attempts.restarts += 1;
        attempts.running_since = Some(now);
    }

    /// A container was started for the first time.
    pub fn started(&mut self, uid: &str, service: &str, now: Duration) {
        self.parts.entry((uid.to_owned(), service.to_owned())).or_default().running_since = Some(now);
    }

    /// The workload as a whole has no trouble any more.
    pub fn recovered(&mut self, uid: &str) {
        self.parts.remove(&(uid.to_owned(), String::new()));
    }

    /// What is wanted of this workload has changed: try at once.
    pub fn changed(&mut self, uid: &str) {
        self.parts.retain(|(of, _), _| of != uid);
    }
}
