//! Scans: what is read, what isn't, and what digests tell apart.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use cara_volume::scan::{ScanProgress, Scanner};
use cara_volume::tree::{Meta, New, Tree};
use cara_volume::{Manifest, MemoryTree, SourceSession};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use support::*;

const SECOND_NS: i64 = 1_000_000_000;

fn scan_at(tree: &MemoryTree, previous: Option<&Arc<Manifest>>, now_ns: i64) -> (Arc<Manifest>, ScanProgress) {
    let mut scanner = Scanner::new(previous.cloned(), BTreeSet::new(), now_ns);
    while !scanner.step(tree).unwrap() {}
    let progress = scanner.progress();
    (Arc::new(scanner.finish().unwrap()), progress)
}

#[test]
fn a_file_that_has_not_changed_is_not_read_again() {
    let mut tree = MemoryTree::new();
    for name in ["a", "b"] {
        write(&mut tree, &path(name), &[1; 50_000]);
    }
    let (first, progress) = scan_at(&tree, None, 10 * SECOND_NS);
    assert_eq!(progress.bytes_read, 100_000);
    tree.set_now_ns(20 * SECOND_NS);
    tree.write(&path("b"), 0, b"x").unwrap();
    let (second, progress) = scan_at(&tree, Some(&first), 30 * SECOND_NS);
    assert_eq!((progress.bytes_read, progress.bytes), (50_000, 100_000));
    assert_ne!(first.digest(), second.digest());
    assert_eq!(second.digest(), scan(&tree).digest());
}

#[test]
fn a_second_change_under_the_same_time_is_seen() {
    let mut tree = MemoryTree::new();
    tree.set_now_ns(10 * SECOND_NS);
    write(&mut tree, &path("a"), b"one");
    let (first, _) = scan_at(&tree, None, 11 * SECOND_NS);
    tree.write(&path("a"), 0, b"two").unwrap();
    let (second, progress) = scan_at(&tree, Some(&first), 20 * SECOND_NS);
    assert_eq!(progress.bytes_read, 3);
    assert_ne!(first.digest(), second.digest());
}

#[test]
fn a_file_that_changes_while_it_is_read_is_counted_and_read_again() {
    let mut tree = MemoryTree::new();
    let content = noise(&mut ChaCha8Rng::seed_from_u64(1), 5 << 20);
    write(&mut tree, &path("a"), &content);
    write(&mut tree, &path("gone"), &content);
    let mut scanner = Scanner::new(None, BTreeSet::new(), 10 * SECOND_NS);
    for _ in 0..4 {
        scanner.step(&tree).unwrap();
    }
    tree.set_now_ns(5 * SECOND_NS);
    tree.set_size(&path("a"), 3 << 20).unwrap();
    tree.remove(&path("gone")).unwrap();
    while !scanner.step(&tree).unwrap() {}
    let torn = Arc::new(scanner.finish().unwrap());
    assert_eq!(torn.changed(), 1);
    let (next, progress) = scan_at(&tree, Some(&torn), 20 * SECOND_NS);
    assert_eq!(progress.bytes_read, 3 << 20);
    assert_eq!((next.changed(), next.digest()), (0, scan(&tree).digest()));
}

#[test]
fn the_final_scan_refuses_what_is_not_at_rest() {
    let mut tree = MemoryTree::new();
    write(&mut tree, &path("a"), &[1; 3 << 20]);
    let mut session = SourceSession::new();
    session.begin(&round(1, true), 0);
    for _ in 0..3 {
        session.step(&tree).unwrap();
    }
    tree.write(&path("a"), 0, &[2; 4 << 20]).unwrap();
    let refused = loop {
        match session.step(&tree) {
            Ok(done) => assert!(!done),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("changed during the final copy"), "{refused}");
}

#[test]
fn digests_are_equal_exactly_when_trees_are() {
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut one = MemoryTree::new();
        for _ in 0..15 {
            mutate(&mut one, &mut rng);
        }
        let mut other = one.clone();
        assert_eq!(scan(&one).digest(), scan(&other).digest());
        for _ in 0..3 {
            mutate(&mut other, &mut rng);
            let is_same = dump(&one) == dump(&other);
            assert_eq!(scan(&one).digest() == scan(&other).digest(), is_same, "seed {seed}");
            assert_eq!(scan(&one).first_difference(&scan(&other)).is_none(), is_same, "seed {seed}");
        }
    }
}

#[test]
fn every_part_of_an_entry_counts_in_the_digest_and_holes_do_not() {
    let mut tree = MemoryTree::new();
    write(&mut tree, &path("a"), &[0; 700_000]);
    let meta = Meta { mode: 0o644, ..Meta::default() };
    tree.set_meta(&path("a"), &meta).unwrap();
    tree.set_meta(&path(""), &meta).unwrap();
    let digest = scan(&tree).digest();
    let changes = [
        Meta { mode: 0o645, ..meta.clone() },
        Meta { uid: 1, ..meta.clone() },
        Meta { gid: 1, ..meta.clone() },
        Meta { mtime_ns: 1, ..meta.clone() },
        Meta { xattrs: [(b"user.a".to_vec(), vec![])].into(), ..meta.clone() },
    ];
    for changed in changes {
        tree.set_meta(&path("a"), &changed).unwrap();
        assert_ne!(scan(&tree).digest(), digest, "{changed:?}");
    }
    tree.punch(&path("a"), 0..700_000).unwrap();
    tree.set_meta(&path("a"), &meta).unwrap();
    assert_eq!(scan(&tree).digest(), digest);
    tree.create(&path("b"), New::HardLink(&path("a"))).unwrap();
    tree.set_meta(&path(""), &meta).unwrap();
    assert_ne!(scan(&tree).digest(), digest);
}
