//! Nodes that come back: enrolled again, shut out, copied.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

fn world() -> World {
    World::that_knows(Feature::Lifecycle)
}

/// A token for this node, made from a number.
fn token(number: u64, node: &NodeId) -> MintReenrollToken {
    let id = TokenId::new(format!("jt{number}"));
    MintReenrollToken { id, hash: hash(number), node: node.clone(), expires_at_ms: 10_000_000 }
}

/// Comes back with the token, the key and the certificate of this number.
fn back(number: u64, node: &NodeId) -> ReenrollNode {
    let certificate = certificate(number);
    ReenrollNode { token_hash: hash(number), node: node.clone(), certificate, ..Default::default() }
}

fn open_as(world: &World, node: &NodeId, instance: &str) -> OpenSession {
    OpenSession { instance: instance.into(), ..world.open_command(node) }
}

#[test]
fn a_node_that_comes_back_keeps_all_it_had_and_the_old_key_is_out() {
    let mut world = world();
    let node = world.node("a");
    world.ok(SetLabels { node: node.clone(), labels: labels(&[("site", "x")]), expect_revision: None });
    world.app("web", "nginx");
    let old = world.open_command(&node);
    world.ok(token(50, &node));
    let events = world.events(back(50, &node));
    assert_eq!(events, ["JoinTokenSpent", "NodeSessionClosed", "NodeConnectionChanged", "NodeEnrolled"]);
    let record = world.state.node(&node).unwrap();
    assert_eq!((record.labels.len(), record.name.as_str()), (1, "a"));
    assert_eq!(record.certificate.as_ref().map(|c| (c.generation, c.previous.clone())), Some((Generation(2), None)));
    assert_eq!(world.workload("web").placement.as_ref().map(|p| p.node.clone()), Some(node.clone()));
    assert_eq!(world.refused(old), "certificate-unknown");
    world.open(&node);
}

#[test]
fn the_same_key_gets_the_same_answer_and_another_one_none() {
    let mut world = world();
    let node = world.node("a");
    world.ok(token(50, &node));
    let first = world.ok(back(50, &node));
    let again = ReenrollNode { certificate: Certificate { key_hash: hash(50), ..certificate(51) }, ..back(50, &node) };
    let second = world.ok(again.clone());
    assert_eq!((first.answer, second.changed), (second.answer, false));
    assert_eq!(world.refused(ReenrollNode { certificate: certificate(52), ..back(50, &node) }), "join-token-spent");
    world.ok(RevokeCertificate { node });
    assert_eq!(world.refused(again), "join-token-spent", "who was shut out since does not come back with an old token");
}

#[test]
fn a_refused_return_spends_nothing() {
    let mut world = world();
    let (a, b) = (world.node("a"), world.node("b"));
    world.ok(token(50, &a));
    world.ok(mint(60, TokenPurpose::Node));
    assert_eq!(world.refused(back(51, &a)), "join-token-unknown");
    assert_eq!(world.refused(back(60, &a)), "join-token-purpose");
    assert_eq!(world.refused(back(50, &b)), "join-token-name");
    assert_eq!(world.refused(back(50, &"nd_z".into())), "unknown-node");
    let taken = world.state.node(&b).unwrap().certificate.clone().unwrap();
    assert_eq!(world.refused(ReenrollNode { certificate: taken, ..back(50, &a) }), "fingerprint-taken");
    assert_eq!(world.refused(ReenrollNode { certificate: Certificate::default(), ..back(50, &a) }), "invalid-field");
    assert_eq!(world.refused(ReenrollNode { address: "x".repeat(600), ..back(50, &a) }), "invalid-field");
    world.at_ms = 10_000_000;
    assert_eq!(world.refused(back(50, &a)), "join-token-expired");
    world.at_ms -= 1;
    world.ok(back(50, &a));
}

#[test]
fn a_token_for_a_node_that_was_deleted_lets_nobody_in_under_its_name() {
    let mut world = world();
    let old = world.node("a");
    world.ok(token(50, &old));
    world.ok(DeleteNode { node: old.clone() });
    assert_eq!(world.refused(back(50, &old)), "unknown-node");
    let new = world.node("a");
    assert_eq!(world.refused(back(50, &new)), "join-token-node");
    assert_eq!(world.refused(enroll(50, &new, "a")), "join-token-node");
}

