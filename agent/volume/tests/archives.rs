//! Archives: what goes out comes back, other tools agree, and archives that climb out are refused.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod support;

use cara_volume::archive::{tar_to_tree, tree_to_tar};
use cara_volume::tree::{Meta, New, Tree};
use cara_volume::{MemoryTree, VolumeError, VolumePath};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use support::*;
use tar::{Builder, EntryType, Header};

fn pack(tree: &dyn Tree) -> Vec<u8> {
    tree_to_tar(tree, &VolumePath::root(), Vec::new()).unwrap()
}

fn unpack(archive: &[u8]) -> Result<MemoryTree, VolumeError> {
    let mut tree = MemoryTree::new();
    tar_to_tree(archive, &VolumePath::root(), &mut tree)?;
    Ok(tree)
}

#[test]
fn what_goes_out_comes_back() {
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut tree = MemoryTree::new();
        for _ in 0..40 {
            mutate(&mut tree, &mut rng);
        }
        assert_eq!(dump(&tree), dump(&unpack(&pack(&tree)).unwrap()), "seed {seed}");
        let prefix = path("some/where");
        let mut back = MemoryTree::new();
        tar_to_tree(&tree_to_tar(&tree, &prefix, Vec::new()).unwrap()[..], &prefix, &mut back).unwrap();
        assert_eq!(dump(&tree), dump(&back), "seed {seed}, under a prefix");
    }
}

#[test]
fn long_names_odd_bytes_devices_and_binary_attributes_come_back() {
    let mut tree = MemoryTree::new();
    let folder = path(&"f".repeat(150));
    tree.create(&folder, New::Folder).unwrap();
    let file = folder.join(b"\xff\n=").unwrap();
    write(&mut tree, &file, b"x");
    tree.create(&folder.join(b"link").unwrap(), New::HardLink(&file)).unwrap();
    tree.create(&path("symlink"), New::Symlink(&[b'.'; 300])).unwrap();
    tree.create(&path("odd"), New::Symlink(b".//a/./../")).unwrap();
    tree.create(&path("device"), New::CharDevice(0xabc8_5689)).unwrap();
    let mut meta = Meta { mode: 0o6755, uid: 3_000_000_000, gid: 7, mtime_ns: -1, ..Meta::default() };
    meta.xattrs.insert(b"security.capability".to_vec(), b"\n\0=\n\n1 2=3\n".to_vec());
    tree.set_meta(&file, &meta).unwrap();
    assert_eq!(dump(&tree), dump(&unpack(&pack(&tree)).unwrap()));
}

/// Name, kind, link, content.
type Entry<'a> = (&'a str, EntryType, &'a str, &'a [u8]);

/// An archive as other tools write it, by the `tar` crate.
fn foreign(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, link, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o640);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(5);
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn the_prefix_that_docker_writes_is_taken_off() {
    let archive = foreign(&[
        ("data/", EntryType::Directory, "", b""),
        ("data/a", EntryType::Regular, "", b"content"),
        ("data/b", EntryType::Link, "data/a", b""),
    ]);
    let mut tree = MemoryTree::new();
    tar_to_tree(archive.as_slice(), &path("data"), &mut tree).unwrap();
    assert_eq!(content(&tree, &path("b")), b"content");
    let stat = tree.stat(&path("")).unwrap().unwrap();
    assert_eq!((stat.mode, stat.mtime_ns), (0o640, 5_000_000_000));
    let refused = tar_to_tree(archive.as_slice(), &path("other"), &mut tree).unwrap_err().to_string();
    assert!(refused.contains("lies outside"), "{refused}");
}

#[test]
fn gnu_long_names_are_understood() {
    let name = format!("{}/{}", "a".repeat(120), "b".repeat(200));
    let mut builder = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    header.set_entry_type(EntryType::Directory);
    builder.append_data(&mut header, "a".repeat(120), std::io::empty()).unwrap();
    header.set_entry_type(EntryType::Regular);
    header.set_size(1);
    builder.append_data(&mut header, &name, &b"x"[..]).unwrap();
    let tree = unpack(&builder.into_inner().unwrap()).unwrap();
    assert_eq!(content(&tree, &path(&name)), b"x");
}

