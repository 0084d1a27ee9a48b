//! What the leader does by itself.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::reconcile::*;
use cara_core::*;

const TIMEOUT_MS: u64 = 45_000;

fn heard(world: &World, at_ms: u64) -> Heard {
    let nodes = world.state.nodes().filter_map(|node| {
        let epoch = node.session.as_ref()?.epoch;
        Some((node.id.clone(), Heartbeat { epoch, at_ms }))
    });
    Heard { nodes: nodes.collect(), ..Heard::default() }
}

/// Applies what is asked for, and checks that it then asks for nothing.
fn settle(world: &mut World, heard: &mut Heard, now_ms: u64) -> Decision {
    heard.observe(&world.state, now_ms);
    let first = reconcile(&world.state, heard, &Settings::default(), now_ms);
    if first.suspects_itself && !first.commands.is_empty() {
        heard.last_braked_ms = Some(now_ms);
    }
    for command in &first.commands {
        world.ok(command.clone());
    }
    let mut again = reconcile(&world.state, heard, &Settings::default(), now_ms);
    if first.commands.iter().any(|command| matches!(command, Command::RevokePlacement(_))) {
        assert!(again.commands.iter().all(|command| matches!(command, Command::PlaceWorkload(_))));
        for command in again.commands {
            world.ok(command);
        }
        again = reconcile(&world.state, heard, &Settings::default(), now_ms);
    }
    assert_eq!(again.commands, [], "not a fixed point");
    first
}

#[test]
fn a_silent_node_goes_offline_and_comes_back_when_heard() {
    let mut world = World::new();
    let (a, b) = (world.node("a"), world.node("b"));
    let mut ears = heard(&world, 1_000);
    let calm = settle(&mut world, &mut ears, 2_000);
    assert_eq!((calm.commands.len(), calm.wake_at), (0, Some(1_000 + TIMEOUT_MS)));
    ears.nodes.get_mut(&b).unwrap().at_ms = 40_000;
    let now_ms = 1_000 + TIMEOUT_MS;
    assert!(reconcile(&world.state, &ears, &Settings::default(), now_ms - 1).commands.is_empty());
    let decision = settle(&mut world, &mut ears, now_ms);
    assert_eq!(decision.commands.len(), 1);
    assert_eq!(world.state.node(&a).unwrap().connection, Connection::Offline);
    assert_eq!(decision.wake_at, Some(40_000 + TIMEOUT_MS));
    ears.nodes.get_mut(&a).unwrap().at_ms = now_ms + 10;
    settle(&mut world, &mut ears, now_ms + 20);
    assert_eq!(world.state.node(&a).unwrap().connection, Connection::Online);
}

#[test]
fn a_new_leader_gives_a_full_fresh_timeout() {
    let mut world = World::new();
    let a = world.node("a");
    let mut ears = Heard { leader_since_ms: 500_000, ..Heard::default() };
    assert_eq!(settle(&mut world, &mut ears, 500_000 + TIMEOUT_MS - 1).commands, []);
    settle(&mut world, &mut ears, 500_000 + TIMEOUT_MS);
    assert_eq!(world.state.node(&a).unwrap().connection, Connection::Offline);
}

#[test]
fn a_heartbeat_of_an_old_session_brings_nobody_back() {
    let mut world = World::new();
    let a = world.node("a");
    let mut ears = heard(&world, 1_000);
    world.open(&a);
    let of_old = |ears: &mut Heard, at_ms| ears.nodes.get_mut(&a).unwrap().at_ms = at_ms;
    of_old(&mut ears, 50_000);
    settle(&mut world, &mut ears, 50_001);
    assert_eq!(world.state.node(&a).unwrap().connection, Connection::Online, "it was alive a moment ago");
    settle(&mut world, &mut ears, 50_000 + TIMEOUT_MS);
    assert_eq!(world.state.node(&a).unwrap().connection, Connection::Offline);
    of_old(&mut ears, 50_001 + TIMEOUT_MS);
    settle(&mut world, &mut ears, 50_001 + TIMEOUT_MS);
    assert_eq!(world.state.node(&a).unwrap().connection, Connection::Offline);
}

#[test]
fn when_most_nodes_are_silent_the_leader_suspects_itself_and_goes_slowly() {
    let mut world = World::new();
    for n in 0..10 {
        world.node(&format!("n{n}"));
    }
    let mut ears = heard(&world, 1_000);
    let mut now_ms = 1_000 + TIMEOUT_MS;
    let first = settle(&mut world, &mut ears, now_ms);
    assert!(first.suspects_itself);
    assert_eq!(first.commands.len(), 1, "one at a time");
    assert_eq!(first.wake_at, Some(now_ms + 5_000));
    assert_eq!(settle(&mut world, &mut ears, now_ms + 4_999).commands, []);
    // It was the leader's own fault: everybody is heard again, and nobody else was touched.
    now_ms += 5_000;
    ears.nodes.values_mut().for_each(|heartbeat| heartbeat.at_ms = now_ms);
    settle(&mut world, &mut ears, now_ms);
    assert!(world.state.nodes().all(|node| node.connection == Connection::Online));
}

#[test]
fn when_all_nodes_are_really_gone_they_go_offline_one_by_one() {
    let mut world = World::new();
    for n in 0..6 {
        world.node(&format!("n{n}"));
    }
    let mut ears = heard(&world, 1_000);
    let mut now_ms = 1_000 + TIMEOUT_MS;
    let mut passes = 0;
    while world.state.nodes().any(|node| node.connection == Connection::Online) {
        let decision = settle(&mut world, &mut ears, now_ms);
        now_ms = decision.wake_at.unwrap_or(now_ms + 1);
        passes += 1;
        assert!(passes <= 20, "it never ends");
    }
    assert!(passes >= 4);
}

