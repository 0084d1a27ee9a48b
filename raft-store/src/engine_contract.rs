//! What every [`Engine`] must keep, as one check that the tests of each engine call. What happens at a crash is not in
//! it: a process can't lose its own power.

use std::sync::Arc;

use cara_env::{Batch, Cf, Engine};

fn put(cf: Cf, key: &[u8], value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(cf, key, value);
    batch
}

fn keys(engine: &dyn Engine, cf: Cf, from: &[u8], to: Option<&[u8]>, limit: usize) -> Vec<Vec<u8>> {
    engine.scan(cf, from, to, limit).expect("scan").into_iter().map(|(key, _)| key).collect()
}

/// Checks an empty engine against the contract; leaves data in it.
///
/// # Panics
/// Panics on the first broken promise and names it.
#[doc(hidden)]
pub async fn check(engine: Arc<dyn Engine>) {
    reads(&*engine);
    batches(&*engine);
    ranges(&*engine);
    engine.sync().await.expect("sync");
    // Many at once: all are answered, and a sync with nothing to do is fine.
    let many: Vec<_> = (0..32_u8)
        .map(|n| {
            let engine = engine.clone();
            async move {
                engine.write(&put(Cf::Meta, &[n], b"x")).expect("write");
                engine.sync().await.expect("concurrent sync");
            }
        })
        .collect();
    futures_util::future::join_all(many).await;
    assert_eq!(keys(&*engine, Cf::Meta, &[], None, 100).len(), 32, "all writes of concurrent callers are there");
}

fn reads(engine: &dyn Engine) {
    for cf in Cf::ALL {
        assert_eq!(engine.get(cf, b"a").expect("get"), None, "an empty family has no key");
        assert_eq!(engine.last(cf).expect("last"), None, "an empty family has no last key");
        assert!(keys(engine, cf, &[], None, 10).is_empty(), "an empty family has nothing to scan");
    }
    engine.write(&put(Cf::State, b"k", b"1")).expect("write");
    assert_eq!(engine.get(Cf::State, b"k").expect("get"), Some(b"1".to_vec()), "a write is visible at once");
    assert_eq!(engine.get(Cf::Log, b"k").expect("get"), None, "families are apart");
    engine.write(&put(Cf::State, b"k", b"")).expect("write");
    assert_eq!(engine.get(Cf::State, b"k").expect("get"), Some(Vec::new()), "an empty value is a value");
    let mut batch = Batch::new();
    batch.delete(Cf::State, b"k".to_vec());
    batch.delete(Cf::State, b"missing".to_vec());
    engine.write(&batch).expect("deleting a missing key is fine");
    assert_eq!(engine.get(Cf::State, b"k").expect("get"), None, "deleted");
}

fn batches(engine: &dyn Engine) {
    let mut batch = Batch::new();
    batch.put(Cf::State, b"a".to_vec(), b"1".to_vec());
    batch.delete(Cf::State, b"a".to_vec());
    batch.put(Cf::State, b"a".to_vec(), b"2".to_vec());
    batch.put(Cf::Log, b"a".to_vec(), b"3".to_vec());
    engine.write(&batch).expect("write");
    assert_eq!(engine.get(Cf::State, b"a").expect("get"), Some(b"2".to_vec()), "a batch is applied in its order");
    assert_eq!(engine.get(Cf::Log, b"a").expect("get"), Some(b"3".to_vec()), "a batch reaches several families");
    engine.write(&Batch::new()).expect("an empty batch is fine");
}

fn ranges(engine: &dyn Engine) {
    for index in [1_u64, 2, 3, 255, 256, 70_000] {
        engine.write(&put(Cf::Snapshot, &index.to_be_bytes(), b"x")).expect("write");
    }
    let be = |index: u64| index.to_be_bytes().to_vec();
    let all = keys(engine, Cf::Snapshot, &[], None, 10);
    assert_eq!(all, [1, 2, 3, 255, 256, 70_000].map(be), "keys come in order");
    assert_eq!(keys(engine, Cf::Snapshot, &be(2), Some(&be(255)), 10), [2, 3].map(be), "from is in, to is out");
    assert_eq!(keys(engine, Cf::Snapshot, &be(2), None, 2), [2, 3].map(be), "the limit holds");
    assert!(keys(engine, Cf::Snapshot, &be(9), Some(&be(2)), 10).is_empty(), "an inverted range is empty");
    assert!(keys(engine, Cf::Snapshot, &[], None, 0).is_empty(), "a limit of nothing gives nothing");
    assert_eq!(engine.last(Cf::Snapshot).expect("last").map(|(key, _)| key), Some(be(70_000)), "the greatest key");
    let mut batch = Batch::new();
    batch.delete_range(Cf::Snapshot, be(2), be(256));
    batch.delete_range(Cf::Snapshot, be(9), be(2));
    batch.put(Cf::Snapshot, be(3), b"again".to_vec());
    engine.write(&batch).expect("an inverted range deletes nothing");
    assert_eq!(keys(engine, Cf::Snapshot, &[], None, 10), [1, 3, 256, 70_000].map(be), "from is gone, to stays");
}
