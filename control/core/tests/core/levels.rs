//! Feature levels: who announces what, when the cluster's rises, and what an agent that is behind is not asked for.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::reconcile::{Heard, Settings, reconcile};
use cara_core::*;

/// A server's word about itself.
fn announce(world: &World, id: u64, level: u32) -> PutServer {
    let known = world.state.server(ServerId(id)).unwrap().clone();
    PutServer { server: Server { feature_level: level, ..known }, token_hash: None }
}

fn join(world: &mut World, id: u64, level: u32) -> PutServer {
    world.ok(mint(500 + id, TokenPurpose::Server));
    PutServer { server: Server { feature_level: level, ..server(id) }, token_hash: Some(hash(500 + id)) }
}

/// What the leader, which supports this much, asks for by itself.
fn asks(world: &World, feature_level_max: u32) -> Vec<Command> {
    let settings = Settings { feature_level_max, ..Settings::default() };
    reconcile(&world.state, &Heard::default(), &settings, 0).commands
}

/// The level rises to 2, as the leader would have it.
fn raise(world: &mut World) {
    let commands = asks(world, 2);
    assert_eq!(commands, [SetFeatureLevel { level: 2 }.into()]);
    world.ok(commands[0].clone());
}

fn start(uid: &WorkloadUid, target: Option<&NodeId>) -> StartMove {
    StartMove { id: "m1".into(), uid: uid.clone(), target: target.cloned(), settings: MoveSettings::default() }
}

/// A session of an agent that says this level.
fn open_at(world: &mut World, node: &NodeId, feature_level: u32) {
    let open = world.open_command(node);
    world.ok(OpenSession { feature_level, ..open });
}

#[test]
fn the_level_rises_by_itself_once_every_server_has_announced_a_higher_one() {
    let mut world = World::new();
    let second = join(&mut world, 2, 1);
    world.ok(second);
    assert_eq!(asks(&world, 2), [], "nobody has said anything");
    let first = announce(&world, 1, 2);
    world.ok(first);
    assert_eq!(asks(&world, 2), [], "the second one is behind");
    assert_eq!(world.refused(SetFeatureLevel { level: 2 }), "feature-held-back");
    let second = announce(&world, 2, 3);
    world.ok(second);
    assert_eq!(asks(&world, 1), [], "this leader would not know what it lets in");
    raise(&mut world);
    assert_eq!(asks(&world, 2), [], "a fixed point");
    assert_eq!(asks(&world, 3), [], "and no further than the first one goes");
}

#[test]
fn a_server_that_says_nothing_holds_the_level_back() {
    let mut world = World::new();
    assert_eq!(world.state.common_level(), FEATURE_LEVEL_MIN);
    assert_eq!(asks(&world, 2), []);
    let word = announce(&world, 1, 2);
    assert_eq!(world.events(word.clone()), ["ServerUpdated"]);
    assert!(world.events(word).is_empty(), "said again");
    raise(&mut world);
}

#[test]
fn a_server_behind_the_cluster_is_not_admitted_and_not_taken_back_below() {
    let mut world = World::new();
    let word = announce(&world, 1, 2);
    world.ok(word);
    raise(&mut world);
    let older = join(&mut world, 2, 1);
    assert_eq!(world.refused(older.clone()), "server-outdated");
    let newer = PutServer { server: Server { feature_level: 3, ..older.server }, ..older };
    world.ok(newer); // Nothing was spent.
    let downgraded = announce(&world, 2, 1);
    assert_eq!(world.refused(downgraded), "server-outdated");
    let lower = announce(&world, 2, 2);
    world.ok(lower); // Not below the cluster's.
}

#[test]
fn what_an_agent_does_not_know_is_not_asked_of_it() {
    let mut world = World::moving();
    let (a, b) = (world.node("a"), world.node("b"));
    let create = ApplyWorkload { node: Some(a.clone()), ..world.app_command("web", "nginx") };
    let uid = world.workload_answer(create).uid;
    open_at(&mut world, &b, 1);
    assert_eq!(world.refused(start(&uid, Some(&b))), "node-not-eligible");
    let Rejected::NoEligibleNode { reasons, .. } = plan_move(&world.state, &start(&uid, None)).unwrap_err() else {
        panic!("there is no third node");
    };
    assert!(reasons.contains("b its agent supports feature level 1, this needs 2"), "{reasons}");
    let drain = StartDrain { id: "d1".into(), node: a.clone(), ..Default::default() };
    let plan = plan_drain(&world.state, &drain).unwrap();
    assert!(plan.plan.is_empty() && plan.blocked[0].rejections.iter().any(|r| r.node == b), "{:?}", plan.blocked);

    open_at(&mut world, &a, 1);
    open_at(&mut world, &b, 2);
    assert_eq!(world.refused(start(&uid, Some(&b))), "agent-outdated");
    let plan = plan_drain(&world.state, &drain).unwrap();
    assert!(plan.plan.is_empty() && plan.blocked[0].reason.contains("agent of node a"), "{:?}", plan.blocked);
    assert_eq!(world.refused(SuspendWorkload { uid: uid.clone(), expect_revision: None }), "agent-outdated");
    let mut suspended = world.app_command("web", "nginx");
    suspended.spec.suspended = true;
    assert_eq!(world.refused(suspended), "agent-outdated");

    open_at(&mut world, &a, 2);
    world.ok(start(&uid, Some(&b)));
}

#[test]
fn an_agent_that_is_behind_hears_only_what_to_run_and_what_to_remove() {
    let mut world = World::moving();
    let a = world.node("a");
    let told = |world: &World| {
        let set = desired_set(&world.state, &a);
        set.into_iter().map(|of| (of.name, of.mode, of.data_generation, of.remove)).collect::<Vec<_>>()
    };
    let disk = |world: &mut World, name: &str| {
        let mut command = world.app_command(name, "nginx");
        command.spec.volumes = vec![VolumeSpec { name: "v".into(), kind: VolumeKind::Managed }];
        command.spec.services[0].volume_mounts = vec![VolumeMount { name: "v".into(), mount_path: "/v".into() }];
        world.workload_answer(command).uid
    };
    let dated = disk(&mut world, "dated");
    assert_eq!(told(&world), [("dated".into(), Mode::Run, Generation(1), false)]);
    open_at(&mut world, &a, 1);
    assert_eq!(told(&world), [], "it would start with an empty volume of another name");
    disk(&mut world, "plain");
    assert_eq!(told(&world), [("plain".into(), Mode::Run, Generation(0), false)], "volumes are named as it names them");
    world.ok(DeleteWorkload { uid: dated, force: false, expect_revision: None });
    assert_eq!(told(&world)[0], ("dated".into(), Mode::Run, Generation(1), true));
    open_at(&mut world, &a, 2);
    assert_eq!(told(&world)[1], ("plain".into(), Mode::Run, Generation(0), false), "and they keep their names");
}
