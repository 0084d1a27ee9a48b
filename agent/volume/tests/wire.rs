//! What crosses the wire: pages are small and complete, and what a peer could forge is refused.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod support;

use std::sync::Arc;

use bytes::Bytes;
use cara_proto::volume as pb;
use cara_proto::volume::entry::Body;
use cara_volume::tree::{New, Tree};
use cara_volume::wire::{Assembler, PAGE_BYTES_MAX, Pages, pack, unpack};
use cara_volume::{CHUNK_BYTES_MAX, Manifest, MemoryTree, Need, SourceSession, TargetSession, VolumeError};
use prost::Message;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use support::*;

fn pages_of(tree: &MemoryTree) -> Vec<pb::ManifestPage> {
    Pages::new(Arc::new(scan(tree))).map(|page| page.unwrap()).collect()
}

fn assemble(pages: Vec<pb::ManifestPage>) -> Result<Manifest, VolumeError> {
    let mut assembler = Assembler::new();
    for page in pages {
        if let Some(manifest) = assembler.take(page)? {
            return Ok(manifest);
        }
    }
    panic!("there was no last page");
}

#[test]
fn manifests_survive_the_wire() {
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut tree = MemoryTree::new();
        for _ in 0..30 {
            mutate(&mut tree, &mut rng);
        }
        let (manifest, arrived) = (scan(&tree), assemble(pages_of(&tree)).unwrap());
        assert_eq!(manifest.first_difference(&arrived), None);
        assert_eq!(manifest.digest(), arrived.digest());
    }
}

#[test]
fn a_large_manifest_comes_in_pages_of_at_most_a_megabyte() {
    let mut tree = MemoryTree::new();
    // 16 GiB of hole are 65,536 chunks, 2.3 MiB in one entry; 20,000 files are some more.
    tree.create(&path("large"), New::File).unwrap();
    tree.set_size(&path("large"), 16 << 30).unwrap();
    for i in 0..20_000 {
        write(&mut tree, &path(&format!("{i}")), format!("{i}").as_bytes());
    }
    let pages = pages_of(&tree);
    assert!(pages.len() > 3);
    let lengths: Vec<usize> = pages.iter().map(Message::encoded_len).collect();
    assert!(lengths.iter().all(|length| *length <= PAGE_BYTES_MAX), "{lengths:?}");
    assert!(lengths[..lengths.len() - 1].iter().all(|length| *length > PAGE_BYTES_MAX / 2), "{lengths:?}");
    assert_eq!(assemble(pages).unwrap().digest(), scan(&tree).digest());
}

fn entry(path: &[u8], body: Body) -> pb::Entry {
    pb::Entry { path: Bytes::copy_from_slice(path), body: Some(body), meta: None }
}

fn refusal(entries: Vec<pb::Entry>) -> String {
    let root = entry(b"", Body::Folder(pb::Folder {}));
    let entries = std::iter::once(root).chain(entries).collect();
    let page = pb::ManifestPage { entries, last: true, ..pb::ManifestPage::default() };
    assemble(vec![page]).unwrap_err().to_string()
}

#[test]
fn manifests_that_lead_out_of_the_volume_are_refused() {
    let file = || Body::File(pb::File::default());
    for name in [&b"../a"[..], b"/etc/passwd", b"..", b"a/../../b", b"a\0"] {
        assert!(refusal(vec![entry(name, file())]).contains("refused"), "{}", name.escape_ascii());
    }
    let symlink = entry(b"a", Body::Symlink(Bytes::from_static(b"/etc")));
    assert!(refusal(vec![symlink, entry(b"a/passwd", file())]).contains("lies in no folder"));
    assert!(refusal(vec![entry(b"a", Body::HardLink(Bytes::from_static(b"../b")))]).contains("refused"));
    assert!(refusal(vec![entry(b"a", Body::HardLink(Bytes::from_static(b"b")))]).contains("another name of nothing"));
}

