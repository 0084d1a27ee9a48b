//! What is remembered of logs: each server's own, all entries there ever were, and what is committed.

use std::collections::BTreeMap;

use super::Entry;

/// Entries that are remembered of all logs together; the oldest go first. About 100 MB.
const ENTRIES_MAX: usize = 1 << 20;

/// A server's log.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    entries: BTreeMap<u64, Entry>,
    purged_to: Option<u64>,
}

impl Mirror {
    /// Takes away what is at `from` and after it.
    pub(super) fn truncate(&mut self, from: u64) -> Vec<Entry> {
        self.entries.split_off(&from).into_values().collect()
    }

    /// Adds an entry; what it replaces comes back.
    pub(super) fn push(&mut self, entry: Entry) -> Vec<Entry> {
        if self.has(&entry) {
            return Vec::new();
        }
        let replaced = self.entries.range(entry.index..).next().is_some();
        let cut = if replaced { self.truncate(entry.index) } else { Vec::new() };
        self.entries.insert(entry.index, entry);
        cut
    }

    /// Entries up to this index are in a snapshot.
    pub(super) fn purge(&mut self, to: Option<u64>) {
        let Some(to) = to.filter(|to| Some(*to) > self.purged_to) else { return };
        self.purged_to = Some(to);
        while self.entries.first_key_value().is_some_and(|(index, _)| *index <= to) {
            self.entries.pop_first();
        }
    }

    pub(super) fn has(&self, entry: &Entry) -> bool {
        self.entries.get(&entry.index) == Some(entry)
    }

    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        self.entries.get(&index)
    }

    /// The term of the entry before this index, if it is known.
    pub(super) fn before(&self, index: u64) -> Option<u64> {
        Some(self.entries.get(&index.checked_sub(1)?)?.term)
    }

    pub(super) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Entry> {
        // An empty range is asked for when nothing is new.
        self.entries.range(from..to.saturating_add(1).max(from)).map(|(_, entry)| entry)
    }

    /// The last index, in the log or in a snapshot.
    pub(super) fn last_kept(&self) -> Option<u64> {
        self.entries.last_key_value().map(|(index, _)| *index).max(self.purged_to)
    }

    /// Is this index in a snapshot?
    pub(super) fn is_purged(&self, index: u64) -> bool {
        Some(index) <= self.purged_to
    }
}

/// What the first server to have an entry had.
#[derive(Debug)]
struct First {
    fingerprint: u64,
    /// The term of the entry before it, once it is known.
    before: Option<u64>,
    server: String,
}

/// All entries that were ever seen, by index and term.
#[derive(Debug, Default)]
pub(super) struct Entries {
    seen: BTreeMap<(u64, u64), First>,
}

impl Entries {
    /// Compares an entry with what others have at its index and term; `before` is the term of the one before it.
    pub(super) fn check(&mut self, entry: Entry, before: Option<u64>, server: &str) -> Option<String> {
        let Entry { index, term, fingerprint } = entry;
        let new = || First { fingerprint, before, server: server.to_owned() };
        let first = self.seen.entry((index, term)).or_insert_with(new);
        let wrong = if first.fingerprint != fingerprint {
            Some(format!("its entry {index} of term {term} says something else than that of {}", first.server))
        } else {
            let other = first.before.filter(|known| before.is_some_and(|before| before != *known));
            other.zip(before).map(|(known, before)| {
                format!(
                    "its entry {index} of term {term} follows one of term {before}, but that of {} one of term {known}",
                    first.server
                )
            })
        };
        first.before = first.before.or(before);
        while self.seen.len() > ENTRIES_MAX {
            self.seen.pop_first();
        }
        wrong
    }
}

/// The committed entries.
#[derive(Debug, Default)]
pub(super) struct Committed {
    /// By index, with the server that knew it first.
    entries: BTreeMap<u64, (Entry, String)>,
    /// The highest index that a server knew to be committed in this term or an older one; rises with the term.
    known_in: BTreeMap<u64, u64>,
}

impl Committed {
    /// A server of this term knows the entry to be committed; says what contradicts it.
    pub(super) fn add(&mut self, entry: &Entry, term: u64, server: &str) -> Option<String> {
        let (known, first) = self.entries.entry(entry.index).or_insert_with(|| (*entry, server.to_owned()));
        let wrong = (known != entry).then(|| {
            format!(
                "it knows entry {} of term {} as committed, but {first} one of term {}{}",
                entry.index,
                entry.term,
                known.term,
                if known.term == entry.term { " that says something else" } else { "" }
            )
        });
        self.note(entry.index, term);
        while self.entries.len() > ENTRIES_MAX {
            self.entries.pop_first();
        }
        wrong
    }

    pub(super) fn highest(&self) -> Option<u64> {
        self.entries.last_key_value().map(|(index, _)| *index)
    }

    /// The entry with the highest index, and who knew it first.
    pub(super) fn newest(&self) -> Option<(&Entry, &str)> {
        self.entries.last_key_value().map(|(_, (entry, server))| (entry, server.as_str()))
    }

    /// Is this very entry committed?
    pub(super) fn is(&self, entry: &Entry) -> bool {
        self.entries.get(&entry.index).is_some_and(|(known, _)| known == entry)
    }

    /// The highest index that was committed before this term.
    pub(super) fn before_term(&self, term: u64) -> Option<u64> {
        self.known_in.range(..term).next_back().map(|(_, index)| *index)
    }

    /// How this log lacks the committed entry at `index`. As logs match, that one stands for all before it.
    pub(super) fn missing(&self, index: u64, log: &Mirror) -> Option<String> {
        let (entry, first) = self.entries.get(&index)?;
        if log.is_purged(index) || log.has(entry) {
            return None;
        }
        let instead = match log.get(index) {
            Some(other) => format!("has one of term {} there", other.term),
            None => match log.last_kept() {
                Some(last) => format!("its log ends at {last}"),
                None => "its log is empty".to_owned(),
            },
        };
        Some(format!("lacks entry {index} of term {}, which {first} knows as committed: {instead}", entry.term))
    }

    fn note(&mut self, index: u64, term: u64) {
        if self.known_in.range(..=term).next_back().is_some_and(|(_, known)| *known >= index) {
            return;
        }
        self.known_in.insert(term, index);
        let above = (std::ops::Bound::Excluded(term), std::ops::Bound::Unbounded);
        let lower: Vec<u64> =
            self.known_in.range(above).take_while(|(_, known)| **known <= index).map(|(term, _)| *term).collect();
        for term in lower {
            self.known_in.remove(&term);
        }
    }
}