#[test]
fn one_silent_node_of_ten_needs_no_brake() {
    let mut world = World::new();
    for n in 0..10 {
        world.node(&format!("n{n}"));
    }
    let mut ears = heard(&world, 50_000);
    ears.nodes.values_mut().next().unwrap().at_ms = 1_000;
    let decision = settle(&mut world, &mut ears, 50_000);
    assert_eq!((decision.commands.len(), decision.suspects_itself), (1, false));
}

#[test]
fn what_waits_for_a_node_is_placed_when_one_comes_and_not_asked_for_before() {
    let mut world = World::new();
    world.app("web", "nginx");
    let mut ears = Heard::default();
    assert_eq!(settle(&mut world, &mut ears, 1).commands, [], "creating it tried already");
    let a = world.enrolled("a");
    assert_eq!(settle(&mut world, &mut ears, 1).commands.len(), 1, "why it can't be placed has changed");
    assert_eq!(world.workload("web").rejections[0].reason, "has not connected yet");
    world.open(&a);
    settle(&mut world, &mut ears, 1);
    assert_eq!(world.workload("web").placement.as_ref().unwrap().node, a);
}

#[test]
fn what_is_placed_is_never_moved() {
    let mut world = World::new();
    let a = world.node("a");
    world.app("web", "nginx");
    world.ok(Cordon { node: a.clone(), reason: String::new() });
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: String::new() });
    world.node("b");
    let mut ears = heard(&world, 1);
    assert_eq!(settle(&mut world, &mut ears, 2).commands, []);
    assert_eq!(world.workload("web").placement.as_ref().unwrap().node, a);
}

#[test]
fn a_pass_asks_for_a_bounded_number_of_placements() {
    let mut world = World::new();
    for n in 0..5 {
        world.app(&format!("w{n}"), "nginx");
    }
    world.node("a");
    let settings = Settings { commands_per_pass_max: 2, ..Settings::default() };
    let decision = reconcile(&world.state, &heard(&world, 1), &settings, 1);
    assert_eq!(decision.commands.len(), 2);
}

#[test]
fn what_has_expired_is_deleted() {
    let mut world = World::new();
    world.node("a");
    let mut create = world.app_command("web", "nginx");
    create.spec.expire_at_ms = Some(5_000_000);
    world.ok(create);
    let mut ears = Heard { wall_ms: 4_999_000, ..heard(&world, 100) };
    let waiting = settle(&mut world, &mut ears, 100);
    assert_eq!((waiting.commands.len(), waiting.wake_at), (0, Some(1_100)));
    ears.wall_ms = 5_000_000;
    settle(&mut world, &mut ears, 1_100);
    assert!(world.workload("web").deleting);
}

#[test]
fn a_lost_node_keeps_what_has_state_and_loses_the_rest_after_the_grace() {
    let mut world = World::new();
    let a = world.node("a");
    world.app("web", "nginx");
    let mut store = world.app_command("store", "postgres");
    store.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    world.ok(store);
    let pinned = ApplyWorkload { node: Some(a.clone()), ..world.app_command("pinned", "nginx") };
    world.ok(pinned);
    let b = world.node("b");
    let mut ears = heard(&world, 1_000);
    let offline_ms = 1_000 + TIMEOUT_MS;
    let lost_ms = offline_ms + 10 + 180_000;
    ears.nodes.get_mut(&b).unwrap().at_ms = lost_ms;
    settle(&mut world, &mut ears, offline_ms);
    settle(&mut world, &mut ears, offline_ms + 10);
    let waiting = settle(&mut world, &mut ears, lost_ms - 1);
    assert_eq!(waiting.wake_at, Some(lost_ms));
    let on = |world: &World, name: &str| world.workload(name).placement.as_ref().unwrap().node.clone();
    assert_eq!(on(&world, "web"), a, "the grace is not over");
    settle(&mut world, &mut ears, lost_ms);
    assert_eq!((on(&world, "web"), on(&world, "store"), on(&world, "pinned")), (b, a.clone(), a));
    assert_eq!(world.workload("web").last_generation, Generation(2));
}

#[test]
fn a_lost_node_keeps_what_nobody_else_can_take() {
    let mut world = World::new();
    let a = world.node("a");
    world.app("web", "nginx");
    let mut ears = heard(&world, 1_000);
    settle(&mut world, &mut ears, 10_000_000);
    assert_eq!(world.state.node(&a).unwrap().connection, Connection::Offline);
    settle(&mut world, &mut ears, 10_000_001);
    assert_eq!(settle(&mut world, &mut ears, 20_000_000).commands, []);
    assert_eq!(world.state.placed_count(&a), 1);
}

#[test]
fn a_new_leader_starts_the_grace_anew() {
    let mut world = World::new();
    let a = world.node("a");
    world.app("web", "nginx");
    let b = world.node("b");
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: "test".into() });
    let mut ears = heard(&world, 900_000);
    ears.leader_since_ms = 900_000;
    let decision = settle(&mut world, &mut ears, 900_010);
    assert_eq!((decision.commands.len(), world.state.placed_count(&a)), (0, 1));
    ears.nodes.get_mut(&b).unwrap().at_ms = 1_080_010;
    settle(&mut world, &mut ears, 1_080_010);
    assert_eq!(world.state.placed_count(&b), 1);
}
