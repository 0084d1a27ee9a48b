//! What is, as plain facts for the judges.

use std::collections::BTreeSet;
use std::time::Duration;

use cara_agent::labels::{self, Labels};
use cara_agent::runtime::Object;
use cara_agent::runtime::memory::MemoryHandle;
use cara_checker::Finding;
use cara_checker::converged::{Facts, Placed, Server};
use cara_checker::copies::Copy;
use cara_checker::orphans::{Kind, Left, Wanted};
use cara_checker::volumes::Volume;
use cara_control::{pki, sealing_keys};
use cara_core::State;
use cara_core::model::{Connection, Node, Workload};

use crate::workload::declared_labels;
use crate::world::Cluster;

/// A workload that two copies would destroy: it has volumes.
pub fn is_stateful(workload: &Workload) -> bool {
    workload.is_stateful() || !workload.spec.volumes.is_empty()
}

/// All managed volumes that engines have, with what containers wrote into them.
pub fn volumes(cluster: &Cluster) -> Vec<Volume> {
    let mut volumes = Vec::new();
    for (node, engine) in &cluster.engines {
        for volume in engine.listing().volumes.into_iter().filter(|volume| !is_ephemeral(&volume.labels)) {
            let text = |key: &str| volume.labels.get(key).cloned().unwrap_or_default();
            volumes.push(Volume {
                node: node.clone(),
                workload: text(labels::UID),
                name: text(labels::VOLUME),
                generation: data_generation(&volume.labels),
                lines: engine.volume_lines(&volume.name),
            });
        }
    }
    volumes
}

fn is_ephemeral(labels: &Labels) -> bool {
    labels.get(labels::EPHEMERAL).is_some_and(|value| value == "true")
}

