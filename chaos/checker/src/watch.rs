//! A watch tells every change once and in order, or says that it can't ("compacted") and is followed by a list.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Finding, rules};

/// A change of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Which object.
    pub object: String,
    /// What happened to it: `put`, `deleted`, with as much of the content as shall be compared.
    pub what: String,
}

/// What really changed, by revision. Revisions that are not in it changed nothing that the watch is about.
pub type Truth = BTreeMap<u64, Vec<Change>>;

/// Something that a watcher noted, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It was connected, to be told what comes after this revision; none: from whatever is now.
    Connected {
        /// The revision.
        from: Option<u64>,
    },
    /// It read a whole list as of this revision, which stands for all that came before.
    Listed {
        /// The revision.
        revision: u64,
    },
    /// It was told a change.
    Event {
        /// The revision.
        revision: u64,
        /// The change.
        change: Change,
    },
    /// It was told that everything up to this revision has been told (a bookmark); there may be nothing new in it.
    Progress {
        /// The revision.
        revision: u64,
    },
    /// It was told that what it asked for is no longer there, and must list anew.
    Compacted,
    /// The connection ended.
    Ended,
}

/// A watcher and all that it noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watcher {
    /// Its name: the machine and what it watches.
    pub name: String,
    /// In its own order, with the time.
    pub noted: Vec<(Duration, Seen)>,
    /// The revision that it must have reached in the end; none if it may be behind.
    pub must_reach: Option<u64>,
}

/// Everything that any watcher was told: the truth if nobody else knows it. Finds less than a truth from the servers.
pub fn union(watchers: &[Watcher]) -> Truth {
    let mut truth = Truth::new();
    for (_, seen) in watchers.iter().flat_map(|watcher| &watcher.noted) {
        if let Seen::Event { revision, change } = seen {
            let changes = truth.entry(*revision).or_default();
            if !changes.contains(change) {
                changes.push(change.clone());
            }
        }
    }
    truth
}

/// What the watcher's notes contradict.
pub fn check(watcher: &Watcher, truth: &Truth) -> Vec<Finding> {
    let mut reader = Reader::new(truth);
    let mut findings = Vec::new();
    let mut say = |at, text| findings.push(Finding::new(at, rules::WATCH_ORDER, &watcher.name, text));
    for (at, seen) in &watcher.noted {
        if let Some(text) = reader.note(seen) {
            say(*at, text);
        }
    }
    let last = watcher.noted.last().map_or(Duration::ZERO, |(at, _)| *at);
    if let Some(must) = watcher.must_reach
        && let Some(text) = reader.missed_up_to(must)
    {
        say(last, format!("it ended at {} and {text}", reader.told()));
    }
    findings
}

/// How far a watcher has come.
struct Reader<'a> {
    truth: &'a Truth,
    /// It has been told all of this revision and of those before; none: it has not begun anywhere.
    done: Option<u64>,
    /// The revision that it is being told, and what of it is still to come.
    open: Option<(u64, Vec<Change>)>,
    /// It was told "compacted" and has not listed since.
    must_list: bool,
}

impl<'a> Reader<'a> {
    fn new(truth: &'a Truth) -> Self {
        Self { truth, done: None, open: None, must_list: false }
    }

    fn note(&mut self, seen: &Seen) -> Option<String> {
        match seen {
            Seen::Connected { from } => self.connected(*from),
            Seen::Listed { revision } => self.listed(*revision),
            Seen::Event { revision, change } => self.event(*revision, change),
            Seen::Progress { revision } => self.progress(*revision),
            Seen::Compacted => {
                self.must_list = true;
                None
            }
            Seen::Ended => None,
        }
    }

    fn connected(&mut self, from: Option<u64>) -> Option<String> {
        let wrong = match from {
            Some(from) if self.reached().is_some() && !self.must_list => self
                .missed_up_to(from)
                .map(|missed| format!("it asked for what comes after revision {from} and {missed}, {}", self.told())),
            Some(_) | None => None,
        };
        // Who was told "compacted", or does not say how far it has come, must be given a list first.
        self.must_list |= from.is_none() && self.reached().is_some();
        self.open = None;
        self.done = from;
        wrong
    }

    fn listed(&mut self, revision: u64) -> Option<String> {
        let before = self.done.replace(revision).max(self.open.take().map(|(open, _)| open));
        self.must_list = false;
        let before = before.filter(|before| *before > revision)?;
        Some(format!("it was given a list of revision {revision} after it had seen {before}"))
    }

    fn event(&mut self, revision: u64, change: &Change) -> Option<String> {
        let Change { object, what } = change;
        if std::mem::take(&mut self.must_list) {
            (self.done, self.open) = (None, None);
            return Some(format!(
                "it was told {what} {object} of revision {revision}, but had to be given a list first"
            ));
        }
        let reached = self.reached();
        if reached.is_some_and(|reached| revision < reached) || self.done.is_some_and(|done| revision <= done) {
            return Some(format!("it was told {what} {object} of revision {revision} after revision {}", self.told()));
        }
        let mut wrong = None;
        if self.open.as_ref().is_none_or(|(open, _)| *open != revision) {
            if reached.is_some() {
                wrong = self
                    .missed_up_to(revision - 1)
                    .map(|missed| format!("it was told revision {revision} and {missed}"));
            }
            self.done = reached.map(|_| revision - 1);
            self.open = Some((revision, self.truth.get(&revision).cloned().unwrap_or_default()));
        }
        let Some((_, left)) = &mut self.open else { return wrong };
        match left.iter().position(|other| other == change) {
            Some(place) => drop(left.remove(place)),
            None => wrong = Some(self.surplus(revision, change)),
        }
        wrong
    }

    fn progress(&mut self, revision: u64) -> Option<String> {
        let reached = self.reached();
        let wrong = match reached {
            Some(reached) if reached > revision => {
                Some(format!("it was told progress to {revision} after {}", self.told()))
            }
            Some(_) => self
                .missed_up_to(revision)
                .map(|missed| format!("it was told that it has all up to revision {revision} and {missed}")),
            None => None,
        };
        if reached <= Some(revision) {
            self.done = Some(revision);
            self.open = None;
        }
        wrong
    }

    fn surplus(&self, revision: u64, change: &Change) -> String {
        let Change { object, what } = change;
        match self.truth.get(&revision).is_some_and(|changes| changes.contains(change)) {
            true => format!("it was told {what} {object} of revision {revision} twice"),
            false => format!("it was told {what} {object} of revision {revision}, which never happened"),
        }
    }

    /// The last revision of which it has seen something; none: it has not begun.
    fn reached(&self) -> Option<u64> {
        self.open.as_ref().map(|(open, _)| *open).or(self.done)
    }

    /// What it has not been told of the revisions up to `to`.
    fn missed_up_to(&self, to: u64) -> Option<String> {
        let (from, mut missed) = match (&self.open, self.done) {
            (Some((open, left)), _) if *open <= to => (open + 1, left.iter().map(|change| (*open, change)).collect()),
            (Some(_), _) => return None,
            (None, done) => (done.map_or(0, |done| done + 1), Vec::new()),
        };
        if from <= to {
            let later = self.truth.range(from..=to);
            missed.extend(later.flat_map(|(revision, changes)| changes.iter().map(|change| (*revision, change))));
        }
        let (revision, Change { object, what }) = missed.first()?;
        let more = match missed.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        Some(format!("was never told {what} {object} of revision {revision}{more}"))
    }

    fn told(&self) -> String {
        self.reached().map_or_else(|| "nothing".to_owned(), |reached| reached.to_string())
    }
}

#[cfg(test)]
mod tests;
