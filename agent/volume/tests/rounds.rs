//! Rounds over random trees with random changes in between: whatever happened, the copy is the original.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod support;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use cara_volume::tree::{New, Tree};
use cara_volume::wire::hashes_from_wire;
use cara_volume::{Manifest, MemoryTree, Need, SourceSession, TargetSession, VolumeError, run_round};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::*;

/// Five rounds; between them the source changes, and now and then somebody has meddled with the target. The clocks of both
/// stand still while one changes things and go on by `pause_ns` between rounds.
fn random_rounds(seed: u64, pause_ns: i64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    let mut session = SourceSession::new();
    let mut previous: Option<Arc<Manifest>> = None;
    for number in 0..5 {
        let now_ns = pause_ns * number;
        source.set_now_ns(now_ns);
        target.set_now_ns(now_ns);
        for _ in 0..rng.random_range(1..25) {
            mutate(&mut source, &mut rng);
        }
        if number > 0 && rng.random_bool(0.3) {
            mutate(&mut target, &mut rng);
        }
        if rng.random_bool(0.3) {
            previous = None; // The agent of the target has restarted.
        }
        let report = copy_again((&mut source, &mut session), &mut target, &mut previous, now_ns);
        assert!(report.is_equal(), "seed {seed}, round {number}");
        assert_eq!(dump(&source), dump(&target), "seed {seed}, round {number}");
        assert_eq!(scan(&target).digest(), report.target_digest, "seed {seed}, round {number}");
    }
}

#[test]
fn every_round_ends_with_an_equal_copy() {
    for seed in 0..100 {
        random_rounds(seed, 10_000_000_000);
    }
}

#[test]
fn every_round_ends_with_an_equal_copy_also_when_the_clock_is_too_coarse_to_tell_rounds_apart() {
    for seed in 100..150 {
        random_rounds(seed, 0);
    }
}

/// All states of a round in which the power goes after the nth change, and the round that follows.
#[test]
fn a_crash_after_any_change_leaves_a_tree_from_which_the_next_round_gets_there() {
    for seed in 0..12 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut source, mut before) = (MemoryTree::new(), MemoryTree::new());
        for _ in 0..20 {
            mutate(&mut source, &mut rng);
        }
        copy(&mut source, &mut before, true).unwrap();
        for _ in 0..20 {
            mutate(&mut source, &mut rng);
        }
        for changes in 0.. {
            let mut target = before.clone();
            let mut crashing = Crashing { inner: &mut target, changes_left: Cell::new(changes) };
            let is_over = copy(&mut source, &mut crashing, true).is_ok();
            let report = copy(&mut source, &mut target, true).unwrap();
            assert!(report.is_equal());
            assert_eq!(dump(&source), dump(&target), "seed {seed}, crash after {changes} changes");
            if is_over {
                assert_eq!(report.bytes_sent, 0);
                break;
            }
        }
    }
}

#[test]
fn what_has_arrived_before_a_crash_is_not_sent_again() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    write(&mut source, &path("large"), &noise(&mut rng, 40 << 20));
    let mut crashing = Crashing { inner: &mut target, changes_left: Cell::new(300) };
    copy(&mut source, &mut crashing, true).unwrap_err();
    let report = copy(&mut source, &mut target, true).unwrap();
    assert!(report.bytes_sent > 10 << 20 && report.bytes_sent < 32 << 20, "{} bytes", report.bytes_sent);
    assert_same(&source, &target);
}

#[test]
fn one_percent_changed_sends_about_one_percent_and_touches_nothing_else() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    let file = path("database");
    write(&mut source, &file, &noise(&mut rng, 64 << 20));
    let (mut session, mut previous) = (SourceSession::new(), None);
    copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
    // Ten places of 64 KiB each are 1 %.
    for i in 0..10 {
        let changed = noise(&mut rng, 64 << 10);
        source.write(&file, (6 << 20) * i, &changed).unwrap();
    }
    let inode = target.stat(&file).unwrap().unwrap().inode;
    let report = copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
    let percent = report.bytes_sent as f64 * 100.0 / report.bytes_total as f64;
    assert!((0.5..=4.0).contains(&percent), "{percent} %");
    assert_eq!(target.stat(&file).unwrap().unwrap().inode, inode, "a large file is changed in place");
    assert_same(&source, &target);
}

