//! Moves: the whole way in both shapes, the way back, and every refusal.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

/// A cluster of two nodes with a workload on the first.
fn placed(stateful: bool) -> (World, NodeId, NodeId, WorkloadUid) {
    let mut world = World::moving();
    let a = world.node("a");
    let mut create = world.app_command("web", "nginx");
    if stateful {
        create.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    }
    let uid = world.workload_answer(create).uid;
    let b = world.node("b");
    (world, a, b, uid)
}

fn start(uid: &WorkloadUid) -> StartMove {
    StartMove { id: "m1".into(), uid: uid.clone(), target: None, settings: MoveSettings::default() }
}

fn modes(world: &World, node: &NodeId) -> Vec<(Mode, u64, u64)> {
    let set = desired_set(&world.state, node);
    set.iter().map(|a| (a.mode, a.generation.0, a.data_generation.0)).collect()
}

/// The target reports; its copy has a container when it runs.
fn target_says(world: &mut World, phase: Phase, change: impl FnOnce(&mut WorkloadStatus)) {
    let mut report = world.status_of_target("m1", phase);
    if phase == Phase::Running {
        report.statuses[0].status.containers = vec![ContainerStatus::default()];
    }
    change(&mut report.statuses[0].status);
    world.ok(report);
}

fn copied(round_done: u32, bytes_sent: u64, digest: &str) -> Vec<VolumeTransfer> {
    vec![VolumeTransfer {
        volume: "pg".into(),
        round_done,
        bytes_total: 1 << 30,
        bytes_sent,
        source_digest: "x".into(),
        target_digest: digest.into(),
    }]
}

/// The node says that nothing is left of this grant.
fn removed(world: &mut World, node: &NodeId, uid: &WorkloadUid, generation: u64) {
    let gone = RemovedGrant { uid: uid.clone(), generation: Generation(generation) };
    let epoch = world.epoch(node);
    world.ok(ReportStatus { node: node.clone(), epoch, removed_grants: vec![gone], ..Default::default() });
}

#[test]
fn a_stateless_move_starts_the_target_before_the_source_stops() {
    let (mut world, a, b, uid) = placed(false);
    let Answer::Move(answer) = world.ok(start(&uid)).answer else { panic!("no move") };
    assert_eq!((answer.source, answer.target.clone(), answer.auto_target), (a.clone(), b.clone(), true));
    assert_eq!((modes(&world, &a), modes(&world, &b)), (vec![(Mode::Run, 1, 1)], vec![(Mode::Receive, 2, 2)]));
    target_says(&mut world, Phase::Pending, |status| status.ready = true);
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::Place);
    assert_eq!((modes(&world, &a), modes(&world, &b)), (vec![(Mode::Run, 1, 1)], vec![(Mode::Run, 2, 2)]));
    target_says(&mut world, Phase::Running, |_| {});
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::Verify);
    assert_eq!(world.workload("web").placement.as_ref().unwrap().node, a);
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::StopOld);
    let both = (vec![(Mode::Run, 1, 1)], vec![(Mode::Run, 2, 2)]);
    assert_eq!((modes(&world, &a), modes(&world, &b)), both, "clients that know the old copy still get their answers");
    assert_eq!(
        world.workload("web").placement.as_ref().unwrap().node,
        b,
        "and whoever asks now is told of the new one"
    );
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::StopOld);
    assert_eq!((modes(&world, &a), modes(&world, &b)), (vec![(Mode::Retire, 1, 1)], vec![(Mode::Run, 2, 2)]));
    assert_eq!(world.workload("web").phase(), "Running", "the target's report is the workload's from the switch on");
    removed(&mut world, &a, &uid, 1);
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::Finalize);
    assert!(modes(&world, &a).is_empty());
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::Done);
    assert_eq!((world.mv("m1").status, world.mv("m1").downtime_ms), (MoveStatus::Succeeded, None));
}