#[test]
fn manifests_that_contradict_themselves_are_refused() {
    let file = |size, hashes: usize, lengths: &[u32]| {
        let chunks = pb::Chunks { hashes: vec![0; hashes].into(), lengths: lengths.to_vec() };
        Body::File(pb::File { size, chunks: Some(chunks) })
    };
    assert!(refusal(vec![entry(b"b", file(0, 0, &[])), entry(b"a", file(0, 0, &[]))]).contains("out of order"));
    assert!(refusal(vec![entry(b"a", file(0, 0, &[])), entry(b"a", file(0, 0, &[]))]).contains("out of order"));
    assert!(refusal(vec![entry(b"a", file(5, 32, &[4]))]).contains("don't make up"));
    assert!(refusal(vec![entry(b"a", file(0, 32, &[0]))]).contains("don't make up"));
    assert!(refusal(vec![entry(b"a", file(1 << 20, 32, &[1 << 20]))]).contains("don't make up"));
    assert!(refusal(vec![entry(b"a", file(5, 33, &[5]))]).contains("cut off"));
    assert!(refusal(vec![entry(b"a", file(5, 64, &[5]))]).contains("more hashes than lengths"));
    assert!(refusal(vec![entry(b"a/b", file(0, 0, &[]))]).contains("lies in no folder"));
    assert!(refusal(vec![pb::Entry::default()]).contains("no body"));
    assert!(refusal(vec![entry(b"a", Body::Fifo(pb::Fifo {}))]).contains("digest"));
    let more = Body::More(pb::Chunks { hashes: vec![0; 32].into(), lengths: vec![1] });
    assert!(refusal(vec![entry(b"", more)]).contains("chunks without a file"));
}

/// A target that waits for the chunks of a source with one file.
fn waiting(tree: &mut MemoryTree, source: &MemoryTree) -> (TargetSession, pb::ChunksRequest) {
    let mut target = TargetSession::new(round(1, true), None, 0);
    loop {
        match target.step(tree, 0).unwrap() {
            Need::Step => {}
            Need::Manifest(_) => pages_of(source).into_iter().for_each(|page| target.take_page(page).unwrap()),
            Need::Chunks(request) => return (target, request),
            Need::Done => panic!("nothing was asked for"),
        }
    }
}

#[test]
fn damaged_chunks_are_refused_and_asked_for_again() {
    let (mut source, mut tree) = (MemoryTree::new(), MemoryTree::new());
    write(&mut source, &path("a"), b"content");
    let (mut target, request) = waiting(&mut tree, &source);
    let chunk =
        |data: &'static [u8]| pb::Chunk { hash: request.hashes.clone(), data: data.into(), ..pb::Chunk::default() };
    assert!(matches!(target.take_chunk(chunk(b"damaged")), Err(VolumeError::Corrupt { .. })));
    assert!(matches!(target.take_chunk(chunk(b"")), Err(VolumeError::Corrupt { .. })));
    let other = pb::Chunk { hash: vec![1; 32].into(), ..pb::Chunk::default() };
    assert!(matches!(target.take_chunk(other), Err(VolumeError::Unasked { .. })));
    assert!(!dump(&tree).iter().any(|line| line.contains("damaged")));
    assert_eq!(target.step(&mut tree, 0).unwrap(), Need::Chunks(request.clone()));
    target.take_chunk(chunk(b"content")).unwrap();
    while target.step(&mut tree, 0).unwrap() != Need::Done {}
    assert!(target.finish().unwrap().0.is_equal());
    assert_same(&source, &tree);
}

#[test]
fn the_name_that_rounds_keep_for_themselves_is_refused_at_the_source() {
    let (mut source, mut target) = (MemoryTree::new(), MemoryTree::new());
    source.create(&cara_volume::receive::staging(), New::Folder).unwrap();
    assert!(copy(&mut source, &mut target, true).unwrap_err().to_string().contains("rename it"));
}

#[test]
fn a_source_answers_only_from_its_manifest() {
    let mut source = MemoryTree::new();
    write(&mut source, &path("a"), b"content");
    let session = SourceSession::new();
    assert!(session.chunk(&source, cara_volume::Hash::of(b"content")).unwrap().gone);
    assert!(session.pages().is_err());
}

#[test]
fn small_chunks_travel_together_and_come_out_in_order() {
    let chunk = |i: u8, length: usize| pb::Chunk {
        hash: vec![i; 32].into(),
        data: vec![i; length].into(),
        ..pb::Chunk::default()
    };
    let gone = pb::Chunk { hash: vec![9; 32].into(), gone: true, ..pb::Chunk::default() };
    let mut chunks: Vec<_> = (0..200).map(|i| chunk(i, 1000)).collect();
    chunks.extend([gone, chunk(201, CHUNK_BYTES_MAX), chunk(202, CHUNK_BYTES_MAX), chunk(203, 200_000)]);
    chunks.extend((204..=255).map(|i| chunk(i, 1500)));
    let messages = pack(chunks.clone());
    assert_eq!(messages.iter().map(|message| message.more.len()).collect::<Vec<_>>(), [200, 0, 0, 40, 11]);
    let longest = chunk(0, CHUNK_BYTES_MAX).encoded_len();
    assert!(messages.iter().all(|message| message.encoded_len() <= longest));
    let arrived = messages.into_iter().map(|message| pb::Chunk::decode(message.encode_to_vec().as_slice()).unwrap());
    assert_eq!(arrived.flat_map(unpack).collect::<Vec<_>>(), chunks);
}
