//! No node is declared offline while its heartbeats arrive, nor when it has just come back.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Finding, rules};

/// A node was heard by a server: a heartbeat of it arrived, or its call for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOfLife {
    /// When it arrived.
    pub at: Duration,
    /// From which node.
    pub node: String,
    /// At which server.
    pub server: String,
}

/// A server began to lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// When it was elected.
    pub from: Duration,
    /// The server.
    pub server: String,
    /// The term.
    pub term: u64,
}

/// A leader decided that a node is offline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// When it decided; when the decision was applied is too late, for a heartbeat may have come in between.
    pub at: Duration,
    /// The node.
    pub node: String,
    /// The leader's term.
    pub term: u64,
}

/// What became of the declarations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// Those that were false.
    pub findings: Vec<Finding>,
    /// Those that can't be judged, as nobody was seen to lead their term: reasons for the verdict *unknown*.
    pub unknown: Vec<String>,
}

/// Judges each declaration. `timeout` is the silence after which a node is offline; make it shorter by what the
/// leaders' clocks may run fast.
pub fn check(timeout: Duration, signs: &[SignOfLife], led: &[Leadership], declared: &[Declared]) -> Judged {
    let mut arrived: BTreeMap<(&str, &str), Vec<Duration>> = BTreeMap::new();
    for sign in signs {
        arrived.entry((&sign.node, &sign.server)).or_default().push(sign.at);
    }
    arrived.values_mut().for_each(|times| times.sort_unstable());
    let mut judged = Judged::default();
    for declared in declared {
        let Declared { at, node, term } = declared;
        let Some(leader) = led.iter().find(|leader| leader.term == *term) else {
            judged.unknown.push(format!("{node} was declared offline in term {term}, which nobody was seen to lead"));
            continue;
        };
        let times = arrived.get(&(node.as_str(), leader.server.as_str())).map_or(&[][..], Vec::as_slice);
        // In the very moment of the decision it can't be told which was first.
        let before = times.partition_point(|time| time < at);
        let last = before.checked_sub(1).map(|i| times[i]);
        let ago = |then: Duration| at.saturating_sub(then);
        let text = match last {
            Some(last) if ago(last) < timeout => {
                format!("{node} was declared offline {:.3} s after it was heard", ago(last).as_secs_f64())
            }
            _ if ago(leader.from) < timeout => {
                let after = ago(leader.from).as_secs_f64();
                format!("{node} was declared offline {after:.3} s after the election of term {term}")
            }
            _ => continue,
        };
        let text = format!("{text}; the timeout is {:.3} s", timeout.as_secs_f64());
        judged.findings.push(Finding::new(*at, rules::OFFLINE_HONEST, &leader.server, text));
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn beat(at: u64, server: &str) -> SignOfLife {
        SignOfLife { at: Duration::from_secs(at), node: "n1".into(), server: server.into() }
    }

    fn judge(beats: &[SignOfLife], at: u64, term: u64) -> Judged {
        let led = [
            Leadership { from: Duration::ZERO, server: "s1".into(), term: 1 },
            Leadership { from: Duration::from_secs(50), server: "s2".into(), term: 2 },
        ];
        let declared = Declared { at: Duration::from_secs(at), node: "n1".into(), term };
        check(TIMEOUT, beats, &led, &[declared])
    }

    #[test]
    fn a_silent_node_is_declared_offline_rightly() {
        assert_eq!(judge(&[beat(20, "s1"), beat(31, "s1")], 30, 1), Judged::default());
        assert_eq!(judge(&[beat(58, "s1"), beat(45, "s2")], 60, 2), Judged::default());
        assert_eq!(judge(&[], 11, 1), Judged::default());
    }

    #[test]
    fn a_node_whose_heartbeats_arrive_at_the_leader_is_not() {
        let judged = judge(&[beat(10, "s1"), beat(21, "s1"), beat(40, "s1")], 30, 1);
        assert_eq!(
            judged.findings[0].text,
            "n1 was declared offline 9.000 s after it was heard; the timeout is 10.000 s"
        );
        assert_eq!(judged.findings[0].host, "s1");
    }

    #[test]
    fn what_arrives_in_the_moment_of_the_decision_came_too_late() {
        assert_eq!(judge(&[beat(18, "s1"), beat(30, "s1")], 30, 1), Judged::default());
    }

    #[test]
    fn a_new_leader_waits_a_full_timeout() {
        let judged = judge(&[beat(20, "s1")], 55, 2);
        assert!(judged.findings[0].text.contains("5.000 s after the election of term 2"));
    }

    #[test]
    fn a_term_that_nobody_led_is_not_judged() {
        let judged = judge(&[], 55, 9);
        assert_eq!((judged.findings.len(), judged.unknown.len()), (0, 1));
    }
}
