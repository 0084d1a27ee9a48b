//! After all faults are lifted: does the cluster reach what was asked for, everywhere, by itself?

use std::collections::BTreeSet;

use cara_core::State;
use cara_core::model::Connection;

use crate::world::Cluster;

/// What still differs from what was asked for; empty once the cluster has converged.
pub fn check(cluster: &Cluster) -> Vec<String> {
    let mut open = Vec::new();
    let mut states = Vec::new();
    for server in &cluster.servers {
        if !cluster.world.is_running(server) {
            open.push(format!("{server} does not run"));
            continue;
        }
        match cluster.state_of(server) {
            Ok(Some(state)) => states.push((server, state)),
            Ok(None) => open.push(format!("{server} has no state")),
            Err(error) => open.push(error),
        }
    }
    let Some((first, state)) = states.first() else { return open };
    for (server, other) in &states[1..] {
        if other.state_hash() != state.state_hash() {
            open.push(format!(
                "{server} (revision {}) and {first} ({}) differ",
                other.revision().0,
                state.revision().0
            ));
        }
    }
    open.extend(nodes(cluster, state));
    open.extend(workloads(state));
    for (agent, engine) in cluster.agents.iter().zip(&cluster.engines) {
        open.extend(running(state, agent, &engine.running()));
    }
    open
}

fn nodes(cluster: &Cluster, state: &State) -> Vec<String> {
    let is_online = |agent: &&String| state.node_by_name(agent).is_some_and(|n| n.connection == Connection::Online);
    cluster.agents.iter().filter(|agent| !is_online(agent)).map(|agent| format!("{agent} is not online")).collect()
}

fn workloads(state: &State) -> Vec<String> {
    let mut open = Vec::new();
    for workload in state.workloads() {
        if workload.deleting {
            open.push(format!("{} is still being deleted", workload.name));
        } else if workload.placement.is_none() {
            open.push(format!("{} is placed nowhere", workload.name));
        }
    }
    open
}

fn running(state: &State, agent: &str, running: &[cara_agent::runtime::memory::Running]) -> Vec<String> {
    let Some(node) = state.node_by_name(agent) else { return Vec::new() };
    let wanted: BTreeSet<(String, u64)> = state
        .placed_on(&node.id)
        .filter(|workload| !workload.deleting)
        .filter_map(|workload| Some((workload.uid.to_string(), workload.placement.as_ref()?.generation.0)))
        .collect();
    let found: BTreeSet<(String, u64)> = running.iter().map(|r| (r.uid.clone(), r.generation)).collect();
    let missing = wanted.difference(&found).map(|(uid, generation)| format!("{agent} does not run {uid}/{generation}"));
    let extra = found.difference(&wanted).map(|(uid, generation)| format!("{agent} still runs {uid}/{generation}"));
    missing.chain(extra).collect()
}
