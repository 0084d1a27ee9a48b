//! Drains: order, one move at a time, what is blocked, and every refusal.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

fn drain(node: &NodeId) -> StartDrain {
    StartDrain { id: "d1".into(), node: node.clone(), ..Default::default() }
}

fn step(world: &World) -> AdvanceDrain {
    AdvanceDrain { id: "d1".into(), expect_step: world.state.drain(&"d1".into()).unwrap().step_count }
}

/// The next step of the drain, which begins a move.
fn next_move(world: &mut World) -> Move {
    let step = step(world);
    world.ok(step);
    world.state.running_moves().next().expect("a move").clone()
}

/// Ends a running move well: its ends say what they would say.
fn finish(world: &mut World, id: &MoveId) {
    let id = id.as_str();
    while world.mv(id).is_running() {
        let mv = world.mv(id).clone();
        let mut report = world.status_of_target(id, Phase::Running);
        report.statuses[0].status.ready = true;
        report.statuses[0].status.containers = vec![ContainerStatus::default()];
        world.ok(report);
        let stopped = StatusReport {
            uid: mv.workload.clone(),
            status: WorkloadStatus {
                observed_generation: mv.source_generation,
                phase: Phase::Stopped,
                ..Default::default()
            },
        };
        let gone = RemovedGrant { uid: mv.workload.clone(), generation: mv.source_generation };
        let stopped = if mv.phase == MovePhase::StopSource { vec![stopped] } else { vec![] };
        world.ok(ReportStatus {
            epoch: world.epoch(&mv.source),
            node: mv.source,
            statuses: stopped,
            removed_grants: vec![gone],
            ..Default::default()
        });
        world.advance(id, StepOutcome::Ok);
    }
}

#[test]
fn databases_go_first_and_apps_follow_them_one_after_the_other() {
    let mut world = World::moving();
    let a = world.node("a");
    let mut app = world.app_command("aa-first-by-name", "nginx");
    app.spec.dependencies = vec!["store".into()];
    let app = world.workload_answer(app).uid;
    let database = ApplyWorkload { kind: WorkloadKind::Database, ..world.app_command("store", "postgres") };
    let store = world.workload_answer(database).uid;
    let (b, c) = (world.node("b"), world.node("c"));
    let busy = ApplyWorkload { node: Some(b), ..world.app_command("busy", "nginx") };
    world.ok(busy);
    assert_eq!(world.events(drain(&a)), ["DrainStarted", "NodeCordoned"]);
    assert_eq!(world.state.drain(&"d1".into()).unwrap().plan, [store.clone(), app.clone()]);
    let first = next_move(&mut world);
    assert_eq!((&first.workload, &first.target, first.id.as_str()), (&store, &c, "d1-1"));
    let early = step(&world);
    assert_eq!(world.refused(early), "drain-waits");
    let granted = world.workload("aa-first-by-name").last_generation;
    finish(&mut world, &first.id);
    assert_eq!(world.workload("aa-first-by-name").last_generation, granted.next(), "who uses it is restarted");
    let second = next_move(&mut world);
    assert_eq!((&second.workload, &second.target), (&app, &c), "b has no more to do, but the database is on c");
    finish(&mut world, &second.id);
    let last = step(&world);
    assert_eq!(world.events(last.clone()), ["DrainFinished"]);
    assert_eq!(world.state.drain(&"d1".into()).unwrap().status, DrainStatus::Succeeded);
    assert_eq!(world.refused(last), "drain-over");
    assert!(!world.state.node(&a).unwrap().schedulable, "it stays cordoned");
}

