//! Workloads that shall not run here: stopped, discarded, or removed. Nothing here ever starts a container.

use std::collections::BTreeSet;
use std::time::Duration;

use cara_proto::workload::Assignment;

use super::{Action, Step, discard_container, has_newer, wake};
use crate::observed::{Footprint, StoredVolume};
use crate::tracker::Tracker;

/// Containers of this placement and of earlier ones are stopped, and stay for whoever goes on with them.
pub(super) fn stop(
    assignment: &Assignment,
    footprint: &Footprint,
    tracker: &Tracker,
    now: Duration,
    list: &mut Vec<Action>,
    wake_at: &mut Option<Duration>,
) {
    let ours = footprint.containers.iter().filter(|held| held.generation <= assignment.generation);
    for held in ours.filter(|held| held.info.state.is_alive()) {
        let not_before = tracker.not_before(&assignment.uid, &held.service);
        if not_before > now && tracker.has_failed_stop(&assignment.uid, &held.service) {
            wake(wake_at, not_before);
            continue;
        }
        // For the service alone: one that can't be stopped must not keep the others running.
        list.push(Action { service: held.service.clone(), step: Step::Stop(held.info.id.clone()) });
    }
}

/// Everything of a workload goes, except managed volumes, and except what a newer placement than `up_to` has made.
pub(super) fn remove(footprint: &Footprint, up_to: Option<u64>, list: &mut Vec<Action>) {
    let newer = up_to.is_some_and(|generation| has_newer(footprint, generation));
    for held in &footprint.containers {
        if up_to.is_none_or(|generation| held.generation <= generation) {
            discard_container(held, "", list);
        }
    }
    if newer || cara_env::planted("orphan-not-removed") {
        return;
    }
    list.extend(footprint.networks.iter().cloned().map(|network| of_workload(Step::RemoveNetwork(network))));
    remove_volumes(footprint.ephemeral_volumes(), list);
}

fn remove_volumes<'a>(volumes: impl Iterator<Item = &'a StoredVolume>, list: &mut Vec<Action>) {
    list.extend(volumes.map(|volume| of_workload(Step::RemoveVolume(volume.name.clone()))));
}

/// A step that belongs to no single service.
fn of_workload(step: Step) -> Action {
    Action { service: String::new(), step }
}

/// As [`remove`], and the copies go that were made for this placement and never mounted.
pub(super) fn discard(
    assignment: &Assignment,
    footprint: &Footprint,
    staged: &BTreeSet<String>,
    list: &mut Vec<Action>,
) {
    remove(footprint, Some(assignment.generation), list);
    if !has_newer(footprint, assignment.generation) {
        remove_volumes(unmounted_copies(footprint, assignment.generation, staged), list);
    }
}

/// Nothing here has a grant any more: all goes, and so do copies that were made to be filled and never mounted. Their move was
/// taken back while this node was away; nobody else knows of them, and nothing was ever written but at their source.
pub(super) fn disown(footprint: &Footprint, staged: &BTreeSet<String>, list: &mut Vec<Action>) {
    remove(footprint, None, list);
    remove_volumes(footprint.managed_volumes().filter(|volume| staged.contains(&volume.name)), list);
}

/// The managed volumes that exactly this placement has made to be filled, and that no container has ever mounted.
pub(crate) fn unmounted_copies<'a>(
    footprint: &'a Footprint,
    generation: u64,
    staged: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a StoredVolume> {
    footprint.managed_volumes().filter(move |v| v.generation == generation && staged.contains(&v.name))
}
