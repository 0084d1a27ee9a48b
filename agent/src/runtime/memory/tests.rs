//! Each fault does what it says, composes with the others, and is gone after `clear`.

use futures_util::FutureExt;

use super::*;
use crate::labels;
use crate::testing::ManualClock;
use cara_volume::VolumePath;

struct Bench {
    clock: Arc<ManualClock>,
    runtime: MemoryRuntime,
    engine: MemoryHandle,
}

/// An engine with a network, a volume and the container `c`, not started.
fn bench() -> Bench {
    let clock = ManualClock::new();
    let runtime = MemoryRuntime::new(clock.clone());
    let bench = Bench { clock, engine: runtime.handle(), runtime };
    now(bench.runtime.ensure_network(&object("net"))).expect("a network");
    now(bench.runtime.ensure_volume(&object("vol"))).expect("a volume");
    now(bench.runtime.create(&spec("c"))).expect("a container");
    bench
}

/// The answer of a call that must not wait.
fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("an answer at once")
}

fn object(name: &str) -> Object {
    Object { name: name.into(), labels: Labels::from([(labels::UID.to_owned(), "u".to_owned())]) }
}

fn spec(name: &str) -> ContainerSpec {
    let of = [(labels::UID, "u"), (labels::WORKLOAD, "shop"), (labels::SERVICE, name), (labels::GENERATION, "7")];
    ContainerSpec {
        name: name.into(),
        image: "web:1".into(),
        command: Vec::new(),
        args: Vec::new(),
        env: Vec::new(),
        mounts: Vec::new(),
        ports: Vec::new(),
        network: "net".into(),
        alias: name.into(),
        labels: of.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    }
}

fn reason<T: std::fmt::Debug>(outcome: Result<T, RuntimeError>) -> &'static str {
    outcome.expect_err("it fails").reason()
}

#[test]
fn starts_fail_as_often_as_was_asked_or_until_cleared() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.fail_starts = Failing::next(2, "no such device"));
    for _ in 0..2 {
        let error = now(runtime.start("c")).expect_err("it fails");
        assert_eq!(error.to_string(), "can't start c: no such device");
    }
    now(runtime.start("c")).expect("the third");
    engine.fault(|faults| faults.fail_starts = Failing::next(1, "once"));
    now(runtime.start("c")).expect("it runs, so nothing starts and nothing is counted");
    assert_eq!(engine.faults().fail_starts.left, 1);
    now(runtime.stop("c", Duration::ZERO)).expect("stopped");
    engine.fault(|faults| faults.fail_starts = Failing::always("never"));
    for _ in 0..5 {
        assert_eq!(reason(now(runtime.start("c"))), "StartFailed");
    }
    assert_eq!(engine.starts().len(), 1);
    engine.clear();
    now(runtime.start("c")).expect("it starts again");
}

#[test]
fn a_hanging_start_goes_on_or_leaves_nothing_behind() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.hang_starts = true);
    assert!(runtime.start("c").now_or_never().is_none(), "it hangs, and the caller gives up");
    let mut waiting = Box::pin(runtime.start("c"));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!(now(runtime.list(&Labels::new())).expect("other calls answer").containers.len(), 1);
    assert!(engine.starts().is_empty());
    engine.clear();
    assert!(engine.starts().is_empty(), "the one who gave up starts nothing later");
    now(waiting).expect("the one who waited starts it");
    assert_eq!(engine.starts().len(), 1);
}

#[test]
fn creating_fails_only_what_would_be_made() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.fail_creates = Failing::next(1, "out of inodes"));
    now(runtime.create(&spec("c"))).expect("it exists");
    assert_eq!(reason(now(runtime.create(&spec("d")))), "CreateFailed");
    now(runtime.create(&spec("d"))).expect("made");
}

#[test]
fn one_image_or_all_are_missing() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.missing_images = ["web:1".to_owned()].into());
    assert_eq!(reason(now(runtime.ensure_image("web:1"))), "ImageMissing");
    now(runtime.ensure_image("db:1")).expect("it is here");
    engine.fault(|faults| faults.no_images = true);
    assert_eq!(reason(now(runtime.ensure_image("db:1"))), "ImageMissing");
    engine.clear();
    now(runtime.ensure_image("web:1")).expect("it is back");
}

#[test]
fn an_engine_that_is_away_fails_every_call_and_its_containers_live_on() {
    let Bench { runtime, engine, .. } = bench();
    now(runtime.start("c")).expect("started");
    engine.fault(|faults| faults.away = true);
    assert_eq!(reason(now(runtime.info())), "EngineAway");
    assert_eq!(reason(now(runtime.list(&Labels::new()))), "EngineAway");
    assert_eq!(reason(now(runtime.ensure_image("web:1"))), "EngineAway");
    assert_eq!(reason(now(runtime.ensure_network(&object("n")))), "EngineAway");
    assert_eq!(reason(now(runtime.remove_network("net"))), "EngineAway");
    assert_eq!(reason(now(runtime.ensure_volume(&object("v")))), "EngineAway");
    assert_eq!(reason(now(runtime.remove_volume("vol"))), "EngineAway");
    assert_eq!(reason(now(runtime.create(&spec("d")))), "EngineAway");
    assert_eq!(reason(now(runtime.start("c"))), "EngineAway");
    assert_eq!(reason(now(runtime.stop("c", Duration::ZERO))), "EngineAway");
    assert_eq!(reason(now(runtime.remove("c"))), "EngineAway");
    let sink = mpsc::channel(1).0;
    assert_eq!(reason(now(runtime.logs("c", LogOptions::default(), sink))), "EngineAway");
    let listing = engine.listing();
    assert_eq!((listing.containers.len(), listing.networks.len(), listing.volumes.len()), (1, 1, 1));
    assert_eq!(engine.running().len(), 1);
    engine.clear();
    now(runtime.info()).expect("it is back");
}

