//! Since when a node is what it is, why it is taken for gone, who has never come, and where it stands.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::reconcile::*;
use cara_core::*;

const TIMEOUT_MS: u64 = 45_000;

fn node<'a>(world: &'a World, id: &NodeId) -> &'a Node {
    world.state.node(id).unwrap()
}

#[test]
fn a_node_knows_since_when_it_is_online_or_offline() {
    let mut world = World::that_knows(Feature::Lifecycle);
    let a = world.enrolled("a");
    assert_eq!(node(&world, &a).waits_since_ms(), Some(world.at_ms));
    world.at_ms += 1_000;
    world.open(&a);
    let online_at = world.at_ms;
    assert_eq!((node(&world, &a).connection_since_ms, node(&world, &a).waits_since_ms()), (online_at, None));
    world.at_ms += 1_000;
    world.open(&a);
    assert_eq!(node(&world, &a).connection_since_ms, online_at, "another session is no change");
    world.at_ms += 1_000;
    world.ok(Cordon { node: a.clone(), reason: String::new() });
    assert_eq!(node(&world, &a).connection_since_ms, online_at, "nor is a cordon");
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: "end".into() });
    assert_eq!(node(&world, &a).connection_since_ms, world.at_ms);
}

#[test]
fn servers_of_the_release_before_would_not_know_since_when() {
    let mut world = World::moving();
    let a = world.node("a");
    assert_eq!(node(&world, &a).connection_since_ms, 0);
    assert_eq!(world.refused(SetRegion { node: a, region: "eu".into() }), "feature-needed");
}

#[test]
fn a_region_is_said_changed_and_removed() {
    let mut world = World::that_knows(Feature::Lifecycle);
    let a = world.node("a");
    let set = |region: &str| SetRegion { node: a.clone(), region: region.into() };
    assert_eq!(world.events(set("eu-west")), ["NodeUpdated"]);
    assert!(world.events(set("eu-west")).is_empty(), "said again it changes nothing");
    assert_eq!(node(&world, &a).region, "eu-west");
    world.ok(set(""));
    assert_eq!(node(&world, &a).region, "");
    assert_eq!(world.refused(set("two\nlines")), "invalid-field");
    assert_eq!(world.refused(set(&"x".repeat(513))), "invalid-field");
    assert_eq!(world.refused(SetRegion { node: "nd_none".into(), region: String::new() }), "unknown-node");
}

/// The reason that the leader gives after a timeout of silence.
fn reason(world: &World, cut: Option<Cut>, was_heard: bool) -> String {
    let id = world.state.nodes().next().unwrap().id.clone();
    let epoch = world.epoch(&id);
    let mut heard = Heard { leader_since_ms: 1_000, ..Heard::default() };
    if was_heard {
        heard.nodes.insert(id.clone(), Heartbeat { epoch, at_ms: 1_000 });
    }
    heard.cuts.extend(cut.map(|cut| (id, cut)));
    let decision = reconcile(&world.state, &heard, &Settings::default(), 1_000 + TIMEOUT_MS);
    match decision.commands.as_slice() {
        [Command::TransitionNode(transition)] => transition.reason.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reason_says_what_kind_of_silence_it_was() {
    let mut world = World::new();
    let a = world.node("a");
    let epoch = world.epoch(&a);
    let cut = |unanswered| Some(Cut { epoch, at_ms: 21_000, unanswered });
    assert_eq!(reason(&world, cut(false), true), "no heartbeat for 45.0 s; its connection broke 25.0 s ago");
    let given_up = "no heartbeat for 45.0 s; its connection answered no more and was given up 25.0 s ago";
    assert_eq!(reason(&world, cut(true), true), given_up);
    let hangs = "no heartbeat for 45.0 s, though its connection is open: its agent stands still";
    assert_eq!(reason(&world, None, true), hangs);
    let stayed_away = "it has not come back in the 45.0 s since this server leads";
    assert_eq!(reason(&world, None, false), stayed_away);
    let of_old_session = Some(Cut { epoch: Epoch(epoch.0 - 1), at_ms: 0, unanswered: false });
    assert_eq!(reason(&world, of_old_session, true), hangs, "that cut was another session's");
}

#[test]
fn a_session_that_has_just_been_opened_is_not_taken_for_silence() {
    let mut world = World::new();
    let a = world.node("a");
    let old = world.epoch(&a);
    world.open(&a);
    let decide = |epoch: Epoch, now_ms: u64| {
        let mut heard = Heard { leader_since_ms: 1_000, ..Heard::default() };
        heard.nodes.insert(a.clone(), Heartbeat { epoch, at_ms: 900_000 });
        reconcile(&world.state, &heard, &Settings::default(), now_ms)
    };
    for epoch in [old, Epoch(0)] {
        let decision = decide(epoch, 900_500);
        assert_eq!((decision.commands, decision.wake_at), (vec![], Some(900_000 + TIMEOUT_MS)), "{epoch:?}");
        let late = decide(epoch, 900_000 + TIMEOUT_MS);
        assert!(late.reasons[0].ends_with("no heartbeat in the 45.0 s since it came back"), "{:?}", late.reasons);
    }
}

#[test]
fn who_never_comes_is_told_by_every_leader_alike() {
    let mut world = World::new();
    let settings = Settings::default();
    let joined = world.enrolled("a");
    world.at_ms += 60_000;
    world.ok(ApplyNode { node: "nd_m".into(), name: "b".into(), ..Default::default() });
    world.node("c");
    let told = |world: &World, wall_ms: u64, now_ms: u64| {
        let heard = Heard { wall_ms, leader_since_ms: now_ms, ..Heard::default() };
        let decision = reconcile(&world.state, &heard, &settings, now_ms);
        (decision.never_connected, decision.wake_at.map(|at| at - now_ms))
    };
    let joined_at = 1_000_000;
    let (early, wake_in) = told(&world, joined_at + 299_000, 5);
    assert_eq!((early, wake_in), (vec![], Some(1_000)));
    assert_eq!(told(&world, joined_at + 300_000, 77_000).0, std::slice::from_ref(&joined));
    assert_eq!(told(&world, joined_at + 360_000, 0).0, [joined.clone(), "nd_m".into()], "a declared one too");
    assert_eq!(told(&world, 0, 0).0, [], "a leader without a clock says nothing");
    world.open(&joined);
    assert_eq!(told(&world, joined_at + 360_000, 0).0, ["nd_m".into()]);
}
