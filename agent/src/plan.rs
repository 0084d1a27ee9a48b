//! What to do next: a pure function of what is wanted, what exists, and what has failed lately.
//!
//! The plan of a converged node is empty; carrying out a plan and planning again leads there. Objects without our labels
//! can't appear in a plan, because [`Observed`] doesn't hold them. Call it only with a successful, current listing.
//!
//! The modes of an assignment have files of their own: `keep` for what runs, `receive` for what is about to come, `leave` for
//! all that doesn't run here; `remove` is for volumes that an operator has given up.
//!
//! Order within a workload: first stop what has no grant any more, then network, volumes, and the services in the
//! order of the spec. An image is fetched before the container that it replaces is stopped.

mod keep;
mod leave;
mod receive;
mod remove;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_proto::agent::VolumeRemoval;
use cara_proto::workload::{Assignment, Spec};
use keep::Keep;
pub(crate) use keep::lost_volumes;
pub(crate) use leave::unmounted_copies;
use receive::Receive;
pub(crate) use receive::{is_ready, managed_volumes, not_to_be_filled};
pub(crate) use remove::has_left_over;

use crate::labels::Owner;
use crate::mode::Mode;
use crate::observed::{Footprint, Held, Observed};
use crate::runtime::{ContainerSpec, Object};
use crate::tracker::Tracker;

/// Actions by workload uid, each list in the order in which it must be done, and when to plan again at the latest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// By workload uid. Lists of different workloads are independent.
    pub actions: BTreeMap<String, Vec<Action>>,
    /// On the monotonic clock; none when nothing waits.
    pub wake_at: Option<Duration>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The service that it is for; empty = the whole workload. When it fails, the later actions of the same service are
    /// left out, and all later actions if it was for the whole workload.
    pub service: String,
    /// What to do.
    pub step: Step,
}

/// What to do. Every step may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Make the network.
    EnsureNetwork(Object),
    /// Make the volume.
    EnsureVolume(Object),
    /// Write into the book that the volume is only there to be filled, and make it.
    Stage(Object),
    /// Strike the volume of this name out of the book: a container is about to mount it.
    Mounting(String),
    /// Have the image on this machine.
    EnsureImage(String),
    /// Make the container.
    Create(Box<ContainerSpec>),
    /// Start the container of this id or name.
    Start {
        /// Id or name.
        container: String,
        /// It has run before.
        again: bool,
    },
    /// End the container of this id.
    Stop(String),
    /// Remove the container of this id.
    Remove(String),
    /// Remove the network of this name.
    RemoveNetwork(String),
    /// Remove the volume of this name.
    RemoveVolume(String),
}

impl Step {
    /// Would a second copy of the workload come to be by it, if this machine were a copy of another one?
    pub(crate) fn starts_something(&self) -> bool {
        match self {
            Step::EnsureVolume(_) | Step::Stage(_) | Step::Create(_) | Step::Start { .. } => true,
            Step::EnsureNetwork(_) | Step::Mounting(_) | Step::EnsureImage(_) | Step::Stop(_) | Step::Remove(_) => {
                false
            }
            Step::RemoveNetwork(_) | Step::RemoveVolume(_) => false,
        }
    }
}

/// Decides what to do. `removals` are the volumes in quarantine that an operator has given up, `staged` those that were made
/// to be filled and that no container has ever mounted.
pub fn plan(
    owner: &Owner,
    desired: &[Assignment],
    removals: &[VolumeRemoval],
    observed: &Observed,
    tracker: &Tracker,
    staged: &BTreeSet<String>,
    now: Duration,
) -> Plan {
    let mut plan = Plan::default();
    let nothing = Footprint::default();
    let wanted = newest(desired);
    for (uid, assignment) in &wanted {
        let footprint = observed.workloads.get(*uid).unwrap_or(&nothing);
        let mut list = Vec::new();
        let (list_at, wake_at) = (&mut list, &mut plan.wake_at);
        match Mode::of(assignment) {
            Mode::Remove if cara_env::planted("stop-not-confirmed") => {} // It goes with what nobody wants.
            Mode::Remove | Mode::Retire => leave::remove(footprint, Some(assignment.generation), list_at),
            Mode::Discard => leave::discard(assignment, footprint, staged, list_at),
            Mode::Stop => leave::stop(assignment, footprint, tracker, now, list_at, wake_at),
            Mode::Run | Mode::Receive if has_newer(footprint, assignment.generation) => {}
            Mode::Run => {
                Keep { owner, assignment, footprint, tracker, staged, now, list: list_at, wake_at }.plan();
            }
            Mode::Receive => Receive { owner, assignment, footprint, tracker, now, list: list_at, wake_at }.plan(),
            Mode::Unknown => {}
        }
        remove::given_up(removals, Some(assignment), (uid, footprint), tracker, now, &mut list, &mut plan.wake_at);
        plan.add(uid, list, tracker, now);
    }
    for (uid, footprint) in observed.workloads.iter().filter(|(uid, _)| !wanted.contains_key(uid.as_str())) {
        let mut list = Vec::new();
        leave::disown(footprint, staged, &mut list);
        remove::given_up(removals, None, (uid, footprint), tracker, now, &mut list, &mut plan.wake_at);
        plan.add(uid, list, tracker, now);
    }
    plan
}

impl Plan {
    /// Adds a workload's actions, unless the workload has to wait after a failure.
    fn add(&mut self, uid: &str, list: Vec<Action>, tracker: &Tracker, now: Duration) {
        let not_before = tracker.not_before(uid, "");
        if list.is_empty() {
            return;
        }
        if not_before > now {
            wake(&mut self.wake_at, not_before);
        } else {
            self.actions.insert(uid.to_owned(), list);
        }
    }
}

/// The assignments by uid; of two for one uid, the higher generation.
pub(crate) fn newest(desired: &[Assignment]) -> BTreeMap<&str, &Assignment> {
    let mut by_uid: BTreeMap<&str, &Assignment> = BTreeMap::new();
    for assignment in desired {
        let known = by_uid.entry(assignment.uid.as_str()).or_insert(assignment);
        if assignment.generation > known.generation {
            *known = assignment;
        }
    }
    by_uid
}

/// Does a placement newer than this one have containers here? Then this one is not current, and they aren't ours to touch.
pub(crate) fn has_newer(footprint: &Footprint, generation: u64) -> bool {
    footprint.containers.iter().any(|c| c.generation > generation)
}

/// A container goes, stopped first if it lives.
fn discard_container(held: &Held, service: &str, list: &mut Vec<Action>) {
    let id = &held.info.id;
    if held.info.state.is_alive() {
        list.push(Action { service: service.to_owned(), step: Step::Stop(id.clone()) });
    }
    list.push(Action { service: service.to_owned(), step: Step::Remove(id.clone()) });
}

fn wake(wake_at: &mut Option<Duration>, at: Duration) {
    *wake_at = Some(wake_at.map_or(at, |earlier| earlier.min(at)));
}

/// The volumes that a spec needs. One that is mounted without being declared is kept, to be safe.
fn volumes(spec: &Spec) -> BTreeMap<&str, bool> {
    let mounted = spec.services.iter().flat_map(|s| &s.mounts).map(|m| (m.volume.as_str(), false));
    let declared = spec.volumes.iter().map(|v| (v.name.as_str(), v.ephemeral));
    mounted.chain(declared).collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
