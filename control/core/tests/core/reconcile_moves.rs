//! What the leader does by itself for moves and drains: steps, attempts, timeouts, and all of it again under a new leader.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::reconcile::*;
use cara_core::*;

const MINUTE_MS: u64 = 60_000;

/// A move that has just begun, and a leader that hears everybody.
fn moving(stateful: bool) -> (World, Heard) {
    let mut world = World::moving();
    world.node("a");
    let mut create = world.app_command("web", "nginx");
    if stateful {
        create.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    }
    let uid = world.workload_answer(create).uid;
    world.node("b");
    let settings = MoveSettings { shutdown_delay_ms: 5_000, ..MoveSettings::default() };
    world.ok(StartMove { id: "m1".into(), uid, target: None, settings });
    (world, Heard::default())
}

/// One pass; what it asked for is applied.
fn pass(world: &mut World, heard: &mut Heard, now_ms: u64) -> Decision {
    for node in world.state.nodes().filter(|node| node.connection == Connection::Online) {
        let epoch = node.session.as_ref().unwrap().epoch;
        heard.nodes.insert(node.id.clone(), Heartbeat { epoch, at_ms: now_ms });
    }
    heard.observe(&world.state, now_ms);
    let decision = reconcile(&world.state, heard, &Settings::default(), now_ms);
    for command in &decision.commands {
        world.ok(command.clone());
    }
    decision
}

fn outcomes(world: &World) -> Vec<(MovePhase, StepOutcome)> {
    world.mv("m1").steps.iter().map(|step| (step.phase, step.outcome)).collect()
}

fn say(world: &mut World, phase: Phase, change: impl FnOnce(&mut WorkloadStatus)) {
    let mut report = world.status_of_target("m1", phase);
    change(&mut report.statuses[0].status);
    world.ok(report);
}

#[test]
fn a_phase_that_fails_is_tried_five_times_three_seconds_apart_and_then_taken_back() {
    let (mut world, mut heard) = moving(false);
    say(&mut world, Phase::Failed, |status| status.reason = "ImagePullFailed".into());
    let first = pass(&mut world, &mut heard, 0);
    assert_eq!((first.commands.len(), first.wake_at), (0, Some(3_000)));
    for attempt in 1..5 {
        assert!(pass(&mut world, &mut heard, attempt * 3_000 - 1).commands.is_empty());
        assert_eq!(pass(&mut world, &mut heard, attempt * 3_000).commands.len(), 1);
        assert_eq!(world.mv("m1").attempt, u32::try_from(attempt).unwrap() + 1);
        pass(&mut world, &mut heard, attempt * 3_000);
    }
    pass(&mut world, &mut heard, 15_000);
    assert_eq!(
        (world.mv("m1").phase, world.mv("m1").error.as_str()),
        (MovePhase::Rollback, "target failed: ImagePullFailed")
    );
}

#[test]
fn a_wait_is_written_down_once_and_ends_after_five_minutes() {
    let (mut world, mut heard) = moving(false);
    say(&mut world, Phase::Pending, |status| status.ready = true);
    pass(&mut world, &mut heard, 0);
    say(&mut world, Phase::Pending, |status| status.containers = vec![ContainerStatus::default()]);
    pass(&mut world, &mut heard, 0);
    assert_eq!(world.mv("m1").phase, MovePhase::Verify);
    assert_eq!(pass(&mut world, &mut heard, 0).commands, []);
    pass(&mut world, &mut heard, 3_000);
    assert_eq!(outcomes(&world).last(), Some(&(MovePhase::Verify, StepOutcome::Waiting)));
    let quiet = pass(&mut world, &mut heard, 5 * MINUTE_MS - 1);
    assert_eq!((quiet.commands.len(), quiet.wake_at), (0, Some(5 * MINUTE_MS)));
    pass(&mut world, &mut heard, 5 * MINUTE_MS);
    assert_eq!(world.mv("m1").phase, MovePhase::Rollback);
}

/// A move of what has no state, just switched.
fn switched() -> (World, Heard) {
    let (mut world, mut heard) = moving(false);
    say(&mut world, Phase::Pending, |status| status.ready = true);
    pass(&mut world, &mut heard, 0);
    say(&mut world, Phase::Running, |status| status.containers = vec![ContainerStatus::default()]);
    pass(&mut world, &mut heard, 0);
    pass(&mut world, &mut heard, 0);
    assert_eq!(world.mv("m1").phase, MovePhase::StopOld);
    pass(&mut world, &mut heard, 0);
    (world, heard)
}

