//! A workload that is about to come here: image, network and empty volumes for the transfer to fill. No container.

use std::collections::BTreeSet;
use std::time::Duration;

use cara_proto::workload::{Assignment, Spec};

use super::{Action, Step, discard_container, volumes, wake};
use crate::labels::{self, Owner};
use crate::observed::Footprint;
use crate::runtime::Object;
use crate::tracker::Tracker;

/// The plan of a workload that is being received.
pub(super) struct Receive<'a> {
    pub(super) owner: &'a Owner,
    pub(super) assignment: &'a Assignment,
    pub(super) footprint: &'a Footprint,
    pub(super) tracker: &'a Tracker,
    pub(super) now: Duration,
    pub(super) list: &'a mut Vec<Action>,
    pub(super) wake_at: &'a mut Option<Duration>,
}

impl Receive<'_> {
    pub(super) fn plan(&mut self) {
        let empty = Spec::default();
        let spec = self.assignment.spec.as_ref().unwrap_or(&empty);
        for held in &self.footprint.containers {
            discard_container(held, "", self.list); // Of an earlier placement, which has no grant any more.
        }
        let network = self.owner.object_name(self.assignment, "");
        if !self.footprint.networks.contains(&network) {
            let labels = self.owner.assigned(self.assignment);
            self.whole(Step::EnsureNetwork(Object { name: network, labels }));
        }
        for (name, volume) in missing_volumes(self.owner, self.assignment, self.footprint) {
            let mut labels = self.owner.volume_labels(self.assignment, &volume, false);
            labels.insert(labels::STAGED.to_owned(), "true".to_owned());
            self.whole(Step::Stage(Object { name, labels }));
        }
        let mut seen = BTreeSet::new();
        for service in spec.services.iter().filter(|s| seen.insert(s.image.as_str())) {
            if self.tracker.has_image(&self.assignment.uid, &service.image) {
                continue;
            }
            let not_before = self.tracker.not_before(&self.assignment.uid, &service.name);
            if not_before > self.now {
                wake(self.wake_at, not_before);
                continue;
            }
            let step = Step::EnsureImage(service.image.clone());
            self.list.push(Action { service: service.name.clone(), step });
        }
    }

    fn whole(&mut self, step: Step) {
        self.list.push(Action { service: String::new(), step });
    }
}

/// Managed volumes that are to be filled and don't exist yet: engine name and name in the spec.
fn missing_volumes(owner: &Owner, assignment: &Assignment, footprint: &Footprint) -> Vec<(String, String)> {
    let managed = managed_volumes(owner, assignment).into_iter();
    managed.filter(|(_, name)| !footprint.has_volume(name)).map(|(volume, name)| (name, volume)).collect()
}

/// The volumes that move with an assignment: name in the spec and name in the engine, in the order of the former.
pub(crate) fn managed_volumes(owner: &Owner, assignment: &Assignment) -> Vec<(String, String)> {
    let managed = assignment.spec.iter().flat_map(volumes).filter(|(_, ephemeral)| !ephemeral);
    managed.map(|(volume, _)| (volume.to_owned(), owner.volume_name(assignment, volume))).collect()
}

/// Volumes that have the names of the copies and aren't copies: they have run, or nobody knows. They are never written to.
pub(crate) fn not_to_be_filled(
    owner: &Owner,
    assignment: &Assignment,
    footprint: &Footprint,
    staged: &BTreeSet<String>,
) -> Vec<String> {
    let names = managed_volumes(owner, assignment).into_iter().map(|(_, name)| name);
    names.filter(|name| footprint.has_volume(name) && !staged.contains(name)).collect()
}

/// Is everything here that the workload needs in order to be filled, and then to run?
pub(crate) fn is_ready(owner: &Owner, assignment: &Assignment, footprint: &Footprint, tracker: &Tracker) -> bool {
    let services = assignment.spec.iter().flat_map(|spec| &spec.services);
    footprint.networks.contains(&owner.object_name(assignment, ""))
        && missing_volumes(owner, assignment, footprint).is_empty()
        && services.into_iter().all(|service| tracker.has_image(&assignment.uid, &service.image))
}
