//! Volumes in quarantine: what an operator may remove, what is refused, and what becomes of it.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

/// A volume of the workload under this data generation, as its node reports it.
fn kept(uid: &WorkloadUid, data: u64) -> QuarantinedVolume {
    QuarantinedVolume {
        workload: uid.clone(),
        volume: "pg".into(),
        data_generation: Generation(data),
        engine_name: format!("cara-web-pg-g{data}"),
        ..Default::default()
    }
}

fn reports(world: &mut World, node: &NodeId, volumes: Vec<QuarantinedVolume>) {
    let (epoch, quarantine) = (world.epoch(node), Some(Quarantine { volumes }));
    world.ok(ReportStatus { node: node.clone(), epoch, quarantine, ..Default::default() });
}

fn remove(node: &NodeId, data: u64) -> RemoveVolume {
    RemoveVolume { node: node.clone(), engine_name: format!("cara-web-pg-g{data}") }
}

fn told(world: &World, node: &NodeId) -> Vec<u64> {
    removals(&world.state, node).map(|kept| kept.data_generation.0).collect()
}

/// A cluster of two nodes; a workload with a volume, under its second grant, is on the first.
fn placed() -> (World, NodeId, NodeId, WorkloadUid) {
    let mut world = World::moving();
    let a = world.node("a");
    let mut create = world.app_command("web", "nginx");
    create.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    let uid = world.workload_answer(create).uid;
    world.ok(RestartWorkload { uid: uid.clone(), expect_revision: None });
    let b = world.node("b");
    (world, a, b, uid)
}

#[test]
fn a_volume_is_removed_on_an_operators_word_and_not_on_its_agents() {
    let (mut world, a, b, uid) = placed();
    let asked = QuarantinedVolume { removal_asked_at_ms: Some(1), ..kept(&uid, 7) };
    reports(&mut world, &a, vec![asked.clone(), kept(&uid, 8)]);
    assert!(told(&world, &a).is_empty(), "no agent asks for it");
    assert_eq!(world.events(remove(&a, 7)), ["VolumeRemovalAsked"]);
    assert!(world.events(remove(&a, 7)).is_empty());
    assert_eq!((told(&world, &a), told(&world, &b)), (vec![7], vec![]));
    reports(&mut world, &a, vec![kept(&uid, 7), QuarantinedVolume { bytes: 5, ..kept(&uid, 8) }]);
    assert_eq!(told(&world, &a), [7], "what the agent says of its size takes nothing back");
    reports(&mut world, &a, vec![kept(&uid, 8)]);
    assert!(told(&world, &a).is_empty() && world.state.node(&a).unwrap().quarantine.len() == 1);
    reports(&mut world, &a, vec![kept(&uid, 7)]);
    assert!(told(&world, &a).is_empty(), "another volume of that name was not given up");
}

#[test]
fn what_is_not_in_quarantine_or_not_named_is_refused() {
    let (mut world, a, _, uid) = placed();
    assert_eq!(world.refused(remove(&a, 7)), "unknown-volume");
    assert_eq!(world.refused(RemoveVolume { node: "nd_z".into(), ..remove(&a, 7) }), "unknown-node");
    reports(&mut world, &a, vec![QuarantinedVolume { engine_name: String::new(), ..kept(&uid, 7) }]);
    assert_eq!(world.refused(RemoveVolume { node: a.clone(), ..Default::default() }), "unknown-volume");
    let mut old = World::new();
    let node = old.node("a");
    assert_eq!(old.refused(remove(&node, 7)), "feature-needed");
    reports(&mut world, &a, vec![kept(&uid, 7)]);
    let outdated = OpenSession { feature_level: 1, ..world.open_command(&a) };
    world.ok(outdated);
    assert_eq!(world.refused(remove(&a, 7)), "agent-outdated");
}

#[test]
fn the_data_of_a_workload_are_never_removed_wherever_they_lie() {
    let (mut world, a, b, uid) = placed();
    let data = world.workload("web").data_generation.0;
    // Out of its spec for now, or left on a node by a restored backup: it may be mounted again.
    for node in [&a, &b] {
        reports(&mut world, node, vec![kept(&uid, data)]);
        assert_eq!(world.refused(remove(node, data)), "volume-needed");
    }
    world.ok(DeleteWorkload { uid: uid.clone(), force: false, expect_revision: None });
    assert_eq!(world.refused(remove(&a, data)), "volume-needed", "its node has not removed the workload yet");
    let epoch = world.epoch(&a);
    world.ok(ReportStatus { node: a.clone(), epoch, removed: vec![uid], ..Default::default() });
    world.ok(remove(&a, data));
    assert_eq!(told(&world, &a), [data]);
}

#[test]
fn both_ends_of_a_move_keep_their_data_until_it_is_over() {
    let (mut world, a, b, uid) = placed();
    let settings = MoveSettings { shutdown_delay_ms: 0, ..MoveSettings::default() };
    world.ok(StartMove { id: "m1".into(), uid: uid.clone(), target: None, settings });
    let (source, target) = (world.mv("m1").source_data_generation.0, world.mv("m1").target_generation.0);
    reports(&mut world, &a, vec![kept(&uid, source)]);
    reports(&mut world, &b, vec![kept(&uid, target), kept(&uid, 77)]);
    assert_eq!(world.refused(remove(&a, source)), "volume-needed");
    assert_eq!(world.refused(remove(&b, target)), "volume-needed");
    world.ok(remove(&b, 77));
    world.ok(CancelMove { id: "m1".into(), reason: String::new() });
    assert_eq!(world.refused(remove(&b, target)), "volume-needed", "it is being taken back");
    let (epoch, gone) = (world.epoch(&b), RemovedGrant { uid: uid.clone(), generation: Generation(target) });
    world.ok(ReportStatus { node: b.clone(), epoch, removed_grants: vec![gone], ..Default::default() });
    world.advance("m1", StepOutcome::Ok);
    world.ok(remove(&b, target));
    assert_eq!(world.refused(remove(&a, source)), "volume-needed");
    assert_eq!(told(&world, &b), [target, 77]);
}

#[test]
fn data_that_were_taken_up_again_are_not_removed_although_that_was_asked() {
    // From before moves, data have no generation, and nothing tells the next ones apart.
    let mut world = World::new();
    let a = world.node("a");
    let mut create = world.app_command("web", "nginx");
    create.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    let uid = world.workload_answer(create).uid;
    world.ok(SetFeatureLevel { level: 2 });
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    world.ok(LoseNode { node: a.clone(), reason: "fire".into() });
    world.open(&a);
    reports(&mut world, &a, vec![kept(&uid, 0)]);
    world.ok(remove(&a, 0));
    assert_eq!(told(&world, &a), [0]);
    let outdated = OpenSession { feature_level: 1, ..world.open_command(&a) };
    world.ok(outdated);
    world.ok(PlaceWorkload { uid, expect_generation: Generation(1) });
    assert_eq!(world.workload("web").data_generation, Generation(0));
    assert!(told(&world, &a).is_empty());
}