#[test]
fn the_old_copy_goes_on_for_the_shutdown_delay_also_under_a_new_leader() {
    let (mut world, mut heard) = switched();
    let held = pass(&mut world, &mut heard, 4_000);
    assert_eq!((held.commands.len(), held.wake_at), (0, Some(5_000)));
    // Another leader, which can't know how long it has lasted, gives it the full time.
    let mut heard = Heard { leader_since_ms: 9_000_000, ..Heard::default() };
    assert_eq!(pass(&mut world, &mut heard, 9_000_000).commands, []);
    assert_eq!(pass(&mut world, &mut heard, 9_004_999).commands, []);
    let serves = |world: &World| world.mv("m1").old_copy_serves(world.workload("web"));
    assert!(serves(&world));
    assert_eq!(pass(&mut world, &mut heard, 9_005_000).commands.len(), 1);
    assert_eq!((world.mv("m1").phase, serves(&world)), (MovePhase::StopOld, false));
    assert_eq!(pass(&mut world, &mut heard, 9_005_000).commands, [], "now the source's word is waited for");
}

#[test]
fn a_new_leader_goes_on_from_the_log_and_gives_the_phase_its_full_time() {
    let (mut world, mut heard) = moving(true);
    say(&mut world, Phase::Pending, |status| {
        status.ready = true;
        status.transfers = vec![VolumeTransfer { volume: "pg".into(), round_done: 1, ..Default::default() }];
    });
    pass(&mut world, &mut heard, 0);
    assert_eq!(world.mv("m1").phase, MovePhase::StopSource);
    pass(&mut world, &mut heard, 4 * MINUTE_MS);
    // Another leader, with a clock of its own and no memory.
    let mut heard = Heard { leader_since_ms: 9_000_000, ..Heard::default() };
    pass(&mut world, &mut heard, 9_000_000);
    pass(&mut world, &mut heard, 9_000_000 + 5 * MINUTE_MS - 1);
    assert_eq!(world.mv("m1").phase, MovePhase::StopSource);
    pass(&mut world, &mut heard, 9_000_000 + 5 * MINUTE_MS);
    assert_eq!(world.mv("m1").phase, MovePhase::Rollback);
}

#[test]
fn a_drain_is_carried_to_its_end_and_then_asks_for_nothing() {
    let mut world = World::moving();
    let a = world.node("a");
    for name in ["one", "two"] {
        world.app(name, "nginx");
    }
    world.node("b");
    world.ok(StartDrain { id: "d1".into(), node: a.clone(), ..Default::default() });
    let mut heard = Heard::default();
    for now_ms in (0..64).map(|pass| pass * 1_000) {
        let moves: Vec<Move> = world.state.running_moves().cloned().collect();
        assert!(moves.len() <= 1, "one after the other");
        for mv in moves {
            let mut report = world.status_of_target(mv.id.as_str(), Phase::Running);
            report.statuses[0].status.ready = true;
            report.statuses[0].status.containers = vec![ContainerStatus::default()];
            world.ok(report);
            let gone = RemovedGrant { uid: mv.workload, generation: mv.source_generation };
            let epoch = world.epoch(&a);
            world.ok(ReportStatus { node: a.clone(), epoch, removed_grants: vec![gone], ..Default::default() });
        }
        pass(&mut world, &mut heard, now_ms);
    }
    assert_eq!(world.state.drain(&"d1".into()).unwrap().status, DrainStatus::Succeeded);
    assert_eq!((world.state.placed_count(&a), world.state.moves().len()), (0, 2));
    assert_eq!(pass(&mut world, &mut heard, 100).commands, []);
}

#[test]
fn what_is_being_moved_is_neither_rescheduled_nor_expired() {
    let (mut world, mut heard) = moving(false);
    let a = world.state.node_by_name("a").unwrap().id.clone();
    world.ok(CloseSession { node: a, epoch: Epoch(1), reason: String::new() });
    pass(&mut world, &mut heard, 0);
    let decision = pass(&mut world, &mut heard, 10 * MINUTE_MS);
    assert!(!decision.commands.iter().any(|command| matches!(command, Command::RevokePlacement(_))));
    assert!(world.mv("m1").is_running());
}

/// A move with a volume whose first round the target fills.
fn copying() -> (World, Heard) {
    let (mut world, heard) = moving(true);
    say(&mut world, Phase::Pending, |status| status.ready = true);
    (world, heard)
}

