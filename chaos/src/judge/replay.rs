//! The log, applied once more: every entry that some server has applied is applied here too, in order, and the invariants
//! of the domain are checked after each. What servers have on disk is then compared with it by a number.
//!
//! One pass for the whole cluster, and it sees each single step, which no look at a disk now and then can.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_checker::raft::Raft;
use cara_checker::volumes::Lineage;
use cara_checker::{Finding, rules};
use cara_core::model::Workload;
use cara_core::{State, codec, invariant};
use raft_store::Position;

use super::facts::is_stateful;
use super::pairs::Pairs;
use super::versions;
use crate::world::Cluster;

/// Under this name the replayed log takes part in the comparison of states.
const LOG: &str = "the log";

/// Follows the log of a cluster.
#[derive(Default)]
pub struct Replay {
    /// What stands in some log and isn't applied yet, by index and term; none for an entry of replication's own.
    commands: BTreeMap<(u64, u64), Option<Vec<u8>>>,
    /// The index that comes next.
    next: u64,
    state: State,
    /// The state one entry before. Applying each entry to both is cheaper than a copy.
    before: State,
    pairs: Pairs,
    names: BTreeMap<u64, String>,
    /// Uids of workloads that two copies would destroy, as far as any state had them.
    pub stateful: BTreeSet<String>,
    /// The last grant that any state had of a workload, by uid.
    known: BTreeMap<String, u64>,
    /// Uids of the workloads in the newest state.
    wanted: BTreeSet<String>,
    /// Data generations that were in force, by uid, in order.
    pub lineage: Lineage,
}

impl Replay {
    /// A server's log has an entry.
    pub fn written(&mut self, at: Position, command: Option<Vec<u8>>) {
        if at.index >= self.next {
            self.commands.insert((at.index, at.term), command);
        }
    }

    /// Applies what comes next, up to an index that `server` has applied. `term_of` tells the term of the entry at an index
    /// in a log of a server that has applied it, where one is left.
    pub fn advance(
        &mut self,
        cluster: &Cluster,
        at: Duration,
        (server, upto): (&str, u64),
        term_of: impl Fn(u64) -> Option<u64>,
        raft: &mut Raft,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        while self.next <= upto {
            let index = self.next;
            // Where no log has it any more, the newest is the one that was committed: leaders of later terms have it.
            let newest = || self.commands.range((index, 0)..=(index, u64::MAX)).next_back().map(|(at, _)| at.1);
            let Some(command) = term_of(index).or_else(newest).and_then(|term| self.commands.remove(&(index, term)))
            else {
                return self.start_from(cluster, at, server, upto, findings);
            };
            self.next += 1;
            if let Some(command) = command {
                findings.extend(self.apply(cluster, at, index, &command));
            }
            if let Some(sum) = self.pairs.sum() {
                findings.extend(raft.applied(at, LOG, 0, index, sum));
            }
        }
        self.commands = self.commands.split_off(&(self.next, 0));
        findings
    }

    fn apply(&mut self, cluster: &Cluster, at: Duration, index: u64, command: &[u8]) -> Vec<Finding> {
        let entry = match codec::decode_entry(command) {
            Ok(entry) => entry,
            Err(error) => return vec![Finding::new(at, rules::CORE_INVARIANTS, "", format!("entry {index}: {error}"))],
        };
        let applied = self.state.apply_entry(index, entry.clone());
        if applied.writes.is_empty() {
            return Vec::new();
        }
        for (key, value) in &applied.writes {
            self.pairs.set(key, value.as_deref());
        }
        let mut broken = invariant::check(&self.state);
        broken.extend(invariant::check_step(&self.before, &self.state));
        let say = |violation| Finding::new(at, rules::CORE_INVARIANTS, "", format!("after entry {index}: {violation}"));
        let mut findings: Vec<Finding> = broken.into_iter().map(say).collect();
        findings.extend(versions::check(at, index, &entry.command, &cluster.old_servers()));
        self.before.apply_entry(index, entry);
        self.note();
        findings
    }

    /// Begins anew with what a server has on disk, where entries were never seen.
    fn start_from(
        &mut self,
        cluster: &Cluster,
        at: Duration,
        server: &str,
        applied: u64,
        mut findings: Vec<Finding>,
    ) -> Vec<Finding> {
        match cluster.state_of(server) {
            Ok(state) => {
                self.state = state.unwrap_or_default();
                self.before = self.state.clone();
                self.pairs = Pairs::default();
                self.state.dump().iter().for_each(|(key, value)| self.pairs.set(key, Some(value)));
                self.next = applied + 1;
                self.commands = self.commands.split_off(&(self.next, 0));
                self.note();
            }
            Err(error) => findings.push(Finding::new(at, rules::CORE_INVARIANTS, server, error)),
        }
        findings
    }

    /// Keeps what later judges need of each state on the way.
    fn note(&mut self) {
        self.stateful.extend(self.state.workloads().filter(|w| is_stateful(w)).map(|w| w.uid.to_string()));
        self.wanted = self.state.workloads().map(|w| w.uid.to_string()).collect();
        let granted = |w: &Workload| w.placement.as_ref().map(|placement| (w.uid.to_string(), placement.generation.0));
        self.known.extend(self.state.workloads().filter_map(granted));
        self.names.extend(self.state.servers().map(|server| (server.id.0, server.name.clone())));
        for workload in self.state.workloads() {
            let known = self.lineage.entry(workload.uid.to_string()).or_default();
            let now = workload.data_generation.0;
            if known.last() != Some(&now) {
                // What an operator gives up ends a lineage.
                if workload.fresh_data {
                    known.clear();
                }
                known.push(now);
            }
        }
    }

    /// A workload leaves the state only when its node has proved that nothing of it runs any more. Older copies of what has no
    /// state may be left on a node that is away: it removes them when it is back, which the end of a run looks at.
    pub fn deleted_but_running(&self, cluster: &Cluster, at: Duration) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (node, engine) in &cluster.engines {
            let must_be_gone = |uid: &str, generation: u64| {
                let last = self.known.get(uid).filter(|_| !self.wanted.contains(uid));
                last.is_some_and(|last| generation >= *last || self.stateful.contains(uid))
            };
            let running = engine.running().into_iter();
            for running in running.filter(|running| must_be_gone(&running.uid, running.generation)) {
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

    /// The newest state; none before there is any.
    pub fn newest(&self) -> Option<&State> {
        self.pairs.sum().map(|_| &self.state)
    }
}
