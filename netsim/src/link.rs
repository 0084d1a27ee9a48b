//! Who can reach whom. Faults overlap, so each one is counted, and a link is open again when the last one is lifted.
//!
//! Two kinds of cut: **hold** delays everything until it is lifted, as TCP does when a path comes back before a timeout
//! (connections survive); **cut** drops everything, in one direction or both (connections that lost a byte stay stuck
//! until a keepalive ends them: turmoil's TCP sends nothing again, like a path through a box that lost its state).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a link between two hosts does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Open,
    Held,
    /// Dropped from the first to the second, and back.
    Cut(bool, bool),
}

#[derive(Debug, Default)]
struct State {
    /// Directed: from, to.
    cuts: BTreeMap<(String, String), u32>,
    /// Undirected: lesser name first.
    holds: BTreeMap<(String, String), u32>,
    /// Hosts without power.
    dark: BTreeSet<String>,
    /// Hosts with power and without a process.
    stopped: BTreeSet<String>,
    /// Directed: from, to.
    rejects: BTreeMap<(String, String), u32>,
    applied: BTreeMap<(String, String), Mode>,
}

/// All links of a world.
#[derive(Debug, Default)]
pub(crate) struct Links(Mutex<State>);

impl Links {
    /// Adds or lifts one directed cut.
    pub(crate) fn cut(&self, from: &str, to: &str, on: bool) {
        count(&mut self.lock().cuts, (from.to_owned(), to.to_owned()), on);
    }

    /// Adds or lifts one hold.
    pub(crate) fn hold(&self, a: &str, b: &str, on: bool) {
        count(&mut self.lock().holds, pair(a, b), on);
    }

    /// The host loses or gets back its power.
    pub(crate) fn dark(&self, host: &str, on: bool) {
        let mut state = self.lock();
        if on {
            state.dark.insert(host.to_owned());
        } else {
            state.dark.remove(host);
        }
    }

    /// The host's process ends or starts; its kernel refuses connections meanwhile.
    pub(crate) fn stopped(&self, host: &str, on: bool) {
        let mut state = self.lock();
        if on {
            state.stopped.insert(host.to_owned());
        } else {
            state.stopped.remove(host);
        }
    }

    /// Adds or lifts one directed rejection of new connections.
    pub(crate) fn reject(&self, from: &str, to: &str, on: bool) {
        count(&mut self.lock().rejects, (from.to_owned(), to.to_owned()), on);
    }

    /// Are new connections refused, because no process listens or something between says so?
    pub(crate) fn refuses(&self, from: &str, to: &str) -> bool {
        let state = self.lock();
        state.stopped.contains(to) || state.rejects.contains_key(&(from.to_owned(), to.to_owned()))
    }

    /// Lifts every cut, hold and rejection; hosts without power stay dark.
    pub(crate) fn heal(&self) {
        let mut state = self.lock();
        state.cuts.clear();
        state.holds.clear();
        state.rejects.clear();
    }

    /// Is something between the two dropped, so that a refused connection is really silence?
    pub(crate) fn silent(&self, from: &str, to: &str) -> bool {
        let state = self.lock();
        let cut = |a: &str, b: &str| state.cuts.contains_key(&(a.to_owned(), b.to_owned()));
        cut(from, to) || cut(to, from) || state.dark.contains(from) || state.dark.contains(to)
    }

    /// Brings turmoil's links to what the counts say.
    pub(crate) fn apply(&self, sim: &turmoil::Sim<'_>, hosts: &[String]) {
        let mut state = self.lock();
        for (i, a) in hosts.iter().enumerate() {
            for b in hosts.iter().skip(i + 1) {
                let link = pair(a, b);
                let wanted = state.mode(&link);
                let before = state.applied.get(&link).copied().unwrap_or_default();
                if wanted != before {
                    switch(sim, &link, before, wanted);
                    state.applied.insert(link, wanted);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn mode(&self, link: &(String, String)) -> Mode {
        let (a, b) = link;
        let dark = self.dark.contains(a) || self.dark.contains(b);
        let forth = dark || self.cuts.contains_key(link);
        let back = dark || self.cuts.contains_key(&(b.clone(), a.clone()));
        if forth || back {
            Mode::Cut(forth, back)
        } else if self.holds.contains_key(link) {
            Mode::Held
        } else {
            Mode::Open
        }
    }
}

fn switch(sim: &turmoil::Sim<'_>, (a, b): &(String, String), before: Mode, wanted: Mode) {
    let (a, b) = (a.as_str(), b.as_str());
    match before {
        Mode::Open => {}
        Mode::Held => sim.release(a, b),
        Mode::Cut(..) => sim.repair(a, b),
    }
    match wanted {
        Mode::Open => {}
        Mode::Held => sim.hold(a, b),
        Mode::Cut(true, true) => sim.partition(a, b),
        Mode::Cut(true, false) => sim.partition_oneway(a, b),
        Mode::Cut(false, true) => sim.partition_oneway(b, a),
        Mode::Cut(false, false) => unreachable!("a cut has a direction"),
    }
}

fn pair(a: &str, b: &str) -> (String, String) {
    if a <= b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) }
}

fn count(counts: &mut BTreeMap<(String, String), u32>, key: (String, String), on: bool) {
    if on {
        *counts.entry(key).or_default() += 1;
        return;
    }
    if let Some(times) = counts.get_mut(&key) {
        *times -= 1;
        if *times == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_when_the_last_of_two_overlapping_cuts_is_lifted() {
        let links = Links::default();
        links.cut("a", "b", true);
        links.cut("a", "b", true);
        links.cut("a", "b", false);
        assert!(links.silent("a", "b"));
        assert!(links.silent("b", "a"), "an answer could not come back");
        links.cut("a", "b", false);
        assert!(!links.silent("a", "b"));
    }

    #[test]
    fn who_is_rejected_is_refused_by_that_host_alone() {
        let links = Links::default();
        links.reject("a", "b", true);
        assert!(links.refuses("a", "b") && !links.refuses("b", "a") && !links.refuses("c", "b"));
        links.heal();
        assert!(!links.refuses("a", "b"));
        links.stopped("b", true);
        assert!(links.refuses("a", "b") && links.refuses("c", "b"));
    }

    #[test]
    fn a_cut_wins_over_a_hold_and_darkness_over_both() {
        let links = Links::default();
        let mode = || links.lock().mode(&pair("b", "a"));
        links.hold("b", "a", true);
        assert_eq!(mode(), Mode::Held);
        links.cut("b", "a", true);
        assert_eq!(mode(), Mode::Cut(false, true));
        links.dark("a", true);
        assert_eq!(mode(), Mode::Cut(true, true));
        links.heal();
        assert_eq!(mode(), Mode::Cut(true, true), "healing the network gives no power back");
        links.dark("a", false);
        assert_eq!(mode(), Mode::Open);
    }
}
