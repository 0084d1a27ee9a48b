//! The replacement of the sealing key: who holds it back, what each step refuses.

use crate::rotation::{advance, rotate, server_trusts};
use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

/// The leader, server 1, has made the key of this number.
pub fn begin(world: &World, number: u64) -> RotateSealingKey {
    let current = &cluster(world).sealing_key;
    let replaces = if current.is_empty() { hash(1) } else { current.clone() };
    RotateSealingKey { key_id: hash(number), replaces, server: ServerId(1), anew: false }
}

pub fn hold(world: &World, server: u64) -> HoldSealingKey {
    HoldSealingKey { server: ServerId(server), key_id: next_key(world) }
}

/// All that is sealed, sealed anew.
pub fn reseal(world: &World, sealed: u8) -> Reseal {
    Reseal {
        key_id: next_key(world),
        expect_epoch: cluster(world).trust_epoch,
        ca_key_sealed: vec![sealed],
        next_ca_key_sealed: cluster(world).rotation.iter().map(|_| sealed).collect(),
    }
}

fn next_key(world: &World) -> String {
    cluster(world).next_sealing_key.as_ref().map_or(hash(9_999), |next| next.key_id.clone())
}

fn cluster(world: &World) -> &Cluster {
    world.state.cluster().unwrap()
}

fn lacking(world: &World) -> Vec<&str> {
    world.state.lacking_next_key().map(|server| server.name.as_str()).collect()
}

/// A cluster of three servers.
fn three() -> World {
    let mut world = World::that_knows(Feature::Lifecycle);
    for number in [2, 3] {
        world.ok(mint(number, TokenPurpose::Server));
        world.ok(PutServer { server: server(number), token_hash: Some(hash(number)) });
    }
    world
}

#[test]
fn secrets_are_sealed_anew_once_every_server_has_the_next_key() {
    let mut world = three();
    let first = begin(&world, 50);
    assert_eq!(world.events(first), ["SealingRotationStarted"]);
    assert_eq!((cluster(&world).sealing_key.as_str(), lacking(&world)), (hash(1).as_str(), vec!["s2", "s3"]));
    let second = hold(&world, 2);
    assert_eq!(world.events(second.clone()), ["SealingKeyHeld"]);
    assert!(world.events(second).is_empty(), "said again");
    let early = reseal(&world, 7);
    assert_eq!(refusal(&mut world, early), Rejected::SealingHeldBack { who: "s3".into() });
    let third = hold(&world, 3);
    world.ok(third);
    let all = reseal(&world, 7);
    assert_eq!(world.events(all.clone()), ["SealingKeyRotated"]);
    let over = cluster(&world);
    assert_eq!((&over.sealing_key, &over.ca_key_sealed), (&hash(50), &vec![7]));
    assert_eq!((&over.next_sealing_key, &over.former_sealing_keys), (&None, &vec![hash(1)]));
    assert_eq!(world.refused(all), "no-sealing-rotation");
}

#[test]
fn whoever_joins_is_waited_for_and_whoever_was_removed_is_not() {
    let mut world = three();
    let first = begin(&world, 50);
    world.ok(first);
    world.ok(RemoveServer { server: ServerId(3) });
    world.ok(mint(4, TokenPurpose::Server));
    world.ok(PutServer { server: server(4), token_hash: Some(hash(4)) });
    let removed = hold(&world, 3);
    assert_eq!(world.refused(removed), "unknown-server");
    let second = hold(&world, 2);
    world.ok(second);
    assert_eq!(lacking(&world), ["s4"]);
    let fourth = hold(&world, 4);
    world.ok(fourth);
    let all = reseal(&world, 7);
    world.ok(all);
}

#[test]
fn a_next_key_that_nobody_can_get_is_replaced_on_an_operators_word() {
    let mut world = three();
    let first = begin(&world, 50);
    world.ok(first.clone());
    let more = begin(&world, 51);
    assert_eq!(world.refused(more.clone()), "sealing-rotation-running");
    let same = RotateSealingKey { anew: true, ..first.clone() };
    assert_eq!(world.refused(same), "invalid-field", "every key is another one");
    let old = hold(&world, 2);
    world.ok(RotateSealingKey { anew: true, server: ServerId(2), ..more });
    assert_eq!((lacking(&world), &cluster(&world).former_sealing_keys), (vec!["s1", "s3"], &vec![hash(50)]));
    assert_eq!(world.refused(old), "stale-sealing-key");
    assert_eq!(world.refused(Reseal { key_id: hash(50), ..reseal(&world, 7) }), "stale-sealing-key");
    assert_eq!(world.refused(RotateSealingKey { anew: true, ..first }), "invalid-field", "nor one that was given up");
}

