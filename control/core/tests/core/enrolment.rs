//! What a machine is told before it joins, and which names it may have.

use crate::world::*;
use cara_core::command::*;
use cara_core::enrolment::preflight;
use cara_core::model::*;
use cara_core::*;

const KEY: u64 = 7;

/// What a machine with this key and name would hear of the token.
fn ask(world: &World, token: u64, name: &str) -> Result<(), &'static str> {
    preflight(&world.state, &hash(token), &hash(KEY), name, world.at_ms).map_err(|rejected| rejected.code())
}

#[test]
fn a_preflight_says_what_the_entry_would_say() {
    let mut world = World::that_knows(Feature::Lifecycle);
    world.node("taken");
    world.ok(mint(50, TokenPurpose::Node));
    world.ok(mint(51, TokenPurpose::Server));
    world.ok(MintJoinToken { bound_name: Some("b".into()), ..mint(52, TokenPurpose::Node) });
    world.ok(MintJoinToken { expires_at_ms: world.at_ms + 1, ..mint(53, TokenPurpose::Node) });
    world.ok(MintJoinToken { bound_name: Some("taken".into()), ..mint(54, TokenPurpose::Reenroll) });
    world.at_ms += 10;
    assert_eq!(ask(&world, 50, "a"), Ok(()));
    assert_eq!(ask(&world, 99, "a"), Err("join-token-unknown"));
    assert_eq!(ask(&world, 51, "a"), Err("join-token-purpose"));
    assert_eq!(ask(&world, 52, "a"), Err("join-token-name"));
    assert_eq!(ask(&world, 52, "b"), Ok(()));
    assert_eq!(ask(&world, 53, "a"), Err("join-token-expired"));
    assert_eq!(ask(&world, 50, "taken"), Err("node-name-taken"));
    assert_eq!(ask(&world, 54, "taken"), Ok(()), "its machine comes back");
    assert_eq!(ask(&world, 50, "Rack7_N2"), Err("invalid-field"));
    for (token, name) in [(50, "taken"), (52, "a"), (53, "a"), (50, "Rack7_N2")] {
        let refused = world.refused(enroll(token, &"nd_x".into(), name));
        assert_eq!(Err(refused), ask(&world, token, name), "{token} {name}");
    }
}

#[test]
fn a_machine_whose_answer_was_lost_asks_again_and_is_welcome() {
    let mut world = World::that_knows(Feature::Lifecycle);
    world.ok(mint(50, TokenPurpose::Node));
    world.ok(EnrollNode { certificate: certificate(50), ..enroll(50, &"nd_a".into(), "a") });
    let own = certificate(50).key_hash;
    assert_eq!(preflight(&world.state, &hash(50), &own, "a", world.at_ms), Ok(()));
    assert_eq!(ask(&world, 50, "b"), Err("join-token-spent"));
}

#[test]
fn a_token_for_one_node_goes_by_that_node_whatever_the_machine_calls_itself() {
    let mut world = World::that_knows(Feature::Lifecycle);
    let node = world.node("a");
    for (token, life_ms) in [(70, 10), (71, 1_000)] {
        let (id, expires_at_ms) = (format!("back-{token}").as_str().into(), world.at_ms + life_ms);
        world.ok(MintReenrollToken { id, hash: hash(token), node: node.clone(), expires_at_ms });
        assert_eq!(ask(&world, token, "renamed-host"), Ok(()));
    }
    let back = |token| ReenrollNode {
        token_hash: hash(token),
        node: node.clone(),
        certificate: certificate(token),
        ..Default::default()
    };
    world.at_ms += 100;
    assert_eq!(Err(world.refused(back(70))), ask(&world, 70, "renamed-host"));
    world.ok(back(71));
    assert_eq!(ask(&world, 71, "renamed-host"), Err("join-token-spent"));
}

#[test]
fn names_that_came_before_the_rule_stay() {
    let mut world = World::new();
    world.node("7rack");
    world.ok(SetFeatureLevel { level: Feature::Lifecycle.level() });
    let manifest = |name: &str| ApplyNode {
        node: NodeId::new(format!("nd_m_{name}")),
        name: name.into(),
        labels: labels(&[("site", "x")]),
        ..Default::default()
    };
    world.ok(manifest("7rack"));
    let bound = |name: &str| MintJoinToken { bound_name: Some(name.into()), ..mint(60, TokenPurpose::Node) };
    world.ok(bound("7rack"));
    assert_eq!(world.refused(manifest("8rack")), "invalid-field");
    assert_eq!(world.refused(MintJoinToken { id: "other".into(), hash: hash(61), ..bound("8rack") }), "invalid-field");
}