fn data_generation(labels: &Labels) -> u64 {
    labels.get(labels::DATA_GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Was the volume made for a transfer, and never used by a container? Nobody misses it, and it must go once its move is over.
fn is_only_staged(engine: &MemoryHandle, volume: &Object) -> bool {
    let own = format!("{} ", data_generation(&volume.labels));
    volume.labels.contains_key(labels::STAGED) && !engine.volume_lines(&volume.name).iter().any(|l| l.starts_with(&own))
}

/// Every container that ever ran, as the engines remember it.
pub fn copies(cluster: &Cluster, stateful: &BTreeSet<String>) -> Vec<Copy> {
    let mut copies = Vec::new();
    for (node, engine) in cluster.every_engine() {
        for start in engine.starts().into_iter().filter(|start| !start.uid.is_empty()) {
            copies.push(Copy {
                node: node.clone(),
                is_stateful: stateful.contains(&start.uid),
                workload: start.uid,
                service: start.service,
                generation: start.generation,
                from: start.started_at,
                to: start.ended_at,
            });
        }
    }
    copies
}

/// Machines that came and found that what a manifest had said of them before was forgotten.
pub fn forgotten_descriptions(at: Duration, declared: &[String], state: Option<&State>) -> Vec<Finding> {
    let Some(state) = state else { return Vec::new() };
    let labels = declared_labels();
    let is_kept = |node: &Node| {
        !node.schedulable && node.labels.iter().all(|(key, value)| labels[key] == **value) && !node.labels.is_empty()
    };
    let forgotten = declared.iter().filter(|name| !state.node_by_name(name).is_some_and(is_kept));
    forgotten
        .map(|name| {
            let text = format!("{name} was labelled and cordoned before its machine came, and is not so now");
            Finding::new(at, "nodes.described", "", text)
        })
        .collect()
}

/// The cluster as it is now, for the question whether it has converged. `state` is the newest, and `state_of` tells how far a
/// server's own is and what it sums up to.
pub fn converged(cluster: &Cluster, state: Option<&State>, state_of: impl Fn(&str) -> Option<(u64, u64)>) -> Facts {
    let mut facts = Facts::default();
    for name in &cluster.servers {
        let state = cluster.world.is_running(name).then(|| state_of(name)).flatten();
        facts.servers.push(Server { name: name.clone(), state });
    }
    let Some(state) = state else { return facts };
    let is_online =
        |agent: &String| state.node_by_name(agent).is_some_and(|node| node.connection == Connection::Online);
    let history = cluster.shared.history();
    let lost_a_race = |agent: &String| {
        let race = history.races.iter().find(|race| race.nodes.contains(agent));
        race.is_some_and(|race| race.nodes.iter().any(is_online))
    };
    let expected = cluster.agents.iter().filter(|agent| !cluster.excused.contains(*agent) && !lost_a_race(agent));
    facts.offline.extend(expected.filter(|agent| !is_online(agent)).cloned());
    drop(history);
    for workload in state.workloads() {
        match &workload.placement {
            _ if workload.deleting => facts.deleting.push(workload.name.clone()),
            Some(_) if workload.spec.suspended => {}
            None => facts.unplaced.push(workload.name.clone()),
            Some(placement) => {
                let node = state.node(&placement.node).map_or_else(String::new, |node| node.name.clone());
                let (workload, generation) = (workload.uid.to_string(), placement.generation.0);
                facts.wanted.insert(Placed { node, workload, generation });
            }
        }
    }
    facts.moving.extend(state.running_moves().map(|mv| format!("move {} of {} ({})", mv.id, mv.name, mv.phase)));
    facts.moving.extend(state.running_drains().map(|drain| format!("drain {} of {}", drain.id, drain.node_name)));
    if let Some(rotation) = state.cluster().and_then(|cluster| cluster.rotation.as_ref()) {
        let left = state.held_back().into_iter().map(|of| format!("{} {}", of.name, of.lack.as_str()));
        let left = left.collect::<Vec<_>>().join(", ");
        facts.moving.push(format!("the replacement of the CA ({}; {left})", rotation.phase));
    }
    facts.moving.extend(sealing(cluster, state));
    if state.cluster().is_some_and(|cluster| cluster.next_sealing_key.is_some()) {
        let left = state.lacking_next_key().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", ");
        facts.moving.push(format!("the replacement of the sealing key ({left})"));
    }
    for (node, engine) in &cluster.engines {
        for running in engine.running().into_iter().filter(|running| !running.uid.is_empty()) {
            let (workload, generation) = (running.uid, running.generation);
            facts.running.insert(Placed { node: node.clone(), workload, generation });
        }
    }
    facts
}

/// Servers that can't open what is sealed with what is on their disk, or that keep a key which they should have forgotten.
fn sealing(cluster: &Cluster, state: &State) -> Vec<String> {
    let Some(of) = state.cluster() else { return Vec::new() };
    let judge = |name: &String| {
        let read = cluster.server_identity(name)?;
        let key = read.sealing_key_of(&of.sealing_key).and_then(sealing_keys::bytes_of);
        let next_ca = of.rotation.as_ref().map(|next| &next.key_sealed);
        let mut sealed = std::iter::once(&of.ca_key_sealed).chain(next_ca);
        let opens = key.is_some_and(|key| sealed.all(|sealed| pki::unseal(&key, sealed).is_ok()));
        let is_former = |key: &String| of.former_sealing_keys.contains(&sealing_keys::id_of(key));
        match opens {
            false => Some(format!("{name} can't open the CA's key")),
            true if read.sealing_keys().any(is_former) => Some(format!("{name} keeps a former sealing key")),
            true => None,
        }
    };
    let running = cluster.servers.iter().filter(|name| cluster.world.is_running(name));
    running.filter_map(judge).collect()
}

/// What is on the nodes, and what the state wants there. Volumes that shall outlive their workload are wanted.
pub fn left(cluster: &Cluster, state: &State) -> (Vec<Left>, BTreeSet<Wanted>) {
    let mut left = Vec::new();
    let mut wanted = BTreeSet::new();
    for (node, engine) in &cluster.engines {
        let listing = engine.listing();
        let owner = |labels: &Labels| labels.get(labels::UID).cloned().unwrap_or_default();
        let mut add = |kind, name: &str, labels: &Labels| {
            left.push(Left { node: node.clone(), kind, name: name.to_owned(), owner: owner(labels) });
        };
        listing.containers.iter().for_each(|c| add(Kind::Container, &c.name, &c.labels));
        listing.networks.iter().for_each(|n| add(Kind::Network, &n.name, &n.labels));
        listing.volumes.iter().for_each(|v| add(Kind::Volume, &v.name, &v.labels));
        let stays = |volume: &&Object| !is_ephemeral(&volume.labels) && !is_only_staged(engine, volume);
        for volume in listing.volumes.iter().filter(stays) {
            wanted.insert(Wanted { node: node.clone(), kind: Kind::Volume, owner: owner(&volume.labels) });
        }
    }
    for workload in state.workloads() {
        let Some(node) = workload.placement.as_ref().and_then(|placement| state.node(&placement.node)) else {
            continue;
        };
        for kind in [Kind::Container, Kind::Volume, Kind::Network] {
            wanted.insert(Wanted { node: node.name.clone(), kind, owner: workload.uid.to_string() });
        }
    }
    (left, wanted)
}