#[test]
fn only_a_node_that_has_joined_can_come_back() {
    let mut world = world();
    let declared = ApplyNode { node: "nd_d".into(), name: "d".into(), ..Default::default() };
    world.ok(declared);
    assert_eq!(world.refused(token(50, &"nd_d".into())), "node-not-enrolled");
    assert_eq!(world.refused(token(50, &"nd_z".into())), "unknown-node");
    let node = world.node("a");
    world.ok(token(50, &node));
    assert_eq!(world.refused(token(50, &node)), "token-exists");
    let late = MintReenrollToken { expires_at_ms: 1, ..token(51, &node) };
    assert_eq!(world.refused(late), "invalid-field");
}

#[test]
fn servers_that_do_not_know_it_are_not_asked() {
    let mut world = World::moving();
    let node = world.node("a");
    assert_eq!(world.refused(token(50, &node)), "feature-needed");
    assert_eq!(world.refused(back(50, &node)), "feature-needed");
    let note = NoteClone { node: node.clone(), instance: "i2".into(), ..Default::default() };
    assert_eq!(world.refused(note), "feature-needed");
    let open = open_as(&world, &node, "i1");
    world.ok(open);
    assert_eq!(world.state.node(&node).unwrap().instance, "", "an old server would not write it down");
}

#[test]
fn a_revoked_node_comes_back_only_by_being_enrolled_again() {
    let mut world = world();
    let node = world.node("a");
    let open = world.open_command(&node);
    let presented = open.fingerprint.clone();
    world.ok(RevokeCertificate { node: node.clone() });
    let renew = RenewCertificate {
        node: node.clone(),
        expect_fingerprint: presented.clone(),
        presented,
        certificate: certificate(70),
    };
    assert_eq!(world.refused(renew), "certificate-revoked", "also when it was signed before");
    assert_eq!(world.refused(open), "certificate-revoked");
    world.ok(token(50, &node));
    world.ok(back(50, &node));
    world.open(&node);
}

#[test]
fn the_process_that_has_the_session_is_known_and_a_faster_one_is_not_overrun() {
    let mut world = world();
    let node = world.node("a");
    let (first, second) = (open_as(&world, &node, "i1"), open_as(&world, &node, "i2"));
    world.ok(first);
    assert_eq!(world.state.node(&node).unwrap().instance, "i1");
    assert_eq!(world.refused(second), "instance-changed");
    let long = open_as(&world, &node, &"x".repeat(600));
    assert_eq!(world.refused(long), "invalid-field");
}

#[test]
fn a_clone_is_noted_once_in_a_while_until_the_node_is_enrolled_again() {
    let mut world = world();
    let node = world.node("a");
    let open = open_as(&world, &node, "i1");
    world.ok(open);
    let note =
        NoteClone { node: node.clone(), instance: "i2".into(), expect_instance: "i1".into(), hostname: "copy".into() };
    assert_eq!(world.events(note.clone()), ["NodeCloneRefused"]);
    assert_eq!(world.events(note.clone()), [""; 0], "a minute later");
    world.at_ms += limits::CLONE_NOTED_EVERY_MS;
    assert_eq!(world.events(note.clone()), ["NodeCloneRefused"]);
    let seen = world.state.node(&node).unwrap().clone_seen.clone().unwrap();
    assert_eq!((seen.instance.as_str(), seen.hostname.as_str(), seen.seen_at_ms), ("i2", "copy", world.at_ms));
    let last = world.state.node_events(&node).last().unwrap();
    assert!(last.reason.contains("(copy)") && last.from == "online", "{last:?}");
    assert_eq!(world.refused(NoteClone { expect_instance: "i0".into(), ..note.clone() }), "instance-changed");
    assert_eq!(world.refused(NoteClone { instance: "i1".into(), ..note.clone() }), "instance-changed");
    assert_eq!(world.refused(NoteClone { instance: String::new(), ..note.clone() }), "invalid-field");
    assert_eq!(world.refused(NoteClone { node: "nd_z".into(), ..note }), "unknown-node");
    world.ok(token(50, &node));
    world.ok(back(50, &node));
    let record = world.state.node(&node).unwrap();
    assert_eq!((record.instance.as_str(), &record.clone_seen), ("", &None));
}
