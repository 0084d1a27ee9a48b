//! What the ledger takes and what it refuses.

use cara_env::RealFiles;
use cara_proto::workload::Assignment;

use super::*;

fn desired(fence: (u64, u64, u64), generations: &[(&str, u64)]) -> Desired {
    let (incarnation, term, revision) = fence;
    let assignment =
        |&(uid, generation): &(&str, u64)| Assignment { uid: uid.into(), generation, ..Assignment::default() };
    Desired {
        fence: Some(Fence { incarnation, term, revision }),
        assignments: generations.iter().map(assignment).collect(),
        ..Desired::default()
    }
}

fn ledger(folder: &tempfile::TempDir) -> Ledger {
    Ledger::open(Arc::new(RealFiles), folder.path().join("ledger")).expect("a fresh folder")
}

#[test]
fn a_set_of_a_replaced_leader_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut ledger = ledger(&folder);
    assert!(ledger.offer(desired((1, 5, 100), &[("a", 1)])).expect("the first is taken"));
    for stale in [(1, 4, 900), (1, 5, 99), (0, 9, 999)] {
        let refused = ledger.offer(desired(stale, &[])).expect_err("older");
        assert!(matches!(refused, Refused::Stale { .. }), "{stale:?}: {refused}");
    }
    assert_eq!(ledger.desired(), Some(&desired((1, 5, 100), &[("a", 1)])), "the last one stays in force");
}

#[test]
fn newer_terms_and_incarnations_are_taken_with_lower_revisions() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut ledger = ledger(&folder);
    for fence in [(1, 5, 100), (1, 6, 90), (2, 1, 3)] {
        assert!(ledger.offer(desired(fence, &[])).expect("newer"), "{fence:?}");
    }
}

#[test]
fn the_same_set_again_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut ledger = ledger(&folder);
    assert!(ledger.offer(desired((1, 1, 1), &[("a", 1)])).expect("taken"));
    assert!(!ledger.offer(desired((1, 1, 1), &[("a", 1)])).expect("known"));
}

#[test]
fn a_generation_never_goes_back_even_after_the_workload_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut ledger = ledger(&folder);
    ledger.offer(desired((1, 1, 1), &[("a", 7)])).expect("taken");
    ledger.offer(desired((1, 1, 2), &[])).expect("it left");
    let refused = ledger.offer(desired((1, 1, 3), &[("a", 6)])).expect_err("back");
    assert!(matches!(refused, Refused::Generation { offered: 6, last: 7, .. }), "{refused}");
    ledger.offer(desired((1, 1, 3), &[("a", 8)])).expect("forward");
    ledger.offer(desired((2, 1, 1), &[("a", 3)])).expect("a restored cluster counts anew");
}

#[test]
fn a_set_without_a_fence_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = Desired::default();
    assert!(matches!(ledger(&folder).offer(set), Err(Refused::NoFence)));
}

#[test]
fn it_is_the_same_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = desired((3, 4, 5), &[("a", 1), ("b", 2)]);
    ledger(&folder).offer(set.clone()).expect("taken");
    let mut again = ledger(&folder);
    assert_eq!(again.desired(), Some(&set));
    assert_eq!(again.fence(), Fence { incarnation: 3, term: 4, revision: 5 });
    assert!(again.offer(desired((3, 4, 4), &[])).is_err(), "the fence survives as well");
}

#[test]
fn every_damaged_byte_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ledger");
    ledger(&folder).offer(desired((1, 1, 1), &[("a", 1)])).expect("taken");
    let whole = std::fs::read(&file).expect("the file");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        assert!(decode(&damaged).is_err(), "byte {at}");
        assert!(decode(&whole[..at]).is_err(), "cut at {at}");
    }
    std::fs::write(&file, &whole[..whole.len() - 1]).expect("written");
    let error = Ledger::open(Arc::new(RealFiles), file).expect_err("damaged");
    assert!(error.to_string().contains("remove the file and start the agent again"), "{error}");
}

#[test]
fn what_can_t_be_saved_is_not_taken() {
    struct Full;
    impl Files for Full {
        fn read(&self, _: &std::path::Path) -> std::io::Result<Vec<u8>> {
            Err(std::io::ErrorKind::NotFound.into())
        }
        fn write(&self, _: &std::path::Path, _: &[u8], _: u32) -> std::io::Result<()> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn remove(&self, _: &std::path::Path) -> std::io::Result<()> {
            Ok(())
        }
        fn list(&self, _: &std::path::Path) -> std::io::Result<Vec<String>> {
            Ok(Vec::new())
        }
    }
    let mut ledger = Ledger::open(Arc::new(Full), "ledger".into()).expect("empty");
    assert!(matches!(ledger.offer(desired((1, 1, 1), &[])), Err(Refused::Write { .. })));
    assert_eq!(ledger.desired(), None);
}

#[test]
fn the_oldest_departed_workloads_are_forgotten_first() {
    let mut generations: BTreeMap<String, u64> =
        (0..DEPARTED_MAX as u64 + 10).map(|n| (format!("u{n}"), n + 1)).collect();
    forget(&mut generations, &desired((1, 1, 1), &[("u0", 1)]));
    assert_eq!(generations.len(), DEPARTED_MAX + 1);
    assert!(generations.contains_key("u0"), "it is still here");
    assert!(!generations.contains_key("u1"));
}