/// A stateful move that has come to `place`.
fn at_place() -> (World, NodeId, NodeId, WorkloadUid) {
    let (mut world, a, b, uid) = placed(true);
    world.ok(start(&uid));
    target_says(&mut world, Phase::Pending, |status| {
        status.ready = true;
        status.transfers = copied(1, 1 << 30, "");
    });
    world.advance("m1", StepOutcome::Ok);
    assert_eq!((world.mv("m1").phase, world.mv("m1").round), (MovePhase::Preflight, 2), "a gibibyte was sent: again");
    target_says(&mut world, Phase::Pending, |status| {
        status.ready = true;
        status.transfers = copied(2, 1 << 20, "");
    });
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::StopSource);
    let early = world.step_of("m1", StepOutcome::Ok);
    assert_eq!(world.refused(early), "move-not-ready");
    let stopped = world.report(&a, "web", Phase::Stopped);
    let of_old_grant = ReportStatus {
        statuses: vec![StatusReport {
            uid: uid.clone(),
            status: WorkloadStatus { observed_generation: Generation(1), phase: Phase::Stopped, ..Default::default() },
        }],
        ..stopped
    };
    world.ok(of_old_grant);
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::CopyVolumes);
    let transfer = desired_set(&world.state, &b)[0].transfer.clone().unwrap();
    assert_eq!((transfer.round, transfer.is_final, transfer.from_data_generation.0), (3, true, 1));
    world.at_ms += 4_000;
    target_says(&mut world, Phase::Pending, |status| status.transfers = copied(3, 0, "y"));
    let differs = world.step_of("m1", StepOutcome::Ok);
    assert_eq!(world.refused(differs), "move-not-ready");
    assert_eq!(world.advance("m1", StepOutcome::Retry), MovePhase::CopyVolumes);
    assert_eq!((world.mv("m1").round, world.mv("m1").attempt), (4, 2), "a differing copy is another round");
    target_says(&mut world, Phase::Pending, |status| status.transfers = copied(4, 0, "x"));
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::Place);
    (world, a, b, uid)
}

#[test]
fn a_stateful_move_stops_copies_and_starts_and_tells_the_downtime() {
    let (mut world, a, b, _) = at_place();
    assert_eq!((modes(&world, &a), modes(&world, &b)), (vec![(Mode::Stop, 1, 1)], vec![(Mode::Run, 2, 2)]));
    target_says(&mut world, Phase::Running, |_| {});
    world.advance("m1", StepOutcome::Ok);
    world.at_ms += 1_000;
    assert_eq!(world.advance("m1", StepOutcome::Ok), MovePhase::StopOld);
    assert_eq!(world.mv("m1").downtime_ms, Some(5_000));
    let workload = world.workload("web");
    assert_eq!((workload.data_generation, workload.placement.as_ref().unwrap().node.clone()), (Generation(2), b));
    let cancel = CancelMove { id: "m1".into(), reason: String::new() };
    assert_eq!(world.refused(cancel), "move-committed");
    // The source is off: it cleans up when it is back.
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    world.advance("m1", StepOutcome::Ok);
    let back = world.step_of("m1", StepOutcome::Failed);
    assert_eq!(world.refused(back), "move-not-ready", "what has switched never rolls back");
    world.advance("m1", StepOutcome::Ok);
    assert_eq!(world.mv("m1").status, MoveStatus::Succeeded);
    world.open(&a);
    assert!(modes(&world, &a).is_empty(), "what it has there has no grant");
}