#[test]
fn a_large_file_that_became_shorter_or_longer_is_changed_in_place() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    write(&mut source, &path("a"), &noise(&mut rng, 4 << 20));
    copy(&mut source, &mut target, true).unwrap();
    let inode = target.stat(&path("a")).unwrap().unwrap().inode;
    for size in [3 << 20, 5 << 20] {
        source.set_size(&path("a"), size).unwrap();
        copy(&mut source, &mut target, true).unwrap();
        assert_same(&source, &target);
        assert_eq!(target.stat(&path("a")).unwrap().unwrap().inode, inode);
    }
}

#[test]
fn names_of_one_file_stay_names_of_one_file() {
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    write(&mut source, &path("a"), b"one");
    source.create(&path("b"), New::HardLink(&path("a"))).unwrap();
    source.create(&path("c"), New::HardLink(&path("a"))).unwrap();
    copy(&mut source, &mut target, true).unwrap();
    assert_same(&source, &target);
    // New content under all names; then one of them becomes a file of its own.
    source.write(&path("b"), 0, b"two").unwrap();
    copy(&mut source, &mut target, true).unwrap();
    assert_same(&source, &target);
    source.remove(&path("c")).unwrap();
    write(&mut source, &path("c"), b"two");
    let report = copy(&mut source, &mut target, true).unwrap();
    assert_eq!(report.bytes_sent, 0);
    assert_same(&source, &target);
}

/// A target that has 4 MiB of noise under "a", and so has the source.
fn pair(rng: &mut ChaCha8Rng) -> (MemoryTree, MemoryTree, Vec<u8>) {
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    let content = noise(rng, 4 << 20);
    write(&mut source, &path("a"), &content);
    copy(&mut source, &mut target, true).unwrap();
    (source, target, content)
}

#[test]
fn what_was_overwritten_before_it_was_needed_is_fetched() {
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let (mut source, mut target, old) = pair(&mut rng);
    source.write(&path("a"), 2 << 20, &noise(&mut rng, 10_000)).unwrap();
    write(&mut source, &path("b"), &old);
    let report = copy(&mut source, &mut target, true).unwrap();
    assert!(report.bytes_sent < 1 << 20, "{} bytes", report.bytes_sent);
    assert_same(&source, &target);
}

#[test]
fn a_file_in_which_content_moves_is_written_anew_from_what_is_here() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (mut source, mut target, mut content) = pair(&mut rng);
    content.splice(3 << 20..3 << 20, *b"inserted");
    source.write(&path("a"), 0, &content).unwrap();
    let report = copy(&mut source, &mut target, true).unwrap();
    assert!(report.bytes_sent < 600 << 10, "{} bytes", report.bytes_sent);
    assert_same(&source, &target);
}

#[test]
fn a_file_with_two_names_is_not_changed_in_place() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let (mut source, mut target, mut content) = pair(&mut rng);
    source.create(&path("b"), New::HardLink(&path("a"))).unwrap();
    copy(&mut source, &mut target, true).unwrap();
    source.remove(&path("a")).unwrap();
    content[2 << 20] ^= 1;
    write(&mut source, &path("a"), &content);
    let report = copy(&mut source, &mut target, true).unwrap();
    // Only what is new under the first name: the content of the second was not spoilt.
    let manifest = scan(&source);
    let chunks = |name| manifest.entries()[manifest.find(&path(name)).unwrap()].chunks();
    let new = chunks("a").iter().filter(|chunk| !chunks("b").contains(chunk));
    assert_eq!(report.bytes_sent, new.map(|chunk| u64::from(chunk.length)).sum::<u64>());
    assert_same(&source, &target);
}

#[test]
fn content_that_only_moved_is_not_sent_and_equal_content_is_sent_once() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    let content = noise(&mut rng, 3 << 20);
    for name in ["log", "copy", "other"] {
        write(&mut source, &path(name), &content);
    }
    let (mut session, mut previous) = (SourceSession::new(), None);
    let report = copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
    assert_eq!(report.bytes_sent, content.len() as u64);
    // Logs are rotated, folders renamed, the rest goes.
    source.rename(&path("log"), &path("log.1")).unwrap();
    write(&mut source, &path("log"), b"fresh");
    source.remove(&path("copy")).unwrap();
    source.remove(&path("other")).unwrap();
    let report = copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
    assert_eq!(report.bytes_sent, 5);
    assert_same(&source, &target);
}

