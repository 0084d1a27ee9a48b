//! The domain without network and disk: what a server does for each entry, each pass and each restart.

#[path = "../src/growth/fleet.rs"]
mod fleet;

use std::hint::black_box;

use cara_core::reconcile::{Settings, reconcile};
use cara_core::{State, codec};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use fleet::{Made, app, labels};

/// The largest fleet that a cluster lets in.
const NODES: usize = 10_000;
/// Entries of a log that is read again after a restart: what is kept between two snapshots.
const LOG: u64 = 50_000;

fn apply(c: &mut Criterion) {
    let mut made = Made::with_nodes(NODES);
    let mut number = 0;
    c.bench_function("apply/labels", |b| {
        b.iter(|| {
            number += 1;
            made.apply(&labels(usize::try_from(number).unwrap_or_default() % NODES, number));
        });
    });
    c.bench_function("apply/place", |b| {
        b.iter_batched(
            || (Made::with_nodes(1_000), 0_u64),
            |(mut made, _)| {
                (0..100).for_each(|number| made.apply(&app(number)));
                made
            },
            BatchSize::LargeInput,
        );
    });
}

fn passes(c: &mut Criterion) {
    let made = Made::with_nodes(NODES);
    let (heard, settings) = (made.heard(), Settings::default());
    c.bench_function("reconcile/10000_nodes_nothing_changed", |b| {
        b.iter(|| black_box(reconcile(&made.state, &heard, &settings, 1_001_000)));
    });
}

fn wire(c: &mut Criterion) {
    let made = Made::with_nodes(1);
    let bytes = made.entry(&labels(0, 1));
    let entry = codec::decode_entry(&bytes).expect("what was written can be read");
    c.bench_function("codec/encode_entry", |b| b.iter(|| black_box(codec::encode_entry(black_box(&entry)))));
    c.bench_function("codec/decode_entry", |b| b.iter(|| black_box(codec::decode_entry(black_box(&bytes)))));
}

fn restarts(c: &mut Criterion) {
    let mut group = c.benchmark_group("restart");
    group.sample_size(10);
    for nodes in [1_000, NODES] {
        let made = Made::with_nodes(nodes);
        group.bench_function(BenchmarkId::new("write_snapshot", nodes), |b| b.iter(|| black_box(made.state.dump())));
        let pairs = made.state.dump();
        group.bench_function(BenchmarkId::new("from_snapshot", nodes), |b| {
            b.iter(|| black_box(State::load(pairs.iter().map(|(key, value)| (key, value)))));
        });
    }
    let made = Made::with_nodes(1_000);
    let log: Vec<Vec<u8>> = (1..=LOG).map(|number| made.entry(&labels((number % 1_000) as usize, number))).collect();
    group.bench_function(BenchmarkId::new("from_log", LOG), |b| {
        b.iter_batched(
            || Made::with_nodes(1_000),
            |mut made| {
                log.iter().for_each(|bytes| made.apply_bytes(bytes));
                made
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, apply, passes, wire, restarts);
criterion_main!(benches);