#[test]
fn a_rollback_lets_the_source_run_only_when_the_target_is_proven_gone() {
    let (mut world, a, b, uid) = at_place();
    world.ok(CancelMove { id: "m1".into(), reason: "changed my mind".into() });
    assert_eq!((modes(&world, &a), modes(&world, &b)), (vec![(Mode::Stop, 1, 1)], vec![(Mode::Discard, 2, 2)]));
    assert!(world.events(CancelMove { id: "m1".into(), reason: String::new() }).is_empty(), "it goes back already");
    let early = world.step_of("m1", StepOutcome::Ok);
    assert_eq!(world.refused(early.clone()), "move-not-ready");
    removed(&mut world, &b, &uid, 1);
    assert_eq!(world.refused(early.clone()), "move-not-ready", "that was about another grant");
    removed(&mut world, &a, &uid, 2);
    assert_eq!(world.refused(early), "move-not-ready", "that was another node");
    world.ok(CloseSession { node: b.clone(), epoch: world.epoch(&b), reason: String::new() });
    let dark = world.step_of("m1", StepOutcome::Ok);
    assert_eq!(world.refused(dark), "move-not-ready", "an offline target may still run");
    world.open(&b);
    removed(&mut world, &b, &uid, 2);
    world.advance("m1", StepOutcome::Ok);
    assert_eq!((modes(&world, &a), modes(&world, &b)), (vec![(Mode::Run, 3, 1)], vec![]));
    let mv = world.mv("m1");
    assert_eq!((mv.status, mv.error.as_str()), (MoveStatus::RolledBack, "cancelled: changed my mind"));
    assert_eq!(world.refused(CancelMove { id: "m1".into(), reason: String::new() }), "move-over");
    let over = world.step_of("m1", StepOutcome::Ok);
    assert_eq!(world.refused(over), "move-over");
}

#[test]
fn a_move_is_not_begun_when_it_can_not_go_well() {
    let (mut world, a, b, uid) = placed(true);
    let to = |node: &NodeId| StartMove { target: Some(node.clone()), ..start(&uid) };
    assert_eq!(world.refused(to(&a)), "move-same-node");
    assert_eq!(world.refused(to(&"nd_z".into())), "unknown-node");
    assert_eq!(world.refused(start(&"w_z".into())), "unknown-workload");
    assert_eq!(world.refused(StartMove { id: "no id".into(), ..start(&uid) }), "invalid-field");
    let patient = MoveSettings { verify_timeout_ms: u64::MAX, ..Default::default() };
    assert_eq!(world.refused(StartMove { settings: patient, ..start(&uid) }), "invalid-field");
    let stubborn = MoveSettings { attempts_max: u32::MAX, ..Default::default() };
    assert_eq!(world.refused(StartMove { settings: stubborn, ..start(&uid) }), "invalid-field");
    world.ok(Cordon { node: b.clone(), reason: String::new() });
    assert_eq!(world.refused(to(&b)), "node-not-eligible");
    assert_eq!(world.refused(start(&uid)), "no-eligible-node");
    world.ok(Uncordon { node: b.clone(), reason: String::new() });
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    assert_eq!(world.refused(start(&uid)), "source-offline");
    world.open(&a);
    world.ok(start(&uid));
    assert_eq!(world.refused(start(&uid)), "move-exists");
    assert_eq!(world.refused(StartMove { id: "m2".into(), ..start(&uid) }), "move-running");
    let waits = ApplyWorkload {
        spec: WorkloadSpec { selector: labels(&[("site", "x")]), ..world.app_command("w", "x").spec },
        ..world.app_command("waits", "x")
    };
    let unplaced = world.workload_answer(waits).uid;
    assert_eq!(world.refused(StartMove { id: "m2".into(), ..start(&unplaced) }), "not-placed");
    let leaving = world.app("leaving", "x").uid;
    world.ok(DeleteWorkload { uid: leaving.clone(), ..Default::default() });
    assert_eq!(world.refused(StartMove { id: "m2".into(), ..start(&leaving) }), "workload-deleting");
}

