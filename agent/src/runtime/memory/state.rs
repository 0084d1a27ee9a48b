//! The memory engine's objects and the rules of an engine: unique names, owners, what is in use can't go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::handle::Start;
use super::volumes::Volumes;
use super::{Now, RuntimeError};
use crate::labels::{self, Labels};
use crate::runtime::{ContainerInfo, ContainerSpec, ContainerState, Listing, LogOptions, Object};

/// Starts kept for checkers: a simulated hour of a restart storm on one node has fewer.
const STARTS_MAX: usize = 10_000;
/// Log lines kept per container: enough to read what happened, little enough for thousands of containers.
const LINES_MAX: usize = 100;

#[derive(Default)]
pub(super) struct State {
    /// By name.
    pub(super) containers: BTreeMap<String, Container>,
    networks: BTreeMap<String, Labels>,
    pub(super) volumes: Volumes,
    pub(super) starts: VecDeque<Start>,
    /// Starts that were dropped from `starts`.
    pub(super) forgotten: u64,
    /// For ids that never repeat.
    made: u64,
}

pub(super) struct Container {
    pub(super) info: ContainerInfo,
    spec: ContainerSpec,
    lines: VecDeque<(u64, String)>,
    /// Lines written into its volumes.
    written: u64,
}

impl State {
    pub(super) fn list(&self, filter: &Labels) -> Listing {
        let matches = |labels: &Labels| filter.iter().all(|(key, value)| labels.get(key) == Some(value));
        let objects = |all: &BTreeMap<String, Labels>| {
            let all = all.iter().filter(|(_, labels)| matches(labels));
            all.map(|(name, labels)| Object { name: name.clone(), labels: labels.clone() }).collect()
        };
        let containers = self.containers.values().filter(|c| matches(&c.info.labels));
        Listing {
            containers: containers.map(|c| c.info.clone()).collect(),
            networks: objects(&self.networks),
            volumes: self.volumes.objects(matches),
        }
    }

    /// As [`State::list`], after the listed containers that run have lived a little.
    pub(super) fn live_and_list(&mut self, filter: &Labels, now: Now) -> Listing {
        let matches = |labels: &Labels| filter.iter().all(|(key, value)| labels.get(key) == Some(value));
        let alive = self.containers.values_mut().filter(|c| c.info.state.is_alive() && matches(&c.info.labels));
        for container in alive {
            container.write_volumes(&mut self.volumes, now, "lives");
        }
        self.list(filter)
    }

    /// Does the container run, and its workload isn't among the `unwell`?
    pub(super) fn is_well(&self, key: &str, unwell: &BTreeSet<String>) -> Result<bool, RuntimeError> {
        let container = self.containers.values().find(|c| c.info.name == key || c.info.id == key);
        let Some(container) = container.filter(|container| container.info.state.is_alive()) else {
            let cause = "it does not run".to_owned();
            return Err(RuntimeError::Failed { operation: "reach", subject: key.to_owned(), cause });
        };
        let uid = container.info.labels.get(labels::UID);
        Ok(uid.is_none_or(|uid| !unwell.contains(uid)))
    }

    pub(super) fn ensure_network(&mut self, network: &Object) -> Result<(), RuntimeError> {
        ensure("network", &mut self.networks, network)
    }

    pub(super) fn ensure_volume(&mut self, volume: &Object) -> Result<(), RuntimeError> {
        self.volumes.ensure(volume)
    }

    pub(super) fn remove_network(&mut self, name: &str) -> Result<(), RuntimeError> {
        self.in_use("remove", name, |spec| spec.network == name)?;
        self.networks.remove(name);
        Ok(())
    }

    pub(super) fn remove_volume(&mut self, name: &str) -> Result<(), RuntimeError> {
        self.in_use("remove", name, |spec| spec.mounts.iter().any(|(volume, _)| volume == name))?;
        self.volumes.remove(name);
        Ok(())
    }

    fn in_use(
        &self,
        operation: &'static str,
        name: &str,
        uses: impl Fn(&ContainerSpec) -> bool,
    ) -> Result<(), RuntimeError> {
        match self.containers.values().find(|c| uses(&c.spec)) {
            None => Ok(()),
            Some(user) => {
                let cause = format!("container {} uses it", user.info.name);
                Err(RuntimeError::Failed { operation, subject: name.to_owned(), cause })
            }
        }
    }

    /// `failure` is asked only if a container would really be made.
    pub(super) fn create(
        &mut self,
        spec: &ContainerSpec,
        now: Now,
        failure: impl FnOnce(&str) -> Option<RuntimeError>,
    ) -> Result<(), RuntimeError> {
        if let Some(existing) = self.containers.get(&spec.name) {
            let same = existing.info.labels == spec.labels;
            return if same { Ok(()) } else { Err(not_ours("container", &spec.name)) };
        }
        let missing = |subject: String| RuntimeError::Failed {
            operation: "create",
            subject: spec.name.clone(),
            cause: format!("no such {subject}"),
        };
        if !self.networks.contains_key(&spec.network) {
            return Err(missing(format!("network: {}", spec.network)));
        }
        for (volume, _) in &spec.mounts {
            if self.volumes.check(volume).is_err() {
                return Err(missing(format!("volume: {volume}")));
            }
        }
        if let Some(failure) = failure(&spec.name) {
            return Err(failure);
        }
        self.made += 1;
        let info = ContainerInfo {
            id: format!("mem{:012x}", self.made),
            name: spec.name.clone(),
            labels: spec.labels.clone(),
            state: ContainerState::Created,
            exit_code: None,
            started_at_ms: 0,
        };
        let mut container = Container { info, spec: spec.clone(), lines: VecDeque::new(), written: 0 };
        container.write(now, format!("created from image {}", spec.image));
        self.containers.insert(spec.name.clone(), container);
        Ok(())
    }