#[test]
fn the_ca_and_the_sealing_key_are_replaced_at_the_same_time_and_no_key_is_lost() {
    let mut world = World::that_knows(Feature::Lifecycle);
    let first = begin(&world, 50);
    world.ok(first);
    let (before, sealed_before) = (reseal(&world, 7), RotateCa { sealing_key: hash(1), ..rotate(&world) });
    world.ok(sealed_before.clone());
    assert_eq!(world.refused(before.clone()), "stale-ca-rotation", "it knows nothing of the next CA's key");
    let epoch = cluster(&world).trust_epoch;
    assert_eq!(world.refused(Reseal { expect_epoch: epoch, ..before }), "invalid-field");
    let all = reseal(&world, 7);
    world.ok(all);
    let next_ca = cluster(&world).rotation.as_ref().unwrap();
    assert_eq!((&next_ca.key_sealed, &cluster(&world).ca_key_sealed), (&vec![7], &vec![7]));
    let said = server_trusts(&world, 1);
    world.ok(said);
    let step = advance(&world, false);
    world.ok(step);

    // A CA that was made before all was sealed anew comes too late.
    let mut world = World::that_knows(Feature::Lifecycle);
    let first = begin(&world, 50);
    world.ok(first);
    let all = reseal(&world, 7);
    assert_eq!(world.refused(Reseal { next_ca_key_sealed: vec![1], ..all.clone() }), "invalid-field");
    world.ok(all);
    assert_eq!(world.refused(sealed_before.clone()), "stale-sealing-key");
    assert_eq!(world.refused(RotateCa { sealing_key: String::new(), ..sealed_before.clone() }), "stale-sealing-key");
    world.ok(RotateCa { sealing_key: hash(50), ..sealed_before });
}

#[test]
fn what_is_malformed_or_of_nobody_is_refused() {
    let mut world = three();
    let first = begin(&world, 50);
    assert_eq!(world.refused(RotateSealingKey { key_id: "k".into(), ..first.clone() }), "invalid-field");
    assert_eq!(world.refused(RotateSealingKey { replaces: "k".into(), ..first.clone() }), "invalid-field");
    assert_eq!(world.refused(RotateSealingKey { replaces: hash(50), ..first.clone() }), "invalid-field");
    assert_eq!(world.refused(RotateSealingKey { server: ServerId(9), ..first.clone() }), "unknown-server");
    let early = hold(&world, 2);
    assert_eq!(world.refused(early), "no-sealing-rotation");
    world.ok(first);
    let strange = RotateSealingKey { replaces: hash(2), anew: true, ..begin(&world, 51) };
    assert_eq!(world.refused(strange), "stale-sealing-key", "it opened what is sealed with another key");
    for id in [2, 3] {
        let held = hold(&world, id);
        world.ok(held);
    }
    let all = reseal(&world, 7);
    assert_eq!(world.refused(Reseal { ca_key_sealed: vec![], ..all.clone() }), "invalid-field");
    assert_eq!(world.refused(Reseal { ca_key_sealed: vec![0; 5_000], ..all.clone() }), "invalid-field");
    assert_eq!(world.refused(Reseal { expect_epoch: 9, ..all }), "stale-ca-rotation");
}

#[test]
fn before_every_server_knows_it_nothing_of_it_is_let_in() {
    let mut world = World::moving();
    let first = begin(&world, 50);
    assert_eq!(world.refused(first), "feature-needed");
    let held = hold(&world, 1);
    assert_eq!(world.refused(held), "feature-needed");
    let all = reseal(&world, 7);
    assert_eq!(world.refused(all), "feature-needed");
}

#[test]
fn former_keys_are_named_for_a_while() {
    let mut world = World::that_knows(Feature::Lifecycle);
    for number in 100..120 {
        let next = begin(&world, number);
        world.ok(next);
        let all = reseal(&world, u8::try_from(number).unwrap());
        world.ok(all);
    }
    let former = &cluster(&world).former_sealing_keys;
    assert_eq!((former.len(), &former[0]), (limits::FORMER_SEALING_KEYS_MAX, &hash(118)));
}

fn refusal(world: &mut World, command: impl Into<Command>) -> Rejected {
    let entry = world.entry(command);
    world.apply(entry).reply.unwrap_err()
}
