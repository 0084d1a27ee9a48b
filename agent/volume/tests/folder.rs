//! The folder on the host: the same contract as the tree in memory, and no way out of it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod support;

use std::cell::Cell;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use cara_volume::tree::{Kind, Meta, New, Tree};
use cara_volume::{FolderTree, Manifest, MemoryTree, SourceSession, TreeError, VolumePath};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::*;

fn open(folder: &tempfile::TempDir) -> FolderTree {
    FolderTree::open(folder.path()).unwrap().without_sync()
}

fn folder() -> (tempfile::TempDir, FolderTree) {
    let folder = tempfile::tempdir().unwrap();
    let tree = open(&folder);
    (folder, tree)
}

fn change(tree: &mut dyn Tree, rng: &mut ChaCha8Rng, changes: usize) {
    for _ in 0..changes {
        mutate(tree, rng);
    }
}

#[test]
fn every_round_between_folders_ends_with_an_equal_copy() {
    for seed in 0..25 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let ((_a, mut source), (_b, mut target)) = (folder(), folder());
        let mut session = SourceSession::new();
        let mut previous: Option<Arc<Manifest>> = None;
        for number in 0..4 {
            let changes = rng.random_range(1..20);
            change(&mut source, &mut rng, changes);
            if number > 0 && rng.random_bool(0.3) {
                mutate(&mut target, &mut rng);
            }
            // The folders' own clock is not known here: nothing counts as long unchanged.
            let report = copy_again((&mut source, &mut session), &mut target, &mut previous, 0);
            assert!(report.is_equal(), "seed {seed}, round {number}");
            assert_eq!(dump(&source), dump(&target), "seed {seed}, round {number}");
        }
    }
}

#[test]
fn a_folder_and_a_tree_in_memory_are_copied_to_each_other() {
    for seed in 0..10 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut source, (_a, mut middle), mut target) = (MemoryTree::new(), folder(), MemoryTree::new());
        change(&mut source, &mut rng, 30);
        copy(&mut source, &mut middle, true).unwrap();
        copy(&mut middle, &mut target, true).unwrap();
        assert_eq!(dump(&source), dump(&target), "seed {seed}");
        assert_eq!(dump(&source), dump(&middle), "seed {seed}");
    }
}

#[test]
fn a_crash_after_any_change_of_a_folder_leaves_one_from_which_the_next_round_gets_there() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut source, mut before) = (MemoryTree::new(), MemoryTree::new());
    change(&mut source, &mut rng, 15);
    copy(&mut source, &mut before, true).unwrap();
    change(&mut source, &mut rng, 15);
    for changes in 0.. {
        let (_folder, mut target) = folder();
        copy(&mut before, &mut target, true).unwrap();
        let mut crashing = Crashing { inner: &mut target, changes_left: Cell::new(changes) };
        let is_over = copy(&mut source, &mut crashing, true).is_ok();
        copy(&mut source, &mut target, true).unwrap();
        assert_eq!(dump(&source), dump(&target), "crash after {changes} changes");
        if is_over {
            break;
        }
    }
}

#[test]
fn two_thousand_small_files_arrive_and_are_not_read_again() {
    let ((_a, mut source), (_b, mut target)) = (folder(), folder());
    for i in 0..2000 {
        if i % 100 == 0 {
            source.create(&path(&format!("{}", i / 100)), New::Folder).unwrap();
        }
        write(&mut source, &path(&format!("{}/{i}", i / 100)), format!("{i}").as_bytes());
    }
    let (mut session, mut previous) = (SourceSession::new(), None);
    let report = copy_again((&mut source, &mut session), &mut target, &mut previous, LATER_NS);
    assert_eq!((report.files, report.is_equal()), (2000, true));
    let report = copy_again((&mut source, &mut session), &mut target, &mut previous, LATER_NS);
    assert_eq!((report.files, report.bytes_sent), (0, 0));
    assert_same(&source, &target);
}

