//! Agents that ask for a session of a node which another process has: what the leader keeps until it can tell them apart.
//! The rule is `cara_core::instance`; all of this is soft, and a new leader starts without.
//!
//! Invariant: an answer counts only for the question that was put after the newcomer's first word.

use std::collections::BTreeMap;

use cara_core::NodeId;

/// Newcomers of one node at a time. More than the machine itself and a few copies of it is an attack; they wait unseen.
const NEWCOMERS_MAX: usize = 4;

/// A newcomer.
#[derive(Debug)]
struct Claim {
    instance: String,
    /// When it asked last.
    asked_ms: u64,
    /// What the holder must answer.
    number: u64,
    answered: bool,
}

/// Who asks, and who had what.
#[derive(Debug, Default)]
pub struct Claims {
    /// In the order in which they came.
    claims: BTreeMap<NodeId, Vec<Claim>>,
    /// The newest epoch that was heard to speak.
    spoke: BTreeMap<NodeId, u64>,
    /// When the last stream ended, on this server's monotonic clock in ms.
    left: BTreeMap<NodeId, u64>,
    /// When this server began to lead.
    began_ms: u64,
    questions: u64,
}

/// What is known of a node's last session, for [`cara_core::instance::judge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The newest epoch that was heard to speak; 0 = none.
    pub spoke: u64,
    /// When the stream ended, or this server began to lead.
    pub left_ms: u64,
    /// When this server began to lead.
    pub began_ms: u64,
    /// The holder has answered.
    pub answered: bool,
    /// The question for the holder; 0 = it is not asked about this newcomer.
    pub number: u64,
    /// No other newcomer came before and is still asking.
    pub is_first: bool,
}

impl Claims {
    /// This server begins to lead.
    pub fn begin(&mut self, now_ms: u64) {
        self.began_ms = now_ms;
    }

    /// A newcomer asks, for the first time or again. One that has not asked for `patience_ms` has given up.
    pub fn ask(&mut self, node: &NodeId, instance: &str, now_ms: u64, patience_ms: u64) -> Known {
        let claims = self.claims.entry(node.clone()).or_default();
        claims.retain(|claim| claim.instance == instance || now_ms.saturating_sub(claim.asked_ms) < patience_ms);
        let known = claims.iter().position(|claim| claim.instance == instance);
        if known.is_none() && claims.len() < NEWCOMERS_MAX {
            self.questions += 1;
            let (instance, number) = (instance.to_owned(), self.questions);
            claims.push(Claim { instance, asked_ms: now_ms, number, answered: false });
        }
        let place = known.or_else(|| claims.iter().position(|claim| claim.instance == instance));
        let (answered, number) = match place.and_then(|place| claims.get_mut(place)) {
            Some(claim) => {
                claim.asked_ms = now_ms;
                (claim.answered, claim.number)
            }
            None => (false, 0),
        };
        let left_ms = self.left.get(node).copied().unwrap_or_default().max(self.began_ms);
        let spoke = self.spoke.get(node).copied().unwrap_or_default();
        Known { spoke, left_ms, began_ms: self.began_ms, answered, number, is_first: place == Some(0) }
    }

    /// The holder has answered a question.
    pub fn present(&mut self, node: &NodeId, number: u64) {
        let asked = self.claims.get_mut(node).and_then(|claims| claims.iter_mut().find(|claim| claim.number == number));
        if let Some(claim) = asked {
            claim.answered = true;
        }
    }

    /// Somebody has the session now. Whoever else asks is asked about anew.
    pub fn opened(&mut self, node: &NodeId) {
        self.claims.remove(node);
    }

    /// A session was heard.
    pub fn spoke(&mut self, node: &NodeId, epoch: u64) {
        let newest = self.spoke.entry(node.clone()).or_default();
        *newest = epoch.max(*newest);
    }

    /// The stream of the node's session has ended.
    pub fn left(&mut self, node: &NodeId, now_ms: u64) {
        self.left.insert(node.clone(), now_ms);
    }

    /// Forgets nodes that are gone.
    pub fn retain(&mut self, is_there: impl Fn(&NodeId) -> bool) {
        self.claims.retain(|node, _| is_there(node));
        self.spoke.retain(|node, _| is_there(node));
        self.left.retain(|node, _| is_there(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: u64 = 1_000;

    #[test]
    fn an_answer_counts_for_the_newcomer_that_was_asked_about_and_for_no_other() {
        let (mut claims, node) = (Claims::default(), NodeId::from("nd_1"));
        let ask = |claims: &mut Claims, instance| claims.ask(&node, instance, 0, PATIENCE);
        let (first, other) = (ask(&mut claims, "b"), ask(&mut claims, "c"));
        assert_ne!(first.number, other.number);
        claims.present(&node, first.number);
        assert!(ask(&mut claims, "b").answered && !ask(&mut claims, "c").answered);
        claims.present(&node, other.number);
        claims.opened(&node);
        assert!(!ask(&mut claims, "c").answered, "the holder is another one now");
    }

    #[test]
    fn the_first_that_asks_is_first_for_as_long_as_it_goes_on_asking() {
        let (mut claims, node) = (Claims::default(), NodeId::from("nd_1"));
        let mut is_first = |instance, now_ms| claims.ask(&node, instance, now_ms, PATIENCE).is_first;
        assert!(is_first("b", 0) && !is_first("c", 10) && is_first("b", 900));
        assert!(!is_first("c", 1_800), "the first asked 900 ms ago");
        assert!(is_first("c", 1_900), "it has given up");
        assert!(!is_first("b", 1_950));
    }

    #[test]
    fn a_crowd_of_newcomers_is_not_kept() {
        let (mut claims, node) = (Claims::default(), NodeId::from("nd_1"));
        let known: Vec<_> = (0..9).map(|i| claims.ask(&node, &format!("i{i}"), 0, PATIENCE)).collect();
        assert!(known.iter().filter(|known| known.is_first).count() == 1 && known[8].number == 0);
        assert_eq!(claims.claims[&node].len(), NEWCOMERS_MAX);
    }

    #[test]
    fn what_was_before_this_server_led_does_not_count() {
        let (mut claims, node) = (Claims::default(), NodeId::from("nd_1"));
        claims.begin(500);
        assert_eq!(claims.ask(&node, "b", 600, PATIENCE).left_ms, 500);
        claims.left(&node, 700);
        claims.spoke(&node, 3);
        claims.spoke(&node, 2);
        let known = claims.ask(&node, "b", 800, PATIENCE);
        assert_eq!((known.left_ms, known.began_ms, known.spoke), (700, 500, 3));
    }

    #[test]
    fn a_node_that_is_gone_is_forgotten() {
        let (mut claims, [node, gone]) = (Claims::default(), ["nd_1", "nd_2"].map(NodeId::from));
        for node in [&node, &gone] {
            claims.spoke(node, 3);
            claims.left(node, 700);
            claims.ask(node, "b", 800, PATIENCE);
        }
        claims.retain(|known| *known == node);
        assert_eq!([claims.spoke.len(), claims.left.len(), claims.claims.len()], [1, 1, 1]);
        assert_eq!(claims.ask(&node, "b", 800, PATIENCE).left_ms, 700);
    }
}
