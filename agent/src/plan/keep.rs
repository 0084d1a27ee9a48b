//! A workload that shall run: what is missing is made, what is outdated is replaced, what has ended is started again.

use std::collections::BTreeSet;
use std::time::Duration;

use cara_proto::workload::{Assignment, Service, Spec};

use super::{Action, Step, discard_container, volumes, wake};
use crate::labels::{self, Owner, spec_hash};
use crate::observed::{Footprint, Held};
use crate::runtime::{ContainerSpec, ContainerState, Object, PortSpec};
use crate::tracker::Tracker;

/// What is bound when a port names no address: only this machine.
const BIND_DEFAULT: &str = "127.0.0.1";

/// The plan of a workload that shall run.
pub(super) struct Keep<'a> {
    pub(super) owner: &'a Owner,
    pub(super) assignment: &'a Assignment,
    pub(super) footprint: &'a Footprint,
    pub(super) tracker: &'a Tracker,
    /// Volumes that were made to be filled and that no container has mounted.
    pub(super) staged: &'a BTreeSet<String>,
    pub(super) now: Duration,
    pub(super) list: &'a mut Vec<Action>,
    pub(super) wake_at: &'a mut Option<Duration>,
}

impl Keep<'_> {
    pub(super) fn plan(&mut self) {
        let empty = Spec::default();
        let spec = self.assignment.spec.as_ref().unwrap_or(&empty);
        let services: BTreeSet<&str> = spec.services.iter().map(|s| s.name.as_str()).collect();
        for held in &self.footprint.containers {
            let old = held.generation < self.assignment.generation;
            let old = old && !cara_env::planted("generation-not-checked-on-agent");
            if old || !services.contains(held.service.as_str()) {
                discard_container(held, "", self.list);
            }
        }
        if !lost_volumes(self.owner, self.assignment, self.footprint, self.staged).is_empty() {
            return; // An empty volume in place of one that was copied here would be taken for the data.
        }
        self.drop_scratch(spec);
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

    /// Ephemeral volumes of an earlier data generation go: nothing will mount them again.
    fn drop_scratch(&mut self, spec: &Spec) {
        let wanted: BTreeSet<String> =
            volumes(spec).into_keys().map(|volume| self.owner.volume_name(self.assignment, volume)).collect();
        let data_generation = self.assignment.data_generation;
        let old = |volume: &&crate::observed::StoredVolume| {
            volume.data_generation < data_generation && !wanted.contains(&volume.name)
        };
        for volume in self.footprint.ephemeral_volumes().filter(old) {
            self.whole(Step::RemoveVolume(volume.name.clone()));
        }
    }

    fn ensure_volume(&mut self, volume: &str, ephemeral: bool) {
        let name = self.owner.volume_name(self.assignment, volume);
        if !self.footprint.has_volume(&name) {
            let labels = self.owner.volume_labels(self.assignment, volume, ephemeral);
            self.whole(Step::EnsureVolume(Object { name, labels }));
        }
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
            if let Some(again) = again {
                steps.extend(self.mounting(service));
                steps.push(Step::Start { container: held.info.id.clone(), again });
            }
        } else {
            steps.push(Step::EnsureImage(service.image.clone()));
            let mut list = Vec::new();
            outdated.iter().for_each(|held| discard_container(held, &service.name, &mut list));
            steps.extend(list.into_iter().map(|action| action.step));
            let container = self.container(service, &hash);
            let name = container.name.clone();
            steps.push(Step::Create(Box::new(container)));
            steps.extend(self.mounting(service));
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

    /// Before a container is started, the volumes that it mounts stop being ones that nobody has mounted.
    fn mounting(&self, service: &Service) -> Vec<Step> {
        let names = service.mounts.iter().map(|mount| self.owner.volume_name(self.assignment, &mount.volume));
        let staged: BTreeSet<String> = names.filter(|name| self.staged.contains(name)).collect();
        staged.into_iter().map(Step::Mounting).collect()
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
            mounts: mounts.map(|m| (self.owner.volume_name(self.assignment, &m.volume), m.path.clone())).collect(),
            ports: ports.collect(),
            network: self.owner.object_name(self.assignment, ""),
            alias: service.name.clone(),
            labels,
        }
    }
}

/// Volumes that were filled here for this assignment and are gone: the engine has lost them.
pub(crate) fn lost_volumes(
    owner: &Owner,
    assignment: &Assignment,
    footprint: &Footprint,
    staged: &BTreeSet<String>,
) -> Vec<String> {
    let spec = assignment.spec.iter();
    let managed = spec.flat_map(volumes).filter(|(_, ephemeral)| !ephemeral);
    let names = managed.map(|(volume, _)| owner.volume_name(assignment, volume));
    names.filter(|name| staged.contains(name) && !footprint.has_volume(name)).collect()
}

fn or(text: &str, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text.to_owned() }
}
