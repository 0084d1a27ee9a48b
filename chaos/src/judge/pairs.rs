//! What the domain has on a disk, as one number that costs only what has changed.

use std::collections::BTreeMap;

use cara_netsim::trace::fingerprint;

/// Follows key/value pairs. Equal pairs have equal sums, in whatever order they were written.
#[derive(Debug, Default)]
pub struct Pairs {
    hashes: BTreeMap<Vec<u8>, u64>,
    sum: u64,
}

impl Pairs {
    /// The key has this value now, or none any more.
    pub fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        let old = match value {
            Some(value) => {
                let new = hash(key, value);
                self.sum = self.sum.wrapping_add(new);
                self.hashes.insert(key.to_vec(), new)
            }
            None => self.hashes.remove(key),
        };
        self.sum = self.sum.wrapping_sub(old.unwrap_or_default());
    }

    /// The number; none when there are no pairs.
    pub fn sum(&self) -> Option<u64> {
        (!self.hashes.is_empty()).then_some(self.sum)
    }
}

/// The length of the key says where the value begins.
fn hash(key: &[u8], value: &[u8]) -> u64 {
    fingerprint(&[&(key.len() as u64).to_le_bytes(), key, value].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_depends_on_what_is_there_and_not_on_how_it_came_there() {
        let (mut one, mut other) = (Pairs::default(), Pairs::default());
        assert_eq!(one.sum(), None);
        one.set(b"a", Some(b"1"));
        one.set(b"b", Some(b"2"));
        other.set(b"b", Some(b"3"));
        other.set(b"c", Some(b"4"));
        other.set(b"a", Some(b"1"));
        assert_ne!(one.sum(), other.sum());
        other.set(b"c", None);
        other.set(b"b", Some(b"2"));
        assert_eq!(one.sum(), other.sum());
        other.set(b"b", Some(b"1"));
        assert_ne!(one.sum(), other.sum(), "another value under the same key");
    }

    #[test]
    fn what_is_key_and_what_is_value_matters() {
        let (mut one, mut other) = (Pairs::default(), Pairs::default());
        one.set(b"ab", Some(b"c"));
        other.set(b"a", Some(b"bc"));
        assert_ne!(one.sum(), other.sum());
    }
}
