//! A database gets another node while an app that uses it is being moved: whichever copy of the app is left in the end finds
//! the new address, and is not restarted when it has it already.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

/// A database whose node is lost, and an app that uses it, on another node, with a move to a third that has begun.
fn moving() -> (World, WorkloadUid) {
    let mut world = World::moving();
    let a = world.node("a");
    let store = world.database("store");
    world.node("b");
    let c = world.node("c");
    let mut web = world.app_command("web", "nginx");
    web.spec.dependencies = vec!["store".into()];
    let uid = world.workload_answer(web).uid;
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    world.ok(LoseNode { node: a, reason: "fire".into() });
    world.ok(StartMove { id: "m1".into(), uid, target: Some(c), settings: MoveSettings::default() });
    (world, store)
}

fn place(world: &mut World, store: &WorkloadUid) {
    world.ok(PlaceWorkload { uid: store.clone(), expect_generation: Generation(1) });
}

/// The target does what it is told until the move has reached this phase.
fn advance_to(world: &mut World, phase: MovePhase) {
    while world.mv("m1").phase != phase {
        let mut report = world.status_of_target("m1", Phase::Running);
        report.statuses[0].status.ready = true;
        report.statuses[0].status.containers = vec![ContainerStatus::default()];
        world.ok(report);
        let mv = world.mv("m1").clone();
        if mv.phase == MovePhase::StopOld {
            let gone = RemovedGrant { uid: mv.workload, generation: mv.source_generation };
            let epoch = world.epoch(&mv.source);
            world.ok(ReportStatus { node: mv.source, epoch, removed_grants: vec![gone], ..Default::default() });
        }
        world.advance("m1", StepOutcome::Ok);
    }
}

/// Where the app is, and whether it was granted anew since the move took its target's grant.
fn left(world: &World) -> (NodeId, bool) {
    let placement = world.workload("web").placement.clone().unwrap();
    (placement.node, placement.generation > world.mv("m1").target_generation)
}

#[test]
fn a_target_that_runs_with_the_old_address_is_restarted_after_the_move() {
    for phase in [MovePhase::Place, MovePhase::Verify, MovePhase::StopOld, MovePhase::Finalize] {
        let (mut world, store) = moving();
        advance_to(&mut world, phase);
        place(&mut world, &store);
        assert!(!left(&world).1, "the move goes on undisturbed");
        advance_to(&mut world, MovePhase::Done);
        assert_eq!(world.mv("m1").status, MoveStatus::Succeeded);
        assert_eq!(left(&world), (world.mv("m1").target.clone(), true), "{phase}");
    }
}

#[test]
fn a_target_that_starts_later_has_the_new_address_already() {
    let (mut world, store) = moving();
    place(&mut world, &store);
    advance_to(&mut world, MovePhase::Done);
    assert_eq!(left(&world), (world.mv("m1").target.clone(), false));
}

#[test]
fn a_source_that_is_left_after_all_is_restarted() {
    let (mut world, store) = moving();
    place(&mut world, &store);
    world.ok(CancelMove { id: "m1".into(), reason: String::new() });
    let mv = world.mv("m1").clone();
    let gone = RemovedGrant { uid: mv.workload, generation: mv.target_generation };
    let epoch = world.epoch(&mv.target);
    world.ok(ReportStatus { node: mv.target, epoch, removed_grants: vec![gone], ..Default::default() });
    world.advance("m1", StepOutcome::Ok);
    assert_eq!(world.mv("m1").status, MoveStatus::RolledBack);
    assert_eq!(left(&world), (mv.source, true));
}

#[test]
fn a_move_that_no_database_has_disturbed_restarts_nothing() {
    let (mut world, _) = moving();
    advance_to(&mut world, MovePhase::Done);
    assert_eq!(left(&world), (world.mv("m1").target.clone(), false));
}