#[test]
fn a_hanging_engine_answers_nothing_until_it_is_cleared() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.hang = true);
    let mut waiting = Box::pin(runtime.stop("c", Duration::ZERO));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert!(runtime.info().now_or_never().is_none());
    engine.clear();
    now(waiting).expect("it goes on");
}

#[test]
fn listings_fail_or_are_slow() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.fail_lists = true);
    assert_eq!(reason(now(runtime.list(&Labels::new()))), "EngineFailed");
    now(runtime.info()).expect("other calls answer");
    engine.clear();
    engine.fault(|faults| faults.slow_lists = Duration::from_secs(3));
    let everything = Labels::new();
    let mut waiting = Box::pin(runtime.list(&everything));
    assert!(waiting.as_mut().now_or_never().is_none());
    engine.clear();
    now(waiting).expect("nobody waits for a fault that was lifted");
}

#[tokio::test]
async fn volumes_fail_or_are_slow_and_a_slow_one_ends() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.fail_volumes = true);
    assert_eq!(reason(now(runtime.ensure_volume(&object("w")))), "CreateFailed");
    let error = now(runtime.remove_volume("vol")).expect_err("it fails");
    assert_eq!(error.to_string(), "can't remove vol: input/output error");
    assert_eq!(engine.listing().volumes.len(), 1, "nothing has changed");
    let runtime = MemoryRuntime::new(ManualClock::hurried());
    runtime.handle().fault(|faults| faults.slow_volumes = Duration::from_secs(60));
    runtime.ensure_volume(&object("vol")).await.expect("later");
    assert_eq!(runtime.handle().listing().volumes.len(), 1);
}

#[test]
fn the_records_show_every_interval_in_which_something_ran() {
    let Bench { clock, runtime, engine } = bench();
    let world = ManualClock::new();
    world.advance(Duration::from_secs(99));
    engine.record_by(world.clone());
    now(runtime.start("c")).expect("started");
    clock.advance(Duration::from_secs(1_000)); // The machine's own clock says nothing about the others.
    world.advance(Duration::from_secs(5));
    engine.exit("c", 3);
    world.advance(Duration::from_secs(1));
    now(runtime.start("c")).expect("again");
    world.advance(Duration::from_secs(1));
    now(runtime.create(&spec("d"))).expect("made");
    now(runtime.start("d")).expect("started");
    now(runtime.remove("c")).expect("removed while it runs");
    world.advance(Duration::from_secs(1));
    let seconds = |at: Duration| at.as_secs();
    let lived: Vec<_> = engine
        .starts()
        .into_iter()
        .map(|s| (s.service, s.generation, seconds(s.started_at), s.ended_at.map(seconds)))
        .collect();
    let expected = [("c", 100, Some(105)), ("c", 106, Some(107)), ("d", 107, None)];
    assert_eq!(lived, expected.map(|(service, from, to)| (service.to_owned(), 7, from, to)));
    assert_eq!(engine.starts()[0].labels.get(labels::WORKLOAD).map(String::as_str), Some("shop"));
    engine.exit_all_with(9);
    assert_eq!(engine.listing().containers[0].exit_code, Some(9));
    assert!(engine.starts().iter().all(|start| start.ended_at.is_some()));
}

#[test]
fn what_was_forgotten_is_counted() {
    let Bench { runtime, engine, .. } = bench();
    for _ in 0..10_003 {
        now(runtime.start("c")).expect("started");
        now(runtime.stop("c", Duration::ZERO)).expect("stopped");
    }
    assert_eq!((engine.starts().len(), engine.forgotten()), (10_000, 3));
}

#[test]
fn a_volume_that_can_t_be_read_opens_and_says_so_at_each_look_until_it_is_cleared() {
    let Bench { runtime, engine, .. } = bench();
    engine.fault(|faults| faults.fail_reads = true);
    let tree = now(runtime.volume_tree("vol")).expect("it opens");
    let root = VolumePath::root();
    let error = tree.list(&root, b"", 1).expect_err("it can't be read");
    assert!(error.to_string().ends_with("input/output error") && !error.is_absent(), "{error}");
    assert!(tree.stat(&root).is_err() && tree.xattrs(&root).is_err());
    assert!(engine.volume_digest("vol").is_some(), "who looks from outside sees it");
    engine.clear();
    assert!(tree.stat(&root).expect("it can be read").is_some());
}