#[test]
fn a_file_that_changes_under_the_copy_is_left_to_the_next_round_and_an_error_in_the_final_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut source = MemoryTree::new();
    for name in ["a", "b"] {
        write(&mut source, &path(name), &noise(&mut rng, 100_000));
    }
    let changed = noise(&mut rng, 100_000);
    for is_final in [false, true] {
        let (mut source, mut target) = (source.clone(), MemoryTree::new());
        let mut session = SourceSession::new();
        let change = |tree: &mut dyn Tree| tree.write(&path("a"), 0, &changed).unwrap();
        let mut peer = Local { before_chunks: Some(Box::new(change)), ..Local::new(&mut source, &mut session) };
        let outcome = run_round(&mut target, &mut peer, round(1, is_final), None, &mut || LATER_NS);
        drop(peer);
        if is_final {
            assert!(matches!(outcome, Err(VolumeError::Changed { .. })));
            continue;
        }
        let (report, manifest) = outcome.unwrap();
        assert_eq!(report.changed.paths, [path("a")]);
        assert!(!report.is_equal());
        assert_eq!(content(&target, &path("b")), content(&source, &path("b")));
        let mut previous = Some(manifest);
        let report = copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
        assert_eq!((report.bytes_sent, report.changed.count), (100_000, 0));
        assert_same(&source, &target);
    }
}

#[test]
fn progress_rises_to_the_total() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let (mut source, mut tree) = (MemoryTree::new(), MemoryTree::new());
    for i in 0..20 {
        write(&mut source, &path(&format!("{i}")), &noise(&mut rng, 1_000_000));
    }
    let mut session = SourceSession::new();
    session.begin(&round(1, true), 0);
    while !session.step(&source).unwrap() {}
    let mut target = TargetSession::new(round(1, true), None, 0);
    let mut seen = vec![target.progress()];
    loop {
        match target.step(&mut tree, 0).unwrap() {
            Need::Step => {}
            Need::Manifest(_) => {
                session.pages().unwrap().for_each(|page| target.take_page(page.unwrap()).unwrap());
            }
            Need::Chunks(request) => {
                let hashes = hashes_from_wire(&request.hashes).unwrap();
                // Only what a batch may hold is in memory at a time.
                assert!(hashes.len() * (64 << 10) < 16 << 20, "{} chunks", hashes.len());
                for hash in hashes {
                    target.take_chunk(session.chunk(&source, hash).unwrap()).unwrap();
                }
            }
            Need::Done => break,
        }
        seen.push(target.progress());
    }
    seen.push(target.progress());
    assert!(seen.is_sorted_by_key(|progress| (progress.phase, progress.bytes_done, progress.files)));
    assert_eq!(seen.iter().map(|progress| progress.phase).collect::<BTreeSet<_>>().len(), 6);
    let end = seen[seen.len() - 1];
    assert_eq!((end.bytes_done, end.bytes_sent, end.bytes_total, end.files), (20_000_000, 20_000_000, 20_000_000, 20));
}

#[test]
fn a_hundred_thousand_small_files_take_few_calls() {
    let mut source = MemoryTree::new();
    for folder in 0..100 {
        source.create(&path(&format!("{folder}")), New::Folder).unwrap();
        for file in 0..1000 {
            write(&mut source, &path(&format!("{folder}/{file}")), format!("{folder} {file}").as_bytes());
        }
    }
    let (mut target, mut session, mut previous) = (MemoryTree::new(), SourceSession::new(), None);
    let report = copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
    assert_eq!(report.files, 100_000);
    // Nothing changed but one file: nothing else is sent, or written.
    source.write(&path("7/7"), 0, b"changed").unwrap();
    let report = copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
    assert_eq!((report.files, report.bytes_sent), (1, 7));
    assert!(report.is_equal());
}

#[test]
fn a_sparse_gigabyte_is_neither_read_nor_written() {
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    let file = path("disk.img");
    source.create(&file, New::File).unwrap();
    source.set_size(&file, 1 << 30).unwrap();
    source.write(&file, 512 << 20, &[7; 8192]).unwrap();
    let report = copy(&mut source, &mut target, true).unwrap();
    assert!(report.bytes_sent < 600 << 10, "{} bytes", report.bytes_sent);
    let data = target.next_data(&file, 0).unwrap().unwrap();
    assert_eq!(data, (512 << 20)..(512 << 20) + 8192);
    assert_eq!(target.next_data(&file, data.end).unwrap(), None);
    assert_eq!(target.stat(&file).unwrap().unwrap().size, 1 << 30);
}
