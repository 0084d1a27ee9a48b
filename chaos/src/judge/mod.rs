//! Feeds the checkers: looks at what is on disk, what ran, what was reached and what clients were told, and hands it to
//! the judges of `cara-checker` as plain facts.
//!
//! A judge only reads. It judges by what ran and by what clients were told, not by what a server believes.

pub mod facts;
mod heard;
mod history;
mod pairs;
mod raft;
mod replay;
mod tokens;
pub mod versions;

use std::collections::BTreeMap;
use std::time::Duration;

use cara_agent::ledger::Ledger;
use cara_checker::converged::Facts;
use cara_checker::copies::Told;
use cara_checker::fence::{Fence, Fences};
use cara_checker::linear::Key;
use cara_checker::{Finding, Judgement, rules};
use cara_core::State;
use cara_netsim::Reached;

use crate::world::Cluster;
use heard::Heard;
use raft::RaftLogs;
use replay::Replay;
use tokens::Tokens;

/// More findings of one run than these teach nothing.
const FINDINGS_MAX: usize = 20;

/// Follows a run.
#[derive(Default)]
pub struct Judge {
    /// What is wrong, and what can't be said.
    pub judgement: Judgement,
    replay: Replay,
    logs: RaftLogs,
    fences: Fences,
    heard: Heard,
    tokens: Tokens,
    told: Vec<Told>,
    /// Agents that said since the last look that they saved their ledger, and with which fence.
    ledgers: BTreeMap<String, Fence>,
    /// How each register's history was judged, for the report.
    pub keys: Vec<Key>,
    /// Watchers must have been told of all up to this revision; none as long as nobody has waited for that.
    pub must_be_told: Option<u64>,
}

impl Judge {
    /// Is something wrong already?
    pub fn has_findings(&self) -> bool {
        !self.judgement.findings.is_empty()
    }

    /// Notes something that is wrong.
    pub fn find(&mut self, at: Duration, rule: &str, host: &str, text: impl Into<String>) {
        self.add([Finding::new(at, rule, host, text)]);
    }

    /// Notes what checkers found.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.judgement.found(findings);
        self.judgement.findings.truncate(FINDINGS_MAX);
    }

    /// The last fence seen of a node.
    pub fn fence_of(&self, node: &str) -> Fence {
        self.fences.of(node)
    }

    /// A machine's data were wiped or replaced: what it once knew no longer binds it.
    pub fn forget(&mut self, host: &str) {
        self.logs.forget(host);
        self.fences.forget(host);
        // Orders that an older ledger held are gone with it.
        self.told.retain(|told| told.node != host);
    }

    /// A chaos point was reached.
    pub fn reached(&mut self, at: Duration, reached: &Reached) {
        if reached.point == "ledger.saved" {
            let number = |key: &str| reached.word(key).and_then(|text| text.parse().ok()).unwrap_or_default();
            let fence =
                Fence { incarnation: number("incarnation"), term: number("term"), revision: number("revision") };
            self.ledgers.insert(reached.host.clone(), fence);
        }
        if reached.point == "plan.begun" {
            // From here on it acts on this generation; what it began before under an older one may still come through.
            let of = |key: &str| reached.word(key).unwrap_or_default().to_owned();
            let (node, workload) = (reached.host.clone(), of("workload"));
            let generation = of("generation").parse().unwrap_or_default();
            self.told.push(Told { at, node, workload, generation });
        }
        self.logs.reached(reached);
        self.heard.reached(at, reached);
        self.tokens.reached(at, reached);
    }

    /// Looks at everything that has changed on disk.
    pub fn look(&mut self, cluster: &Cluster) {
        let at = cluster.world.now();
        let findings = self.logs.look(cluster, at, &mut self.replay);
        self.replay.newest().into_iter().for_each(|state| self.tokens.look(state));
        self.add(findings);
        for (agent, said) in std::mem::take(&mut self.ledgers) {
            self.look_at_ledger(cluster, at, &agent, said);
        }
        let revived = self.replay.deleted_but_running(cluster, at);
        self.add(revived);
    }

    fn look_at_ledger(&mut self, cluster: &Cluster, at: Duration, agent: &str, said: Fence) {
        let ledger = match Ledger::open(cluster.world.files(agent), Cluster::ledger_file()) {
            Ok(ledger) => ledger,
            Err(error) => return self.find(at, rules::FENCE, agent, error.to_string()),
        };
        let fence = ledger.fence();
        let fence = Fence { incarnation: fence.incarnation, term: fence.term, revision: fence.revision };
        if fence < said {
            self.find(at, rules::FENCE, agent, format!("it said that {said} is saved, and its ledger holds {fence}"));
        }
        let findings = self.fences.advance(at, agent, fence);
        self.add(findings);
    }

    /// The cluster as it is now, for the question whether it has converged, and the state that it has.
    pub fn converged(&mut self, cluster: &Cluster) -> (Facts, Option<&State>) {
        self.look(cluster);
        let state = self.replay.newest();
        (facts::converged(cluster, state, |server| self.logs.state_of(server)), state)
    }

    /// The newest state that any server has applied; none before there is any.
    pub fn newest(&self) -> Option<&State> {
        self.replay.newest()
    }

    /// The judges that need the whole history. Call it once, at the end.
    pub fn whole_history(&mut self, cluster: &Cluster) {
        let at = cluster.world.now();
        let history = cluster.shared.history().clone();
        self.keys = cara_checker::linear::check(&history.calls, cara_checker::linear::BUDGET);
        let linear: Vec<_> = self.keys.iter().filter_map(|key| key.finding(&history.calls)).collect();
        self.add(linear);
        self.judgement.unsure(self.keys.iter().filter_map(Key::unknown));
        let copies = cara_checker::copies::check(&facts::copies(cluster, &self.replay.stateful), &self.told);
        self.add(copies);
        let volumes = cara_checker::volumes::check(at, &facts::volumes(cluster), &self.replay.lineage);
        self.add(volumes);
        let offline = self.heard.judge(cluster.agents.len());
        self.add(offline.findings);
        self.judgement.unsure(offline.unknown);
        self.add(self.tokens.judge());
        let rest = history::check(&history, self.replay.newest(), at, self.must_be_told);
        self.add(rest);
        self.judgement.sort();
    }
}