#[test]
fn archives_that_climb_out_are_refused() {
    let symlink = ("a", EntryType::Symlink, "/etc", &b""[..]);
    let cases: [(&[Entry<'_>], &str); 8] = [
        (&[("../a", EntryType::Regular, "", b"x")], "is refused"),
        (&[("/etc/passwd", EntryType::Regular, "", b"x")], "is refused"),
        (&[("a/../../b", EntryType::Regular, "", b"x")], "is refused"),
        (&[("./", EntryType::Symlink, "/etc", b"")], "the root is no folder"),
        (&[(".", EntryType::Regular, "", b"x")], "the root is no folder"),
        (&[symlink, ("a/passwd", EntryType::Regular, "", b"x")], "not a directory"),
        (&[("b", EntryType::Link, "/etc/passwd", b"")], "is refused"),
        (&[symlink, ("b", EntryType::Link, "a/passwd", b"")], "not a directory"),
    ];
    for (case, reason) in cases {
        let refused = unpack(&foreign(case)).unwrap_err().to_string();
        assert!(refused.contains(reason), "{case:?}: {refused}");
    }
}

#[test]
fn damaged_archives_are_refused() {
    let mut tree = MemoryTree::new();
    write(&mut tree, &path("a"), &[7; 10_000]);
    let archive = pack(&tree);
    for length in [100, 512, 1000, 1600, 5000] {
        assert!(unpack(&archive[..length]).is_err(), "cut off at {length}");
    }
    let mut flipped = archive.clone();
    flipped[100] ^= 1;
    assert!(unpack(&flipped).unwrap_err().to_string().contains("checksum"));
    assert!(unpack(&foreign(&[("a", EntryType::GNUSparse, "", b"x")])).is_err());
}

/// Holes are zeros in the archive and holes again afterwards.
#[test]
fn holes_come_back() {
    let mut tree = MemoryTree::new();
    write(&mut tree, &path("a"), b"head");
    tree.set_size(&path("a"), 1 << 20).unwrap();
    let back = unpack(&pack(&tree)).unwrap();
    assert_eq!(back.next_data(&path("a"), 0).unwrap(), Some(0..4096));
    assert_eq!(back.next_data(&path("a"), 4096).unwrap(), None);
}

#[cfg(target_os = "linux")]
#[test]
fn the_tar_of_the_system_reads_and_writes_the_same() {
    use cara_volume::FolderTree;
    use std::process::Command;

    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut tree = MemoryTree::new();
    for _ in 0..40 {
        mutate(&mut tree, &mut rng);
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive.tar");
    let content = folder.path().join("content");
    std::fs::create_dir(&content).unwrap();
    std::fs::write(&archive, pack(&tree)).unwrap();
    let status = Command::new("tar")
        .args(["--xattrs", "--xattrs-include=*", "--numeric-owner", "-xpf"])
        .arg(&archive)
        .arg("-C")
        .arg(&content)
        .status()
        .unwrap();
    assert!(status.success());
    let extracted = FolderTree::open(&content).unwrap().without_sync();
    assert_eq!(dump(&tree), dump(&extracted));
    let status = Command::new("tar")
        .args(["--xattrs", "--xattrs-include=*", "--numeric-owner", "--format=posix", "-cf"])
        .arg(&archive)
        .arg("-C")
        .arg(&content)
        .arg(".")
        .status()
        .unwrap();
    assert!(status.success());
    // Into a folder again: without root, nobody's owners are kept.
    let back = folder.path().join("back");
    std::fs::create_dir(&back).unwrap();
    let mut back = FolderTree::open(&back).unwrap().without_sync();
    tar_to_tree(std::fs::File::open(&archive).unwrap(), &VolumePath::root(), &mut back).unwrap();
    assert_eq!(dump(&tree), dump(&back));
}
