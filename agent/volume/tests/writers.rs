//! Rounds from a source that goes on writing between its scan and the copy: what arrives stays, and the final round is short.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod support;

use std::sync::Arc;

use cara_volume::tree::{New, Tree};
use cara_volume::{CHUNK_BYTES_MAX, Manifest, MemoryTree, RoundReport, SourceSession, run_round};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use support::*;

/// A source and its copy, with what both keep between rounds.
#[derive(Default)]
struct Pair {
    source: MemoryTree,
    session: SourceSession,
    target: MemoryTree,
    previous: Option<Arc<Manifest>>,
}

impl Pair {
    /// A round while the source runs, which `change`s it after its scan and before a chunk is read.
    fn round_under(&mut self, change: impl FnOnce(&mut dyn Tree), now_ns: i64) -> RoundReport {
        let mut peer =
            Local { before_chunks: Some(Box::new(change)), now_ns, ..Local::new(&mut self.source, &mut self.session) };
        let outcome = run_round(&mut self.target, &mut peer, round(1, false), self.previous.take(), &mut || now_ns);
        let (report, manifest) = outcome.unwrap();
        drop(peer);
        assert_eq!(report.target_digest, scan(&self.target).digest(), "the round tells what the target holds");
        self.previous = Some(manifest);
        report
    }

    fn final_round(&mut self, now_ns: i64) -> RoundReport {
        copy_again((&mut self.source, &mut self.session), &mut self.target, &mut self.previous, now_ns)
    }
}

#[test]
fn a_large_file_under_steady_writes_is_kept_and_the_final_round_sends_about_a_chunk() {
    const SIZE: usize = 16 << 20;
    const PAGE: usize = 4096;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut pair, table) = (Pair::default(), path("table"));
    write(&mut pair.source, &table, &noise(&mut rng, SIZE));
    let mut inode = None;
    for number in 0..4 {
        let page = noise(&mut rng, PAGE);
        // One page that is always hot.
        let change = |tree: &mut dyn Tree| tree.write(&table, 7 << 20, &page).unwrap();
        let report = pair.round_under(change, number);
        assert_eq!((report.changed.count, report.changed.paths.as_slice()), (1, [table.clone()].as_slice()));
        assert!(!report.is_equal());
        let now = pair.target.stat(&table).unwrap().unwrap().inode;
        if number == 0 {
            assert!(report.bytes_sent >= (SIZE - CHUNK_BYTES_MAX) as u64, "{} bytes", report.bytes_sent);
        } else {
            assert!(report.bytes_sent < CHUNK_BYTES_MAX as u64, "round {number}: {} bytes", report.bytes_sent);
            assert_eq!(inode, Some(now), "it is changed in place");
        }
        inode = Some(now);
    }
    let report = pair.final_round(4);
    assert!((1..=CHUNK_BYTES_MAX as u64).contains(&report.bytes_sent), "{} bytes", report.bytes_sent);
    assert_eq!(report.changed.count, 0);
    assert!(report.is_equal());
    assert_same(&pair.source, &pair.target);
}

#[test]
fn a_file_with_several_skipped_chunks_is_counted_once_and_its_other_names_come_with_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut pair = Pair::default();
    let half = noise(&mut rng, 4 << 20);
    for name in ["a", "b"] {
        write(&mut pair.source, &path(name), &noise(&mut rng, 2 << 20));
    }
    // The same content twice: where the first is missing, so is what would have been copied from it.
    write(&mut pair.source, &path("twice"), &half.repeat(2));
    pair.source.create(&path("z"), New::HardLink(&path("twice"))).unwrap();
    let change = |tree: &mut dyn Tree| {
        for mib in [0, 1, 3, 5] {
            tree.write(&path("twice"), mib << 20, b"changed").unwrap();
        }
        tree.remove(&path("a")).unwrap();
    };
    let report = pair.round_under(change, 0);
    assert_eq!((report.changed.count, report.changed.paths), (2, vec![path("a"), path("twice")]));
    let inode = |name| pair.target.stat(&path(name)).unwrap().unwrap().inode;
    assert_eq!(inode("twice"), inode("z"));
    assert_eq!(content(&pair.target, &path("b")), content(&pair.source, &path("b")));
    pair.final_round(1);
    assert_same(&pair.source, &pair.target);
}

/// Whatever is done to the source after its scan, each round tells the truth and the final one ends with an equal copy.
fn random_writes(seed: u64, pause_ns: i64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut pair = Pair::default();
    for _ in 0..20 {
        mutate(&mut pair.source, &mut rng);
    }
    let mut now_ns = 0;
    for _ in 0..4 {
        pair.source.set_now_ns(now_ns);
        pair.target.set_now_ns(now_ns);
        let mut writer = rng.clone();
        pair.round_under(|tree| (0..6).for_each(|_| mutate(tree, &mut writer)), now_ns);
        rng = writer;
        now_ns += pause_ns;
    }
    pair.source.set_now_ns(now_ns);
    pair.target.set_now_ns(now_ns);
    let report = pair.final_round(now_ns);
    assert!(report.is_equal(), "seed {seed}");
    assert_eq!(dump(&pair.source), dump(&pair.target), "seed {seed}");
}

#[test]
fn rounds_under_random_writes_tell_the_truth_and_end_with_an_equal_copy() {
    for seed in 0..60 {
        random_writes(seed, 10_000_000_000);
    }
    for seed in 60..100 {
        random_writes(seed, 0);
    }
}
