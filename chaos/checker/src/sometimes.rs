//! Things that a run must show at least once to be worth anything: a run in which no leader ever changed says nothing
//! about changes of leader.

use std::collections::BTreeMap;

/// An event that a scenario wants to see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    /// The event's name.
    pub event: String,
    /// The id of the fault during which it must happen; none: at any time.
    pub during: Option<String>,
    /// How often at least.
    pub at_least: u64,
}

/// Counts events, in all and during each fault. Call it in the order of time.
#[derive(Debug, Clone, Default)]
pub struct Sometimes {
    wants: Vec<Want>,
    counts: BTreeMap<String, u64>,
    /// Times each wanted event has happened during its fault.
    during: Vec<u64>,
    /// Faults that are on, with how many overlap under one id.
    active: BTreeMap<String, u64>,
    /// Faults that were ever on.
    began: BTreeMap<String, u64>,
}

impl Sometimes {
    /// Nothing seen yet.
    pub fn new(wants: Vec<Want>) -> Self {
        Self { during: vec![0; wants.len()], wants, ..Self::default() }
    }

    /// The event happened.
    pub fn seen(&mut self, event: &str) {
        *self.counts.entry(event.to_owned()).or_default() += 1;
        for (want, count) in self.wants.iter().zip(&mut self.during) {
            let fault = want.during.as_ref();
            if want.event == event && fault.is_none_or(|fault| self.active.contains_key(fault)) {
                *count += 1;
            }
        }
    }

    /// A fault with this id begins. It may be on several times at once.
    pub fn fault_began(&mut self, id: &str) {
        *self.active.entry(id.to_owned()).or_default() += 1;
        *self.began.entry(id.to_owned()).or_default() += 1;
    }

    /// A fault with this id ends.
    pub fn fault_ended(&mut self, id: &str) {
        if let Some(count) = self.active.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                self.active.remove(id);
            }
        }
    }

    /// How often each event has happened.
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// What has not happened often enough, each a reason for the verdict *unknown*.
    pub fn unmet(&self) -> Vec<String> {
        let unmet = self.wants.iter().zip(&self.during).filter(|(want, count)| **count < want.at_least);
        unmet.map(|(want, count)| self.told(want, *count)).collect()
    }

    fn told(&self, want: &Want, count: u64) -> String {
        let Want { event, during, at_least } = want;
        let how_often = match count {
            0 => "never happened".to_owned(),
            count => format!("happened {count} of {at_least} times"),
        };
        let Some(fault) = during else { return format!("{event} {how_often}") };
        let all = self.counts.get(event).copied().unwrap_or(0);
        match self.began.get(fault) {
            Some(times) => format!("{event} {how_often} during {fault}, which was on {times} times ({all} in all)"),
            None => format!("{event} {how_often} during {fault}, which was never on ({all} in all)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(event: &str, during: Option<&str>, at_least: u64) -> Want {
        Want { event: event.into(), during: during.map(str::to_owned), at_least }
    }

    #[test]
    fn an_event_that_never_happens_is_a_reason() {
        let mut sometimes = Sometimes::new(vec![want("raft.elected", None, 2)]);
        assert_eq!(sometimes.unmet(), ["raft.elected never happened"]);
        sometimes.seen("raft.elected");
        assert_eq!(sometimes.unmet(), ["raft.elected happened 1 of 2 times"]);
        sometimes.seen("raft.elected");
        assert_eq!(sometimes.unmet(), Vec::<String>::new());
        assert_eq!(sometimes.counts()["raft.elected"], 2);
    }

    #[test]
    fn an_event_counts_for_a_fault_only_while_it_is_on() {
        let mut sometimes = Sometimes::new(vec![want("node.offline", Some("cut"), 1)]);
        sometimes.seen("node.offline");
        assert!(sometimes.unmet()[0].contains("never on (1 in all)"));
        sometimes.fault_began("cut");
        sometimes.fault_began("cut");
        sometimes.fault_ended("cut");
        sometimes.fault_ended("cut");
        sometimes.seen("node.offline");
        assert!(sometimes.unmet()[0].contains("on 2 times"));
        sometimes.fault_began("cut");
        sometimes.fault_began("cut");
        sometimes.fault_ended("cut");
        sometimes.seen("node.offline");
        assert_eq!(sometimes.unmet(), Vec::<String>::new());
    }
}