    /// `failure` is asked only if a container would really start.
    pub(super) fn start(
        &mut self,
        key: &str,
        now: Now,
        failure: impl FnOnce(&str) -> Option<RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let taken = self.taken_port(key);
        let Some(container) = find(&mut self.containers, key) else {
            let cause = "no such container".to_owned();
            return Err(RuntimeError::Failed { operation: "start", subject: key.to_owned(), cause });
        };
        if container.info.state.is_alive() {
            return Ok(());
        }
        if let Some(failure) = failure(&container.info.name) {
            return Err(failure);
        }
        if let Some(cause) = taken {
            return Err(RuntimeError::PortTaken { container: container.info.name.clone(), cause });
        }
        container.info.state = ContainerState::Running;
        container.info.exit_code = None;
        container.info.started_at_ms = now.wall_ms;
        container.write(now, "started".into());
        let mounted = container.spec.mounts.iter().map(|(volume, _)| volume);
        let digests = mounted.filter_map(|volume| Some((volume.clone(), self.volumes.digest(volume)?)));
        let start = Start { volumes: digests.collect(), ..Start::of(&container.info, now.recorded) };
        container.write_volumes(&mut self.volumes, now, "started");
        if self.starts.len() >= STARTS_MAX {
            self.starts.pop_front();
            self.forgotten += 1;
        }
        self.starts.push_back(start);
        Ok(())
    }

    /// Who else publishes a host port of this container.
    fn taken_port(&self, key: &str) -> Option<String> {
        let this = self.containers.values().find(|c| c.info.name == key || c.info.id == key)?;
        let others = self.containers.values().filter(|c| c.info.id != this.info.id && c.info.state.is_alive());
        for other in others {
            for port in &this.spec.ports {
                let same = |p: &&crate::runtime::PortSpec| p.host == port.host && p.protocol == port.protocol;
                if other.spec.ports.iter().any(|p| same(&p)) {
                    return Some(format!("port {}/{} is used by {}", port.host, port.protocol, other.info.name));
                }
            }
        }
        None
    }

    /// Ends a container's process; nothing happens when it doesn't run.
    pub(super) fn end(&mut self, key: &str, code: i64, now: Now) {
        let Some(container) = find(&mut self.containers, key) else { return };
        if !container.info.state.is_alive() {
            return;
        }
        container.info.state = ContainerState::Exited;
        container.info.exit_code = Some(code);
        container.write(now, format!("exited with code {code}"));
        container.write_volumes(&mut self.volumes, now, "stopped");
        let id = container.info.id.clone();
        if let Some(start) = self.starts.iter_mut().rev().find(|s| s.container == id) {
            start.ended_at = Some(now.recorded);
        }
    }

    pub(super) fn remove(&mut self, key: &str, now: Now) {
        self.end(key, 137, now);
        self.containers.retain(|name, c| name != key && c.info.id != key);
    }

    pub(super) fn logs(&mut self, key: &str, options: LogOptions) -> Result<Vec<String>, RuntimeError> {
        let Some(container) = find(&mut self.containers, key) else {
            let cause = "no such container".to_owned();
            return Err(RuntimeError::Failed { operation: "read the output of", subject: key.to_owned(), cause });
        };
        let tail = usize::try_from(options.tail).unwrap_or(usize::MAX);
        let skip = if tail == 0 { 0 } else { container.lines.len().saturating_sub(tail) };
        let line = |(at_ms, text): &(u64, String)| {
            if options.timestamps { format!("{at_ms} {text}\n") } else { format!("{text}\n") }
        };
        Ok(container.lines.iter().skip(skip).map(line).collect())
    }
}

impl Container {
    /// Adds a line to each of its managed volumes: the generation, a number that rises, and what happened.
    fn write_volumes(&mut self, volumes: &mut Volumes, now: Now, what: &str) {
        self.written += 1;
        let generation = self.info.labels.get(labels::GENERATION).map(String::as_str).unwrap_or_default();
        let line = format!("{generation} {} {what}\n", self.written);
        for (volume, _) in &self.spec.mounts {
            volumes.append(volume, &line, now.wall_ms);
        }
    }

    fn write(&mut self, now: Now, line: String) {
        if self.lines.len() >= LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back((now.wall_ms, line));
    }
}

fn find<'a>(containers: &'a mut BTreeMap<String, Container>, key: &str) -> Option<&'a mut Container> {
    containers.values_mut().find(|c| c.info.name == key || c.info.id == key)
}

fn ensure(kind: &'static str, all: &mut BTreeMap<String, Labels>, object: &Object) -> Result<(), RuntimeError> {
    match all.get(&object.name) {
        None => {
            all.insert(object.name.clone(), object.labels.clone());
            Ok(())
        }
        // The generation of the first maker stays on it, so only the owner is compared.
        Some(labels) if labels::same_owner(labels, &object.labels) => Ok(()),
        Some(_) => Err(not_ours(kind, &object.name)),
    }
}

pub(super) fn not_ours(kind: &'static str, name: &str) -> RuntimeError {
    RuntimeError::NotOurs { kind, name: name.to_owned() }
}