#[test]
fn holes_stay_holes() {
    let ((a, mut source), (b, mut target)) = (folder(), folder());
    write(&mut source, &path("sparse"), b"head");
    source.set_size(&path("sparse"), 64 << 20).unwrap();
    source.write(&path("sparse"), 32 << 20, &[7; 100_000]).unwrap();
    let report = copy(&mut source, &mut target, true).unwrap();
    assert!(report.bytes_sent < 1 << 20, "{} bytes", report.bytes_sent);
    let blocks = |folder: &tempfile::TempDir| folder.path().join("sparse").metadata().unwrap().blocks() * 512;
    assert!(blocks(&b) <= blocks(&a) + 8192, "{} and {}", blocks(&a), blocks(&b));
    // A hole punched later arrives as well, in place.
    source.write(&path("sparse"), 40 << 20, &[8; 8 << 20]).unwrap();
    copy(&mut source, &mut target, true).unwrap();
    source.punch(&path("sparse"), 41 << 20..47 << 20).unwrap();
    copy(&mut source, &mut target, true).unwrap();
    assert!(blocks(&b) < 3 << 20, "{}", blocks(&b));
    assert_same(&source, &target);
}

/// Every operation on a path that leads through a symbolic link to the outside.
fn try_everything(tree: &mut FolderTree, through: &VolumePath) -> Vec<Result<(), TreeError>> {
    let mut buffer = [0; 10];
    vec![
        tree.list(through, b"", 10).map(drop),
        tree.read(through, 0, &mut buffer).map(drop),
        tree.next_data(through, 0).map(drop),
        tree.write(through, 0, b"x"),
        tree.punch(through, 0..4096),
        tree.set_size(through, 0),
    ]
}

#[test]
fn no_operation_follows_a_link_out_of_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    std::fs::set_permissions(outside.path().join("secret"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let (inside, mut tree) = folder();
    symlink(outside.path(), inside.path().join("folder")).unwrap();
    symlink(outside.path().join("secret"), inside.path().join("file")).unwrap();
    symlink("..", inside.path().join("up")).unwrap();
    write(&mut tree, &path("own"), b"own");

    for name in ["folder", "file", "up", "folder/secret"] {
        for (i, result) in try_everything(&mut tree, &path(name)).into_iter().enumerate() {
            assert!(result.is_err(), "operation {i} on {name}");
        }
    }
    let secret = path("folder/secret");
    assert_eq!(tree.stat(&secret).unwrap(), None);
    assert_eq!(tree.stat(&path("file")).unwrap().unwrap().kind, Kind::Symlink);
    assert!(tree.xattrs(&secret).is_err() && tree.link_target(&secret).is_err());
    assert!(tree.create(&path("folder/new"), New::File).is_err());
    assert!(tree.create(&path("file"), New::File).is_err());
    assert!(tree.create(&path("stolen"), New::HardLink(&secret)).is_err());
    assert!(tree.rename(&secret, &path("stolen")).is_err());
    assert!(tree.rename(&path("own"), &path("folder/own")).is_err());
    assert!(tree.remove(&secret).is_err());
    assert!(tree.set_meta(&secret, &Meta { mode: 0o777, ..Meta::default() }).is_err());
    // Of the link itself, not of what it points at.
    tree.set_meta(&path("file"), &Meta { mode: 0o777, mtime_ns: 5_000_000_001, ..Meta::default() }).unwrap();
    assert_eq!(tree.stat(&path("file")).unwrap().unwrap().mtime_ns, 5_000_000_001);

    let secret = outside.path().join("secret");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(secret.metadata().unwrap().mode() & 0o7777, 0o640);
    assert_ne!(secret.metadata().unwrap().mtime(), 5);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    // A scan describes links and doesn't enter them.
    assert_eq!(scan(&tree).entries().len(), 5);
}

#[test]
fn a_target_full_of_links_is_replaced_and_what_they_point_at_is_left_alone() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("a"), "outside").unwrap();
    let (inside, mut target) = folder();
    for name in ["folder", ".cara-receive"] {
        symlink(outside.path(), inside.path().join(name)).unwrap();
    }
    symlink(outside.path().join("a"), inside.path().join("a")).unwrap();
    let mut source = MemoryTree::new();
    source.create(&path("folder"), New::Folder).unwrap();
    write(&mut source, &path("folder/a"), b"inside");
    write(&mut source, &path("a"), b"inside");
    copy(&mut source, &mut target, true).unwrap();
    assert_same(&source, &target);
    assert_eq!(std::fs::read_to_string(outside.path().join("a")).unwrap(), "outside");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn attributes_and_set_id_bits_arrive_where_the_file_system_has_them() {
    let ((_a, mut source), (_b, mut target)) = (folder(), folder());
    write(&mut source, &path("a"), b"x");
    let mut meta = Meta { mode: 0o6755, mtime_ns: -1_500_000_000, ..Meta::default() };
    meta.xattrs.insert(b"user.binary".to_vec(), b"\n\0\xff".to_vec());
    match source.set_meta(&path("a"), &meta) {
        Ok(()) => {}
        Err(error) if error.source.kind() == std::io::ErrorKind::Unsupported => meta.xattrs.clear(),
        Err(error) => panic!("{error}"),
    }
    source.set_meta(&path("a"), &meta).unwrap();
    copy(&mut source, &mut target, true).unwrap();
    let stat = target.stat(&path("a")).unwrap().unwrap();
    assert_eq!(Meta::read(&target, &path("a"), &stat).unwrap(), meta);
    // One that is gone at the source goes at the target.
    meta.xattrs.clear();
    source.set_meta(&path("a"), &meta).unwrap();
    copy(&mut source, &mut target, true).unwrap();
    assert!(target.xattrs(&path("a")).unwrap().is_empty());
}