#[test]
fn what_no_node_can_take_is_blocked_and_the_rest_goes() {
    let mut world = World::moving();
    let a = world.node("a");
    let mut picky = world.app_command("picky", "nginx");
    picky.spec.selector = labels(&[("gpu", "yes")]);
    world.ok(SetLabels { node: a.clone(), labels: labels(&[("gpu", "yes")]), expect_revision: None });
    world.ok(picky);
    world.app("web", "nginx");
    world.node("b");
    world.ok(drain(&a));
    let blocked = &world.state.drain(&"d1".into()).unwrap().blocked;
    assert_eq!((blocked.len(), blocked[0].name.as_str()), (1, "picky"));
    let reasons: Vec<&str> = blocked[0].rejections.iter().map(|rejection| rejection.reason.as_str()).collect();
    assert_eq!(reasons, ["it is there already", "lacks label gpu=yes"]);
    let only = next_move(&mut world);
    finish(&mut world, &only.id);
    let last = step(&world);
    world.ok(last);
    assert_eq!(world.state.drain(&"d1".into()).unwrap().status, DrainStatus::Failed);
}

#[test]
fn the_first_move_that_fails_ends_the_drain() {
    let mut world = World::moving();
    let a = world.node("a");
    world.app("web", "nginx");
    world.node("b");
    world.ok(drain(&a));
    let mv = next_move(&mut world);
    world.ok(CancelMove { id: mv.id.clone(), reason: String::new() });
    let gone = RemovedGrant { uid: mv.workload.clone(), generation: mv.target_generation };
    let epoch = world.epoch(&mv.target);
    world.ok(ReportStatus { node: mv.target.clone(), epoch, removed_grants: vec![gone], ..Default::default() });
    world.advance(mv.id.as_str(), StepOutcome::Ok);
    let drain = world.state.drain(&"d1".into()).unwrap();
    assert_eq!((drain.status, drain.error.as_str()), (DrainStatus::Failed, "move d1-1 of web: cancelled"));
}

#[test]
fn a_drain_that_can_not_be_is_refused_and_uncordon_ends_one() {
    let mut world = World::moving();
    let (a, b) = (world.node("a"), world.node("b"));
    world.app("web", "nginx");
    assert_eq!(world.refused(drain(&"nd_z".into())), "unknown-node");
    assert_eq!(world.refused(StartDrain { target: Some(a.clone()), ..drain(&a) }), "invalid-field");
    assert_eq!(world.refused(StartDrain { target: Some("nd_z".into()), ..drain(&a) }), "unknown-node");
    assert_eq!(world.refused(StartDrain { id: DrainId::new("d".repeat(49)), ..drain(&a) }), "invalid-field");
    assert_eq!(world.refused(AdvanceDrain { id: "d1".into(), expect_step: 0 }), "unknown-drain");
    assert_eq!(world.refused(CancelDrain { id: "d1".into(), reason: String::new() }), "unknown-drain");
    world.ok(drain(&a));
    assert_eq!(world.refused(drain(&a)), "drain-exists");
    assert_eq!(world.refused(StartDrain { id: "d2".into(), ..drain(&a) }), "drain-running");
    assert_eq!(world.refused(AdvanceDrain { id: "d1".into(), expect_step: 9 }), "stale-drain");
    assert_eq!(world.events(Uncordon { node: a.clone(), reason: String::new() }), ["NodeUncordoned", "DrainFinished"]);
    assert_eq!(world.state.drain(&"d1".into()).unwrap().status, DrainStatus::Cancelled);
    assert_eq!(world.refused(CancelDrain { id: "d1".into(), reason: String::new() }), "drain-over");
    world.ok(StartDrain { id: "d2".into(), ..drain(&b) });
    assert_eq!(world.refused(DeleteNode { node: b.clone() }), "drain-running");
    world.ok(CancelDrain { id: "d2".into(), reason: "test".into() });
    assert!(!world.state.node(&b).unwrap().schedulable);
}

#[test]
fn a_node_that_is_lost_once_more_ends_its_drain_and_the_audit_knows_the_drain_from_before() {
    let mut world = World::that_knows(Feature::Lifecycle);
    let (a, _) = (world.node("a"), world.node("b"));
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: "end".into() });
    let lose = LoseNode { node: a.clone(), reason: String::new() };
    world.ok(lose.clone());
    world.ok(StartDrain { id: "d1".into(), node: a, ..Default::default() });
    assert_eq!(world.events(lose), ["DrainFinished"]);
}
