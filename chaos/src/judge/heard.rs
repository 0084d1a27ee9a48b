//! Heartbeats and calls for a session that arrived, and nodes that were declared offline.

use std::collections::BTreeMap;
use std::time::Duration;

use cara_checker::offline::{self, Declared, Judged, Leadership, SignOfLife};
use cara_checker::{Finding, rules};
use cara_netsim::Reached;

use crate::world::HEARTBEAT;

/// Silent for this many intervals is offline: the servers' default.
const INTERVALS: u32 = 3;
/// A leader decides in passes, and its clock may run fast: so much earlier is no lie.
const SLACK: Duration = Duration::from_millis(300);
/// The decision that a node is offline is the last proposal of this command before it is committed.
const DECISION: &str = "TransitionNode";

/// What was reached so far.
#[derive(Debug, Default)]
pub struct Heard {
    signs: Vec<SignOfLife>,
    led: Vec<Leadership>,
    declared: Vec<Declared>,
    /// When each server last proposed a change of a node's connection.
    decided: BTreeMap<String, Duration>,
    /// When a node was declared offline, and in which term.
    offline_at: Vec<(Duration, u64)>,
}

impl Heard {
    /// A chaos point was reached.
    pub fn reached(&mut self, at: Duration, reached: &Reached) {
        let Reached { host, point, .. } = reached;
        let of = |key: &str| reached.word(key).unwrap_or_default().to_owned();
        let term = || of("term").parse().unwrap_or_default();
        match *point {
            "heartbeat.received" | "session.asked" => {
                self.signs.push(SignOfLife { at, node: of("node"), server: host.clone() });
            }
            "raft.elected" => self.led.push(Leadership { from: at, server: host.clone(), term: term() }),
            "reconcile.write" if of("command") == DECISION => {
                self.decided.insert(host.clone(), at);
            }
            "node.offline" => {
                self.offline_at.push((at, term()));
                let at = self.decided.get(host).copied().unwrap_or(at);
                self.declared.push(Declared { at, node: of("node"), term: term() });
            }
            _ => {}
        }
    }

    /// Was every declaration true, and did the leader suspect itself when most nodes fell silent at once?
    pub fn judge(&self, nodes: usize) -> Judged {
        let mut judged = offline::check(HEARTBEAT * INTERVALS - SLACK, &self.signs, &self.led, &self.declared);
        judged.findings.extend(self.too_many_at_once(nodes));
        judged
    }

    /// A leader that hears nothing of most nodes is itself the likelier fault: it declares one at a time.
    fn too_many_at_once(&self, nodes: usize) -> Option<Finding> {
        const AT_ONCE: Duration = Duration::from_secs(1);
        let most = (nodes / 2 + 1).max(3);
        let burst = self.offline_at.iter().find(|(from, term)| {
            let together = |(at, of): &&(Duration, u64)| of == term && *at >= *from && *at < *from + AT_ONCE;
            self.offline_at.iter().filter(together).count() >= most
        });
        burst.map(|(at, term)| {
            let text = format!("most of {nodes} nodes were declared offline within a second, in term {term}");
            Finding::new(*at, rules::OFFLINE_HONEST, "", text)
        })
    }
}
