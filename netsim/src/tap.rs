//! What changed on a disk, for checkers that keep a mirror of it instead of reading all of it again and again.

use std::collections::VecDeque;

use cara_env::Cf;

/// More changes than this are not kept for somebody who does not drain them.
const CHANGES_MAX: usize = 200_000;
/// Nor more bytes of keys and values.
const BYTES_MAX: usize = 64 << 20;

/// One change of one key, or of all. What a loss of power undoes comes as ordinary changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key has this value now.
    Put(Cf, Vec<u8>, Vec<u8>),
    /// The key is gone.
    Delete(Cf, Vec<u8>),
    /// Everything may be different: [`crate::Disk::dump`] says what is there now. It is then the only one in the list.
    Reset,
}

/// A bounded list of changes.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    changes: VecDeque<Change>,
    bytes: usize,
}

impl Tap {
    /// Column families that nobody mirrors are not told of.
    pub(crate) fn follows(cf: Cf) -> bool {
        cf != Cf::Snapshot
    }

    pub(crate) fn push(&mut self, cf: Cf, key: &[u8], value: Option<&[u8]>) {
        if !Self::follows(cf) || self.is_reset() {
            return; // After a reset the reader looks at everything anyway.
        }
        self.bytes += key.len() + value.map_or(0, <[u8]>::len);
        if self.changes.len() >= CHANGES_MAX || self.bytes > BYTES_MAX {
            self.reset();
            return;
        }
        self.changes.push_back(match value {
            Some(value) => Change::Put(cf, key.to_vec(), value.to_vec()),
            None => Change::Delete(cf, key.to_vec()),
        });
    }

    pub(crate) fn reset(&mut self) {
        self.changes = VecDeque::from([Change::Reset]);
        self.bytes = 0;
    }

    pub(crate) fn drain(&mut self) -> Vec<Change> {
        self.bytes = 0;
        std::mem::take(&mut self.changes).into()
    }

    fn is_reset(&self) -> bool {
        self.changes.front() == Some(&Change::Reset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_that_nobody_drains_ends_in_one_reset() {
        let mut tap = Tap::default();
        for i in 0..CHANGES_MAX + 10 {
            tap.push(Cf::Log, &i.to_be_bytes(), Some(b"x"));
        }
        assert_eq!(tap.drain(), [Change::Reset]);
        tap.push(Cf::Log, b"k", None);
        tap.push(Cf::Snapshot, b"k", None);
        assert_eq!(tap.drain(), [Change::Delete(Cf::Log, b"k".to_vec())]);
    }
}