#[test]
fn a_step_that_assumed_what_has_passed_is_refused() {
    let (mut world, _, _, uid) = placed(false);
    world.ok(start(&uid));
    let step = world.step_of("m1", StepOutcome::Waiting);
    assert_eq!(world.refused(AdvanceMove { id: "m9".into(), ..step.clone() }), "unknown-move");
    assert_eq!(world.refused(CancelMove { id: "m9".into(), reason: String::new() }), "unknown-move");
    for stale in [
        AdvanceMove { expect_phase: MovePhase::Place, ..step.clone() },
        AdvanceMove { expect_attempt: 2, ..step.clone() },
        AdvanceMove { expect_step: 7, ..step.clone() },
    ] {
        assert_eq!(world.refused(stale), "stale-move");
    }
    assert_eq!(world.events(step.clone()), ["MoveUpdated"]);
    assert_eq!(world.refused(step), "stale-move", "said twice it is stale");
    let retry = world.step_of("m1", StepOutcome::Retry);
    assert_eq!(world.refused(retry), "move-not-ready", "nothing has failed");
    target_says(&mut world, Phase::Failed, |_| {});
    for _ in 1..5 {
        world.advance("m1", StepOutcome::Retry);
    }
    let sixth = world.step_of("m1", StepOutcome::Retry);
    assert_eq!(world.refused(sixth), "move-not-ready", "five attempts, no more");
    target_says(&mut world, Phase::Pending, |status| status.ready = true);
    let gives_up = world.step_of("m1", StepOutcome::Failed);
    assert_eq!(world.refused(gives_up), "move-not-ready", "it can go on");
}

#[test]
fn what_is_being_moved_is_held() {
    let (mut world, a, b, uid) = placed(false);
    world.ok(start(&uid));
    let generation = world.workload("web").last_generation;
    let spec = world.app_command("web", "nginx:2");
    assert_eq!(world.refused(spec.clone()), "move-running");
    let labelled =
        ApplyWorkload { labels: labels(&[("team", "blue")]), spec: world.workload("web").spec.clone(), ..spec };
    assert_eq!(world.events(labelled), ["WorkloadUpdated"], "labels change nothing that the move rests on");
    assert_eq!(world.refused(DeleteWorkload { uid: uid.clone(), ..Default::default() }), "move-running");
    assert_eq!(world.refused(DeleteWorkload { uid: uid.clone(), force: true, expect_revision: None }), "move-running");
    assert_eq!(world.refused(RestartWorkload { uid: uid.clone(), expect_revision: None }), "move-running");
    assert_eq!(world.refused(SuspendWorkload { uid: uid.clone(), expect_revision: None }), "move-running");
    let revoke = RevokePlacement { uid, expect_generation: generation, reason: String::new() };
    assert_eq!(world.refused(revoke), "move-running");
    assert_eq!(world.refused(DeleteNode { node: a }), "node-not-empty");
    assert_eq!(world.refused(DeleteNode { node: b }), "node-in-move");
}

#[test]
fn what_old_servers_do_not_know_waits_for_the_level() {
    let mut world = World::new();
    let a = world.node("a");
    let uid = world.app("web", "nginx").uid;
    assert_eq!(world.workload("web").data_generation, Generation(0));
    assert_eq!(world.refused(start(&uid)), "feature-needed");
    let step = AdvanceMove { id: "m1".into(), ..Default::default() };
    assert_eq!(world.refused(step), "feature-needed");
    assert_eq!(world.refused(CancelMove { id: "m1".into(), reason: String::new() }), "feature-needed");
    let drain = StartDrain { id: "d1".into(), node: a.clone(), ..Default::default() };
    assert_eq!(world.refused(drain), "feature-needed");
    assert_eq!(world.refused(AdvanceDrain { id: "d1".into(), expect_step: 0 }), "feature-needed");
    assert_eq!(world.refused(CancelDrain { id: "d1".into(), reason: String::new() }), "feature-needed");
    assert_eq!(world.refused(LoseNode { node: a.clone(), reason: String::new() }), "feature-needed");
    assert_eq!(world.refused(RestartWorkload { uid: uid.clone(), expect_revision: None }), "feature-needed");
    assert_eq!(world.refused(SuspendWorkload { uid: uid.clone(), expect_revision: None }), "feature-needed");
    assert_eq!(world.refused(ResumeWorkload { uid, expect_revision: None }), "feature-needed");
    let mut asks = world.app_command("asks", "nginx");
    asks.spec.services[0].resources = Some(Resources { cpu_millis: 1, ..Default::default() });
    assert_eq!(world.refused(asks), "feature-needed");
    let mut report = world.report(&a, "web", Phase::Running);
    report.statuses[0].status.ready = true;
    report.quarantine = Some(Quarantine { volumes: vec![QuarantinedVolume::default()] });
    world.ok(report);
    assert!(!world.workload("web").status.as_ref().unwrap().ready, "old servers can't read it, so nobody keeps it");
    assert!(world.state.node(&a).unwrap().quarantine.is_empty());
}

