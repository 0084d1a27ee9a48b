//! After all faults are lifted: does the cluster reach what was asked for, everywhere, by itself?

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{Finding, rules};

/// What a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// The revision and the hash of its state; none when it does not run or has no state.
    pub state: Option<(u64, u64)>,
}

/// A placement: this generation of a workload on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// The node.
    pub node: String,
    /// The workload.
    pub workload: String,
    /// The generation.
    pub generation: u64,
}

/// The cluster at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// All servers that should run.
    pub servers: Vec<Server>,
    /// Nodes that should be online and are not.
    pub offline: Vec<String>,
    /// Workloads that are placed nowhere.
    pub unplaced: Vec<String>,
    /// Workloads that are still being deleted.
    pub deleting: Vec<String>,
    /// Moves and drains that are still running.
    pub moving: Vec<String>,
    /// What the state wants to run.
    pub wanted: BTreeSet<Placed>,
    /// What the engines run.
    pub running: BTreeSet<Placed>,
}

/// What still differs from what was asked for; empty once the cluster has converged.
pub fn open(facts: &Facts) -> Vec<String> {
    let mut open = Vec::new();
    let mut first: Option<(&str, (u64, u64))> = None;
    for server in &facts.servers {
        match (server.state, first) {
            (None, _) => open.push(format!("{} does not run or has no state", server.name)),
            (Some(state), None) => first = Some((&server.name, state)),
            (Some(state), Some((name, other))) if state != other => {
                open.push(format!("{} (revision {}) and {name} ({}) differ", server.name, state.0, other.0));
            }
            (Some(_), Some(_)) => {}
        }
    }
    open.extend(facts.offline.iter().map(|node| format!("{node} is not online")));
    open.extend(facts.unplaced.iter().map(|workload| format!("{workload} is placed nowhere")));
    open.extend(facts.deleting.iter().map(|workload| format!("{workload} is still being deleted")));
    open.extend(facts.moving.iter().map(|what| format!("{what} is still running")));
    let missing = facts.wanted.difference(&facts.running);
    open.extend(missing.map(|p| format!("{} does not run {}/{}", p.node, p.workload, p.generation)));
    let extra = facts.running.difference(&facts.wanted);
    open.extend(extra.map(|p| format!("{} still runs {}/{}", p.node, p.workload, p.generation)));
    open
}

/// A finding for each thing that is still open when the time to converge is over.
pub fn check(at: Duration, bound: Duration, facts: &Facts) -> Vec<Finding> {
    let texts = open(facts).into_iter();
    let late = |text| format!("{text}, {:.0} s after the last fault was lifted", bound.as_secs_f64());
    texts.map(|text| Finding::new(at, rules::CONVERGED, "", late(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(node: &str) -> Placed {
        Placed { node: node.into(), workload: "u".into(), generation: 2 }
    }

    fn good() -> Facts {
        let server = |name: &str| Server { name: name.into(), state: Some((7, 77)) };
        Facts {
            servers: vec![server("s1"), server("s2")],
            wanted: [placed("n1")].into(),
            running: [placed("n1")].into(),
            ..Facts::default()
        }
    }

    #[test]
    fn a_cluster_that_runs_what_is_wanted_has_converged() {
        assert_eq!(open(&good()), Vec::<String>::new());
        assert_eq!(check(Duration::ZERO, Duration::ZERO, &good()), Vec::new());
    }

    #[test]
    fn each_thing_that_differs_is_told() {
        let mut facts = good();
        facts.servers[1].state = Some((7, 78));
        facts.servers.push(Server { name: "s3".into(), state: None });
        facts.offline.push("n9".into());
        facts.unplaced.push("w1".into());
        facts.deleting.push("w2".into());
        facts.running = [placed("n2")].into();
        let open = open(&facts);
        assert_eq!(open.len(), 7, "{open:?}");
        for part in
            ["s2 (revision 7) and s1", "s3 does not run", "n9", "w1", "w2", "n1 does not run u/2", "n2 still runs"]
        {
            assert!(open.iter().any(|text| text.contains(part)), "{part} not in {open:?}");
        }
        let findings = check(Duration::from_secs(99), Duration::from_secs(20), &facts);
        assert!(findings[0].text.ends_with("20 s after the last fault was lifted"));
    }
}
