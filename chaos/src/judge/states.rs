//! Every server's state keeps the invariants of the domain, and servers that have applied as much have the same state.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_checker::raft::Raft;
use cara_checker::volumes::Lineage;
use cara_checker::{Finding, rules};
use cara_core::{State, invariant};

use super::facts::is_stateful;
use crate::world::Cluster;

/// Follows the states of all servers.
#[derive(Default)]
pub struct States {
    raft: Raft,
    last: BTreeMap<String, State>,
    /// Number of the last write that was looked at, by server: what hasn't changed isn't judged again.
    seen: BTreeMap<String, u64>,
    /// Uids of workloads that two copies would destroy, as far as any state had them.
    pub stateful: BTreeSet<String>,
    names: BTreeMap<u64, String>,
    /// Uids of all workloads that any state had.
    known: BTreeSet<String>,
    /// Uids of the workloads in the newest state.
    wanted: BTreeSet<String>,
    /// Data generations that were in force, by uid, of the newest states in order.
    pub lineage: Lineage,
}

impl States {
    /// Looks at each server's state on disk, if it has changed.
    pub fn look(&mut self, cluster: &Cluster, at: Duration) -> Vec<Finding> {
        let mut findings = Vec::new();
        for server in &cluster.server_machines() {
            let written = cluster.written(server);
            if self.seen.insert(server.clone(), written) == Some(written) {
                continue;
            }
            match cluster.state_of(server) {
                Ok(Some(state)) => findings.extend(self.judge(cluster, at, server, state)),
                Ok(None) => {}
                Err(error) => findings.push(Finding::new(at, rules::CORE_INVARIANTS, server, error)),
            }
        }
        findings
    }

    fn judge(&mut self, cluster: &Cluster, at: Duration, server: &str, state: State) -> Vec<Finding> {
        let before = self.last.get(server);
        if before.is_some_and(|before| before.revision() == state.revision()) {
            return Vec::new();
        }
        let mut broken = invariant::check(&state);
        if let Some(before) = before.filter(|before| before.revision() <= state.revision()) {
            broken.extend(invariant::check_later(before, &state));
        }
        let say =
            |violation: &invariant::Violation| Finding::new(at, rules::CORE_INVARIANTS, server, violation.to_string());
        let mut findings: Vec<Finding> = broken.iter().map(say).collect();
        let (revision, incarnation) = (state.revision().0, cluster.life(server));
        findings.extend(self.raft.applied(at, server, incarnation, revision, state.state_hash()));
        self.stateful.extend(state.workloads().filter(|w| is_stateful(w)).map(|w| w.uid.to_string()));
        let uids: BTreeSet<String> = state.workloads().map(|w| w.uid.to_string()).collect();
        self.known.extend(uids.iter().cloned());
        if self.newest().is_none_or(|newest| newest.revision() <= state.revision()) {
            self.wanted = uids;
            self.follow_data(&state);
        }
        self.names.extend(state.servers().map(|server| (server.id.0, server.name.clone())));
        self.last.insert(server.to_owned(), state);
        findings
    }

    /// Which data generation of each workload is in force. What an operator gives up ends a lineage.
    fn follow_data(&mut self, state: &State) {
        for workload in state.workloads() {
            let known = self.lineage.entry(workload.uid.to_string()).or_default();
            let now = workload.data_generation.0;
            if known.last() != Some(&now) {
                if workload.fresh_data {
                    known.clear();
                }
                known.push(now);
            }
        }
    }

    /// The server's data were wiped or replaced.
    pub fn forget(&mut self, server: &str) {
        self.raft.forget(server);
        self.last.remove(server);
        self.seen.remove(server);
    }

    /// A workload leaves the state only when its node has proved that nothing of it runs any more.
    pub fn deleted_but_running(&self, cluster: &Cluster, at: Duration) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (node, engine) in &cluster.engines {
            let gone = |uid: &str| self.known.contains(uid) && !self.wanted.contains(uid);
            for running in engine.running().into_iter().filter(|running| gone(&running.uid)) {
                let text = format!("{} runs, and the state has forgotten it", running.uid);
                findings.push(Finding::new(at, rules::COPIES_ONE, node, text));
            }
        }
        findings
    }

    /// Names of all servers that any state had, by id.
    pub fn server_names(&self) -> &BTreeMap<u64, String> {
        &self.names
    }

    /// The newest state seen of any server.
    pub fn newest(&self) -> Option<&State> {
        self.last.values().max_by_key(|state| state.revision())
    }
}