#[test]
fn sockets_are_left_out_and_pipes_do_not_block() {
    let ((a, mut source), (_b, mut target)) = (folder(), folder());
    let _socket = std::os::unix::net::UnixListener::bind(a.path().join("socket")).unwrap();
    source.create(&path("pipe"), New::Fifo).unwrap();
    assert!(source.read(&path("pipe"), 0, &mut [0; 10]).is_err());
    copy(&mut source, &mut target, true).unwrap();
    assert!(target.stat(&path("socket")).unwrap().is_none());
    assert_eq!(target.stat(&path("pipe")).unwrap().unwrap().kind, Kind::Fifo);
}

#[test]
fn a_large_folder_is_listed_in_parts() {
    let (_folder, mut tree) = folder();
    let names: Vec<String> = (0..250).map(|i| format!("{i:03}")).collect();
    for name in names.iter().rev() {
        tree.create(&path(name), New::File).unwrap();
    }
    let (mut listed, mut after) = (Vec::new(), Vec::new());
    loop {
        let part = tree.list(&path(""), &after, 100).unwrap();
        let is_last = part.len() < 100;
        listed.extend(part);
        if is_last {
            break;
        }
        after = listed.last().unwrap().clone();
    }
    let listed: Vec<String> = listed.into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
    assert_eq!(listed, names);
}

#[test]
fn a_folder_that_gives_way_to_another_is_not_mistaken_for_it() {
    let (_folder, mut tree) = folder();
    tree.create(&path("a"), New::Folder).unwrap();
    tree.create(&path("a/in"), New::Folder).unwrap();
    write(&mut tree, &path("a/in/old"), b"old");
    tree.rename(&path("a"), &path("b")).unwrap();
    tree.create(&path("a"), New::Folder).unwrap();
    tree.create(&path("a/in"), New::Folder).unwrap();
    write(&mut tree, &path("a/in/new"), b"new");
    assert!(tree.stat(&path("a/in/old")).unwrap().is_none());
    assert!(tree.stat(&path("b/in/old")).unwrap().is_some());
    tree.remove(&path("a/in/new")).unwrap();
    tree.remove(&path("a/in")).unwrap();
    assert!(tree.stat(&path("a/in/new")).unwrap().is_none());
    tree.create(&path("a/in"), New::Folder).unwrap();
    write(&mut tree, &path("a/in/again"), b"again");
    assert_eq!(content(&tree, &path("a/in/again")), b"again");
}

#[test]
fn errors_say_what_and_where() {
    let (_folder, mut tree) = folder();
    let error = tree.write(&path("missing/file"), 0, b"x").unwrap_err().to_string();
    assert_eq!(error, "can't write \"missing/file\" of the volume: No such file or directory (os error 2)");
    assert!(FolderTree::open(Path::new("/nowhere/at/all")).is_err());
    assert!(tree.remove(&path("")).is_err());
}

#[test]
fn what_was_written_can_be_synced() {
    let folder = tempfile::tempdir().unwrap();
    let mut tree = FolderTree::open(folder.path()).unwrap();
    write(&mut tree, &path("a"), b"x");
    tree.sync().unwrap();
}