#[test]
fn a_suspended_workload_keeps_its_place_and_a_restart_is_a_new_grant() {
    let (mut world, a, _, uid) = placed(true);
    world.ok(RestartWorkload { uid: uid.clone(), expect_revision: None });
    assert_eq!(modes(&world, &a), [(Mode::Run, 2, 1)]);
    let suspend = SuspendWorkload { uid: uid.clone(), expect_revision: None };
    assert_eq!(world.events(suspend.clone()), ["WorkloadUpdated", "WorkloadPlaced"]);
    assert!(world.events(suspend).is_empty());
    assert_eq!(modes(&world, &a), [(Mode::Stop, 3, 1)]);
    assert_eq!(world.refused(RestartWorkload { uid: uid.clone(), expect_revision: None }), "workload-suspended");
    let stale = ResumeWorkload { uid: uid.clone(), expect_revision: Some(Revision(1)) };
    assert_eq!(world.refused(stale), "revision-mismatch");
    world.ok(ResumeWorkload { uid, expect_revision: None });
    assert_eq!(modes(&world, &a), [(Mode::Run, 4, 1)]);
}

#[test]
fn a_lost_node_gives_up_its_claims_and_is_fenced_until_it_is_back() {
    let (mut world, a, b, uid) = placed(true);
    assert_eq!(world.refused(LoseNode { node: a.clone(), reason: String::new() }), "node-online");
    assert_eq!(world.refused(LoseNode { node: "nd_z".into(), reason: String::new() }), "unknown-node");
    let epoch = world.epoch(&a);
    world.ok(TransitionNode { node: a.clone(), epoch, to: Connection::Offline, reason: String::new() });
    world.ok(LoseNode { node: a.clone(), reason: "fire".into() });
    assert!(world.events(LoseNode { node: a.clone(), reason: "fire".into() }).is_empty());
    let back = TransitionNode { node: a.clone(), epoch, to: Connection::Online, reason: String::new() };
    assert_eq!(world.refused(back), "stale-session");
    assert!(world.workload("web").fresh_data && world.workload("web").placement.is_none());
    world.ok(PlaceWorkload { uid, expect_generation: Generation(1) });
    assert_eq!(modes(&world, &b), [(Mode::Run, 2, 2)], "with new volumes");
    world.open(&a);
    assert!(!world.state.node(&a).unwrap().lost);
    assert!(modes(&world, &a).is_empty());
}

#[test]
fn losing_an_end_ends_the_move_accordingly() {
    // The target, while it may run: the source runs again.
    let (mut world, a, b, _) = at_place();
    world.ok(CloseSession { node: b.clone(), epoch: world.epoch(&b), reason: String::new() });
    world.ok(LoseNode { node: b, reason: String::new() });
    assert_eq!((world.mv("m1").status, modes(&world, &a)), (MoveStatus::RolledBack, vec![(Mode::Run, 3, 1)]));
    // The source, when the target has everything: it goes on.
    let (mut world, a, b, _) = at_place();
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    world.ok(LoseNode { node: a.clone(), reason: String::new() });
    target_says(&mut world, Phase::Running, |_| {});
    for _ in 0..4 {
        world.advance("m1", StepOutcome::Ok);
    }
    assert_eq!((world.mv("m1").status, modes(&world, &b)), (MoveStatus::Succeeded, vec![(Mode::Run, 2, 2)]));
    // The source, before that: its data are given up.
    let (mut world, a, b, uid) = placed(true);
    world.ok(start(&uid));
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    world.ok(LoseNode { node: a, reason: String::new() });
    assert_eq!((world.mv("m1").status, modes(&world, &b)), (MoveStatus::Failed, vec![]));
    assert!(world.workload("web").fresh_data);
    // The target, after the switch: what it had is given up.
    let (mut world, a, b, _) = at_place();
    target_says(&mut world, Phase::Running, |_| {});
    world.advance("m1", StepOutcome::Ok);
    world.advance("m1", StepOutcome::Ok);
    world.ok(CloseSession { node: b.clone(), epoch: world.epoch(&b), reason: String::new() });
    world.ok(LoseNode { node: b, reason: String::new() });
    assert_eq!((world.mv("m1").status, modes(&world, &a)), (MoveStatus::Failed, vec![]));
    assert!(world.workload("web").fresh_data);
}

