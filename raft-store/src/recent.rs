//! The newest entries of the log, as they were appended. Each is wanted again at once: by the replication to every
//! follower, and by the state machine. From here it costs neither a read of the store nor decoding.
//!
//! Invariant: a contiguous piece of what is written to the log; nothing of it was cut off or purged.

use std::collections::VecDeque;

use openraft::EntryPayload;
use openraft::entry::RaftEntry;

use crate::types::Entry;

/// Bytes of entries that are kept. Several seconds of the highest load; whoever is further behind reads the store.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// What an entry takes beside its command.
const OVERHEAD: usize = 128;

/// About the bytes of an entry, in memory and encoded.
pub(crate) fn size(entry: &Entry) -> usize {
    OVERHEAD
        + match &entry.payload {
            EntryPayload::Normal(command) => command.0.len(),
            EntryPayload::Blank | EntryPayload::Membership(_) => 0,
        }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Recent {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Recent {
    fn first(&self) -> Option<u64> {
        self.entries.front().map(RaftEntry::index)
    }

    /// The index behind the last entry.
    fn end(&self) -> Option<u64> {
        self.entries.back().map(|last| last.index() + 1)
    }

    /// Adds what was written. It may stand in the place of others, which are gone then.
    pub(crate) fn add(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first().map(RaftEntry::index) else { return };
        self.truncate(first);
        if self.end().is_some_and(|end| end != first) {
            self.purge(u64::MAX);
        }
        for entry in entries {
            self.bytes += size(&entry);
            self.entries.push_back(entry);
        }
        while self.bytes > BYTES_MAX {
            self.drop_first();
        }
    }

    /// Entries from `from` on are cut off.
    pub(crate) fn truncate(&mut self, from: u64) {
        while self.entries.back().is_some_and(|last| last.index() >= from) {
            let last = self.entries.pop_back();
            self.bytes -= last.as_ref().map_or(0, size);
        }
    }

    /// Entries before `end` are purged.
    pub(crate) fn purge(&mut self, end: u64) {
        while self.first().is_some_and(|first| first < end) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let first = self.entries.pop_front();
        self.bytes -= first.as_ref().map_or(0, size);
    }

    /// The entries of `start..end`, stopping behind `bytes_max`, but never before the first. None when `start` is not here.
    pub(crate) fn read(&self, start: u64, end: Option<u64>, bytes_max: usize) -> Option<Vec<Entry>> {
        let skip = usize::try_from(start.checked_sub(self.first()?)?).ok()?;
        let mut entries = Vec::new();
        let mut bytes = 0usize;
        for entry in self.entries.iter().skip(skip).take_while(|entry| end.is_none_or(|end| entry.index() < end)) {
            bytes = bytes.saturating_add(size(entry));
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push(entry.clone());
        }
        (!entries.is_empty()).then_some(entries)
    }
}

#[cfg(test)]
mod tests {
    use openraft::testing::log_id;

    use super::*;
    use crate::types::{Bytes, TypeConfig};

    fn entry(term: u64, index: u64, bytes: usize) -> Entry {
        let payload = EntryPayload::Normal(Bytes(vec![0; bytes].into()));
        Entry { log_id: log_id::<TypeConfig>(term, 1, index), payload }
    }

    fn recent(indexes: std::ops::Range<u64>) -> Recent {
        let mut recent = Recent::default();
        recent.add(indexes.map(|index| entry(1, index, 10)).collect());
        recent
    }

    fn indexes(found: Option<Vec<Entry>>) -> Option<Vec<u64>> {
        found.map(|entries| entries.iter().map(RaftEntry::index).collect())
    }

    #[test]
    fn what_was_appended_is_read_and_what_lies_before_is_not_here() {
        let recent = recent(5..9);
        assert_eq!(indexes(recent.read(5, Some(7), usize::MAX)), Some(vec![5, 6]));
        assert_eq!(indexes(recent.read(8, None, usize::MAX)), Some(vec![8]));
        assert_eq!(indexes(recent.read(4, Some(7), usize::MAX)), None, "the beginning is on the disk only");
        assert_eq!(indexes(recent.read(9, Some(12), usize::MAX)), None);
        assert_eq!(indexes(Recent::default().read(0, None, usize::MAX)), None);
    }

    #[test]
    fn an_answer_has_at_least_one_entry_and_ends_behind_the_limit() {
        let recent = recent(1..9);
        assert_eq!(indexes(recent.read(2, None, 0)), Some(vec![2]));
        assert_eq!(indexes(recent.read(2, None, 2 * (OVERHEAD + 10))), Some(vec![2, 3]));
    }

    #[test]
    fn another_leaders_entries_replace_the_tail_and_a_gap_forgets_all_before_it() {
        let mut recent = recent(1..9);
        recent.add(vec![entry(2, 6, 10)]);
        assert_eq!(indexes(recent.read(5, None, usize::MAX)), Some(vec![5, 6]));
        recent.add(vec![entry(2, 20, 10)]);
        assert_eq!(indexes(recent.read(6, None, usize::MAX)), None);
        assert_eq!(indexes(recent.read(20, None, usize::MAX)), Some(vec![20]));
        assert_eq!(recent.bytes, OVERHEAD + 10);
    }

    #[test]
    fn cut_off_and_purged_entries_are_gone() {
        let mut recent = recent(1..9);
        recent.purge(3);
        recent.truncate(7);
        assert_eq!(indexes(recent.read(2, None, usize::MAX)), None);
        assert_eq!(indexes(recent.read(3, None, usize::MAX)), Some(vec![3, 4, 5, 6]));
        recent.truncate(0);
        assert_eq!((recent.entries.len(), recent.bytes), (0, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = Recent::default();
        for index in 0..40 {
            recent.add(vec![entry(1, index, 1024 * 1024)]);
            assert!(recent.bytes <= BYTES_MAX, "{} bytes at {index}", recent.bytes);
        }
        assert_eq!(recent.end(), Some(40));
    }
}
