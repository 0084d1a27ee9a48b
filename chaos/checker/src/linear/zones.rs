//! The quick way for plain registers: when there are only reads and writes and no value is written twice, each read
//! names its write, and an order needs no search.
//!
//! A write and its reads are a cluster; an order puts one cluster after the other. Cluster A must come before B if some
//! call of A ends before some call of B starts: if the first end of A is before the last start of B. There is an order
//! exactly if no two clusters must each come before the other; then sorting by the earlier of the two moments gives one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::need::{ABSENT, Kind, Op};

/// A write and its reads. No time is before all times: the value in the beginning was written then.
struct Cluster {
    first_end: Option<Duration>,
    last_start: Option<Duration>,
    /// The write, then its reads by start.
    ops: Vec<usize>,
}

/// An order of these calls, which come by start: `Some(None)` if there is none, `None` if they aren't plain.
pub(super) fn order(ops: &[Op]) -> Option<Option<Vec<usize>>> {
    let mut writes: BTreeMap<usize, usize> = BTreeMap::new();
    let mut reads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, op) in ops.iter().enumerate() {
        match op.kind {
            Kind::Set(value) if value != ABSENT && writes.insert(value, i).is_none() => {}
            Kind::Is(value) => reads.entry(value).or_default().push(i),
            Kind::Set(_) | Kind::IsNot(_) | Kind::Swap(..) | Kind::Take => return None,
        }
    }
    let mut clusters = Vec::new();
    if let Some(reads) = reads.remove(&ABSENT) {
        let last_start = reads.iter().map(|i| ops[*i].start).max();
        clusters.push(Cluster { first_end: None, last_start, ops: reads });
    }
    for (value, write) in writes {
        let reads = reads.remove(&value).unwrap_or_default();
        // Without an answer and without a reader, it need not have happened.
        if ops[write].end.is_none() && reads.is_empty() {
            continue;
        }
        let first_end = reads.iter().chain([&write]).filter_map(|i| ops[*i].end).min();
        let is_read_too_soon = reads.iter().any(|i| ops[*i].end.is_some_and(|end| end < ops[write].start));
        if is_read_too_soon {
            return Some(None);
        }
        let last_start = reads.iter().chain([&write]).map(|i| ops[*i].start).max();
        clusters.push(Cluster { first_end, last_start, ops: [vec![write], reads].concat() });
    }
    if !reads.is_empty() {
        return Some(None); // Read, and written by nobody.
    }
    clusters.sort_by_key(|cluster| (cluster.first_end.min(cluster.last_start), cluster.must_span()));
    Some(fit(&clusters).then(|| clusters.into_iter().flat_map(|cluster| cluster.ops).collect()))
}

impl Cluster {
    /// Its value must be there from its first end to its last start.
    fn must_span(&self) -> bool {
        self.first_end < self.last_start
    }
}

/// Must no later cluster come before an earlier one?
fn fit(clusters: &[Cluster]) -> bool {
    let mut latest_start = None;
    clusters.iter().all(|cluster| {
        let fits = cluster.first_end >= latest_start;
        latest_start = latest_start.max(cluster.last_start);
        fits
    })
}
