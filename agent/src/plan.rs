//! What to do next: a pure function of what is wanted, what exists, and what has failed lately.
//!
//! The plan of a converged node is empty; carrying out a plan and planning again leads there. Objects without our labels
//! can't appear in a plan, because [`Observed`] doesn't hold them. Call it only with a successful, current listing.
//!
//! Order within a workload: first stop what has no grant any more, then network, volumes, and the services in the
//! order of the spec. An image is fetched before the container that it replaces is stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_proto::workload::{Assignment, Service, Spec};

use crate::labels::{self, Owner, spec_hash};
use crate::observed::{Footprint, Held, Observed};
use crate::runtime::{ContainerSpec, ContainerState, Object, PortSpec};
use crate::tracker::Tracker;

/// What is bound when a port names no address: only this machine.
const BIND_DEFAULT: &str = "127.0.0.1";

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

/// Decides what to do.
pub fn plan(owner: &Owner, desired: &[Assignment], observed: &Observed, tracker: &Tracker, now: Duration) -> Plan {
    let mut plan = Plan::default();
    let nothing = Footprint::default();
    let wanted = newest(desired);
    for (uid, assignment) in &wanted {
        let footprint = observed.workloads.get(*uid).unwrap_or(&nothing);
        let mut list = Vec::new();
        if assignment.remove {
            if !cara_env::planted("stop-not-confirmed") {
                remove(footprint, Some(assignment.generation), &mut list); // Else it goes with what nobody wants.
            }
        } else if !has_newer(footprint, assignment.generation) {
            let mut keep =
                Keep { owner, assignment, footprint, tracker, now, list: &mut list, wake_at: &mut plan.wake_at };
            keep.plan();
        }
        plan.add(uid, list, tracker, now);
    }
    for (uid, footprint) in observed.workloads.iter().filter(|(uid, _)| !wanted.contains_key(uid.as_str())) {
        let mut list = Vec::new();
        remove(footprint, None, &mut list);
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

/// Everything of a workload goes, except managed volumes, and except what a newer placement than `up_to` has made.
fn remove(footprint: &Footprint, up_to: Option<u64>, list: &mut Vec<Action>) {
    let newer = up_to.is_some_and(|generation| has_newer(footprint, generation));
    for held in &footprint.containers {
        if up_to.is_none_or(|generation| held.generation <= generation) {
            discard(held, "", list);
        }
    }
    if newer || cara_env::planted("orphan-not-removed") {
        return;
    }
    let networks = footprint.networks.iter().cloned().map(Step::RemoveNetwork);
    let volumes = footprint.ephemeral_volumes.iter().cloned().map(Step::RemoveVolume);
    list.extend(networks.chain(volumes).map(|step| Action { service: String::new(), step }));
}

fn discard(held: &Held, service: &str, list: &mut Vec<Action>) {
    let id = &held.info.id;
    if held.info.state.is_alive() {
        list.push(Action { service: service.to_owned(), step: Step::Stop(id.clone()) });
    }
    list.push(Action { service: service.to_owned(), step: Step::Remove(id.clone()) });
}

fn wake(wake_at: &mut Option<Duration>, at: Duration) {
    *wake_at = Some(wake_at.map_or(at, |earlier| earlier.min(at)));
}

/// The plan of a workload that shall run.
struct Keep<'a> {
    owner: &'a Owner,
    assignment: &'a Assignment,
    footprint: &'a Footprint,
    tracker: &'a Tracker,
    now: Duration,
    list: &'a mut Vec<Action>,
    wake_at: &'a mut Option<Duration>,
}

impl Keep<'_> {
    fn plan(&mut self) {
        let empty = Spec::default();
        let spec = self.assignment.spec.as_ref().unwrap_or(&empty);
        let services: BTreeSet<&str> = spec.services.iter().map(|s| s.name.as_str()).collect();
        for held in &self.footprint.containers {
            let old = held.generation < self.assignment.generation;
            let old = old && !cara_env::planted("generation-not-checked-on-agent");
            if old || !services.contains(held.service.as_str()) {
                discard(held, "", self.list);
            }
        }
        let network = self.owner.object_name(self.assignment, "");
        if !self.footprint.networks.contains(&network) {
            let labels = self.owner.assigned(self.assignment);
            self.whole(Step::EnsureNetwork(Object { name: network, labels }));
        }
        for (volume, ephemeral) in volumes(spec) {
            self.ensure_volume(volume, ephemeral);
        }
        for service in &spec.services {
            self.service(service);
        }
    }

    fn whole(&mut self, step: Step) {
        self.list.push(Action { service: String::new(), step });
    }

    fn ensure_volume(&mut self, volume: &str, ephemeral: bool) {
        let name = self.owner.object_name(self.assignment, volume);
        if self.footprint.has_volume(&name) {
            return;
        }
        let mut labels = self.owner.assigned(self.assignment);
        labels.insert(labels::VOLUME.to_owned(), volume.to_owned());
        labels.insert(labels::EPHEMERAL.to_owned(), ephemeral.to_string());
        self.whole(Step::EnsureVolume(Object { name, labels }));
    }

    fn service(&mut self, service: &Service) {
        let hash = spec_hash(service);
        let generation = self.assignment.generation;
        let any = cara_env::planted("generation-not-checked-on-agent");
        let of_service = |held: &&Held| held.service == service.name && (any || held.generation == generation);
        let is_current = |held: &Held| (any || held.spec == hash) && held.info.state != ContainerState::Dead;
        let (current, outdated): (Vec<&Held>, Vec<&Held>) =
            self.footprint.containers.iter().filter(of_service).partition(|held| is_current(held));
        let mut steps = Vec::new();
        if let Some(held) = current.first() {
            let again = match held.info.state {
                ContainerState::Created => Some(false),
                ContainerState::Exited => Some(true),
                ContainerState::Running | ContainerState::Paused | ContainerState::Dead => None,
            };
            steps.extend(again.map(|again| Step::Start { container: held.info.id.clone(), again }));
        } else {
            steps.push(Step::EnsureImage(service.image.clone()));
            let mut list = Vec::new();
            outdated.iter().for_each(|held| discard(held, &service.name, &mut list));
            steps.extend(list.into_iter().map(|action| action.step));
            let container = self.container(service, &hash);
            let name = container.name.clone();
            steps.push(Step::Create(Box::new(container)));
            steps.push(Step::Start { container: name, again: false });
        }
        if steps.is_empty() {
            return;
        }
        let not_before = self.tracker.not_before(&self.assignment.uid, &service.name);
        if not_before > self.now {
            wake(self.wake_at, not_before);
            return;
        }
        self.list.extend(steps.into_iter().map(|step| Action { service: service.name.clone(), step }));
    }

    fn container(&self, service: &Service, hash: &str) -> ContainerSpec {
        let mut labels = self.owner.assigned(self.assignment);
        labels.insert(labels::SERVICE.to_owned(), service.name.clone());
        labels.insert(labels::SPEC.to_owned(), hash.to_owned());
        let ports = service.ports.iter().filter(|p| p.host != 0).map(|p| PortSpec {
            container: p.container,
            host: p.host,
            protocol: or(&p.protocol, "tcp"),
            bind_address: or(&p.bind_address, BIND_DEFAULT),
        });
        let mounts = service.mounts.iter();
        ContainerSpec {
            name: self.owner.object_name(self.assignment, &service.name),
            image: service.image.clone(),
            command: service.command.clone(),
            args: service.args.clone(),
            env: service.env.iter().map(|e| (e.name.clone(), e.value.clone())).collect(),
            mounts: mounts.map(|m| (self.owner.object_name(self.assignment, &m.volume), m.path.clone())).collect(),
            ports: ports.collect(),
            network: self.owner.object_name(self.assignment, ""),
            alias: service.name.clone(),
            labels,
        }
    }
}

/// The volumes that a spec needs. One that is mounted without being declared is kept, to be safe.
fn volumes(spec: &Spec) -> BTreeMap<&str, bool> {
    let mounted = spec.services.iter().flat_map(|s| &s.mounts).map(|m| (m.volume.as_str(), false));
    let declared = spec.volumes.iter().map(|v| (v.name.as_str(), v.ephemeral));
    mounted.chain(declared).collect()
}

fn or(text: &str, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text.to_owned() }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