#[test]
fn what_is_asked_for_is_booked_on_both_ends_and_an_exact_fit_is_taken() {
    let mut world = World::moving();
    let roomy = |world: &mut World, name: &str, cpu: u64| {
        let id = world.node(name);
        let mut open = world.open_command(&id);
        open.facts.allocatable = [("cpu".to_string(), cpu), ("memory".to_string(), 1 << 30)].into();
        world.ok(open);
        id
    };
    let asks = |world: &mut World, name: &str, cpu_millis: u64, memory_bytes: u64| {
        let mut create = world.app_command(name, "nginx");
        create.spec.services[0].resources = Some(Resources { cpu_millis, memory_bytes, disk_bytes: 1 << 40 });
        create
    };
    let a = roomy(&mut world, "a", 1_000);
    let exact = asks(&mut world, "web", 1_000, 1 << 29);
    let uid = world.workload_answer(exact.clone()).uid;
    assert_eq!(world.workload("web").placement.as_ref().unwrap().node, a, "the disk is not told, so not judged");
    let more = asks(&mut world, "more", 250, 0);
    let answer = world.workload_answer(more.clone());
    assert_eq!(answer.rejections[0].reason, "cpu: 0 free, 250m wanted");
    let mut grows = exact;
    grows.spec.services[0].resources.as_mut().unwrap().cpu_millis = 1_500;
    assert_eq!(world.refused(grows.clone()), "node-not-eligible");
    grows.spec.services[0].resources.as_mut().unwrap().cpu_millis = 900;
    world.ok(grows);
    roomy(&mut world, "b", 1_000);
    world.ok(start(&uid));
    world.ok(DeleteWorkload { uid: answer.uid, ..Default::default() });
    let large = asks(&mut world, "large", 200, (1 << 29) + 1);
    let answer = world.workload_answer(large);
    let reasons: Vec<&str> = answer.rejections.iter().map(|rejection| rejection.reason.as_str()).collect();
    assert_eq!(reasons, ["cpu: 100m free, 200m wanted"; 2], "the move books its target");
}

#[test]
fn a_plan_says_what_the_command_then_does_and_a_move_what_it_waits_for() {
    let (mut world, a, b, uid) = placed(false);
    assert_eq!(plan_move(&world.state, &start(&uid)), Ok(b.clone()));
    let here = StartMove { target: Some(a.clone()), ..start(&uid) };
    assert_eq!(plan_move(&world.state, &here).unwrap_err().code(), world.refused(here));
    let drain = StartDrain { id: "d1".into(), node: a, ..Default::default() };
    let planned = plan_drain(&world.state, &drain).unwrap();
    assert_eq!((planned.plan.as_slice(), planned.blocked.as_slice()), ([uid.clone()].as_slice(), [].as_slice()));
    world.ok(drain.clone());
    assert_eq!(world.state.drain(&"d1".into()).unwrap().plan, planned.plan);
    assert_eq!(plan_drain(&world.state, &drain).unwrap_err().code(), world.refused(drain));

    let Answer::Move(_) = world.ok(StartMove { target: Some(b), ..start(&uid) }).answer else { panic!("no move") };
    assert_eq!(waits_for(&world.state, world.mv("m1")).unwrap(), "target is getting image and network");
    target_says(&mut world, Phase::Pending, |status| status.ready = true);
    assert_eq!(waits_for(&world.state, world.mv("m1")), None, "it can go on");
}