fn says_that_copying_fails(world: &mut World, bytes_sent: u64) {
    let error = TransferError { code: "source_failed".into(), message: "no such volume".into(), bytes_sent };
    say(world, Phase::Pending, |status| {
        status.ready = true;
        status.transfer_error = Some(error);
    });
}

#[test]
fn a_copy_that_fails_is_given_up_after_five_attempts_that_get_no_further() {
    let (mut world, mut heard) = copying();
    says_that_copying_fails(&mut world, 0);
    pass(&mut world, &mut heard, 0);
    for attempt in 1..=4 {
        pass(&mut world, &mut heard, attempt * 3_000);
        pass(&mut world, &mut heard, attempt * 3_000);
    }
    assert_eq!((world.mv("m1").attempt, world.mv("m1").round), (5, 1), "attempts of one round");
    says_that_copying_fails(&mut world, 7);
    assert_eq!(world.mv("m1").attempt, 1, "it got further");
    says_that_copying_fails(&mut world, 7);
    for attempt in 5..=9 {
        pass(&mut world, &mut heard, attempt * 3_000);
        pass(&mut world, &mut heard, attempt * 3_000);
    }
    assert_eq!(world.mv("m1").phase, MovePhase::Rollback);
    assert_eq!(world.mv("m1").error, "round 1 can't be copied (source_failed): no such volume");
}

#[test]
fn a_failed_last_copy_goes_on_in_its_round_and_ends_with_the_source_running() {
    let (mut world, mut heard) = copying();
    let uid = world.mv("m1").workload.clone();
    let done = |round| VolumeTransfer { volume: "pg".into(), round_done: round, ..Default::default() };
    say(&mut world, Phase::Pending, |status| (status.ready, status.transfers) = (true, vec![done(1)]));
    pass(&mut world, &mut heard, 0);
    let source = world.mv("m1").source.clone();
    let stopped = world.report_grant(&source, &uid, world.mv("m1").source_generation, Phase::Stopped);
    world.ok(stopped);
    pass(&mut world, &mut heard, 0);
    assert_eq!((world.mv("m1").phase, world.mv("m1").round), (MovePhase::CopyVolumes, 2));
    says_that_copying_fails(&mut world, 0);
    pass(&mut world, &mut heard, 0);
    for attempt in 1..=5 {
        assert_eq!(world.mv("m1").round, 2);
        pass(&mut world, &mut heard, attempt * 3_000);
        pass(&mut world, &mut heard, attempt * 3_000);
    }
    assert_eq!(world.mv("m1").phase, MovePhase::Rollback);
    let told = desired_set(&world.state, &source);
    assert_eq!(told[0].mode, Mode::Run);
}

#[test]
fn an_old_copy_that_its_source_never_reports_gone_is_left_to_it() {
    let (mut world, mut heard) = switched();
    pass(&mut world, &mut heard, 5 * MINUTE_MS - 1);
    assert_eq!(world.mv("m1").phase, MovePhase::StopOld);
    pass(&mut world, &mut heard, 5 * MINUTE_MS);
    pass(&mut world, &mut heard, 5 * MINUTE_MS);
    assert_eq!(world.mv("m1").status, MoveStatus::Succeeded);
    let left = world.mv("m1").steps.iter().find(|step| step.detail.contains("left to the source's agent")).unwrap();
    assert_eq!((left.phase, left.outcome), (MovePhase::StopOld, StepOutcome::Ok));
}

#[test]
fn who_uses_a_database_is_restarted_when_it_is_placed_again_after_its_node_was_lost() {
    let mut world = World::moving();
    let a = world.node("a");
    let store = world.database("store");
    world.node("b");
    let mut web = world.app_command("web", "nginx");
    web.spec.dependencies = vec!["store".into()];
    world.workload_answer(web);
    let before = world.workload("web").placement.clone().unwrap();
    assert_ne!(before.node, a, "only the database is lost");
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    world.ok(LoseNode { node: a, reason: "fire".into() });
    pass(&mut world, &mut Heard::default(), 0);
    assert_eq!(world.state.workload(&store).unwrap().placement.as_ref().unwrap().node, before.node);
    let after = world.workload("web").placement.clone().unwrap();
    assert_eq!(after.node, before.node);
    assert!(after.generation > before.generation, "it starts again, and finds the new address");
}
