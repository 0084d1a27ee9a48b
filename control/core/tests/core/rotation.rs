//! Servers' certificates, and the replacement of the CA: who holds it back, what each step refuses.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::reconcile::{Heard, Settings, reconcile};
use cara_core::*;

pub fn rotate(world: &World) -> RotateCa {
    RotateCa {
        certificate_pem: "next".into(),
        key_sealed: vec![4, 5, 6],
        cross_pem: "cross".into(),
        expect_ca: cluster(world).ca_number(),
        sealing_key: cluster(world).sealing_key.clone(),
    }
}

pub fn advance(world: &World, force: bool) -> AdvanceCa {
    AdvanceCa { expect_epoch: cluster(world).trust_epoch, force }
}

pub fn server_trusts(world: &World, server: u64) -> TrustCa {
    TrustCa { server: ServerId(server), node: NodeId::default(), ca: cluster(world).newest_ca() }
}

pub fn node_trusts(world: &World, node: &NodeId) -> TrustCa {
    TrustCa { server: ServerId(0), node: node.clone(), ca: cluster(world).newest_ca() }
}

/// A certificate as the leader would sign it now.
pub fn signed(world: &World, number: u64) -> Certificate {
    Certificate { ca: cluster(world).signing_ca(), trusts: cluster(world).newest_ca(), ..certificate(number) }
}

/// The server's next certificate, asked for with the current one.
pub fn renew_server(world: &World, id: u64, number: u64) -> RenewServer {
    let current = &world.state.server(ServerId(id)).unwrap().certificate;
    RenewServer {
        server: ServerId(id),
        presented: current.fingerprint.clone(),
        presented_ca: current.ca,
        expect_fingerprint: current.fingerprint.clone(),
        certificate: signed(world, number),
    }
}

pub fn confirm(world: &World, id: u64) -> ConfirmServer {
    let fingerprint = world.state.server(ServerId(id)).unwrap().certificate.fingerprint.clone();
    ConfirmServer { server: ServerId(id), fingerprint }
}

pub fn renew_node(world: &World, node: &NodeId, number: u64) -> RenewCertificate {
    let presented = world.state.node(node).unwrap().certificate.clone().unwrap().fingerprint;
    RenewCertificate {
        node: node.clone(),
        presented: presented.clone(),
        expect_fingerprint: presented,
        certificate: signed(world, number),
    }
}

fn cluster(world: &World) -> &Cluster {
    world.state.cluster().unwrap()
}

/// Who holds the step back, and with what.
fn held_back(world: &World) -> Vec<(String, &'static str)> {
    world.state.held_back().into_iter().map(|of| (of.name, of.lack.as_str())).collect()
}

/// What the leader asks for by itself.
fn asks(world: &World) -> Vec<Command> {
    reconcile(&world.state, &Heard::default(), &Settings::default(), 0).commands
}

fn lifecycle() -> World {
    World::that_knows(Feature::Lifecycle)
}

#[test]
fn the_ca_is_replaced_step_by_step_once_nobody_is_shut_out() {
    let mut world = lifecycle();
    let node = world.node("a");
    let begin = rotate(&world);
    assert_eq!(world.events(begin), ["CaRotationStarted"]);
    assert_eq!((cluster(&world).signing_ca(), cluster(&world).newest_ca()), (1, 2));
    assert_eq!(held_back(&world), [("s1".into(), "trust"), ("a".into(), "trust")]);
    assert_eq!(asks(&world), [], "nobody trusts the next one");
    let (server, agent) = (server_trusts(&world, 1), node_trusts(&world, &node));
    world.ok(server.clone());
    assert!(world.events(server).is_empty(), "said again");
    assert_eq!(held_back(&world), [("a".into(), "trust")]);
    world.ok(agent);
    let step: Command = advance(&world, false).into();
    assert_eq!(asks(&world), std::slice::from_ref(&step));
    assert_eq!(world.events(step), ["CaTakenOver"]);

    assert_eq!((cluster(&world).signing_ca(), cluster(&world).ca_number()), (2, 1));
    assert_eq!(held_back(&world), [("s1".into(), "certificate"), ("a".into(), "certificate")]);
    let (server, agent) = (renew_server(&world, 1, 71), renew_node(&world, &node, 72));
    world.ok(server);
    world.ok(agent);
    assert_eq!(held_back(&world), [("s1".into(), "use"), ("a".into(), "use")]);
    assert_eq!(asks(&world), []);
    let used = confirm(&world, 1);
    world.ok(used.clone());
    assert!(world.events(used).is_empty(), "said again");
    world.open(&node);
    let step: Command = advance(&world, false).into();
    assert_eq!(asks(&world), std::slice::from_ref(&step));
    assert_eq!(world.events(step), ["CaRotated"]);

    let over = cluster(&world);
    assert_eq!((over.ca_number(), over.ca_cert_pem.as_str(), &over.ca_key_sealed), (2, "next", &vec![4, 5, 6]));
    assert_eq!((over.bundle_pem().as_str(), over.chain_pem().as_str()), ("next\n", "cross\nca\n"));
    assert_eq!((over.trust_epoch, asks(&world)), (3, vec![]), "a fixed point");
}

#[test]
fn a_step_that_would_shut_somebody_out_is_refused_and_names_them() {
    let mut world = lifecycle();
    let node = world.node("a");
    let early = advance(&world, false);
    assert_eq!(world.refused(early), "no-ca-rotation");
    let begin = rotate(&world);
    world.ok(begin.clone());
    assert_eq!(world.refused(begin), "ca-rotation-running");
    let step = advance(&world, false);
    let Rejected::CaHeldBack { who, .. } = refusal(&mut world, step) else { panic!() };
    assert_eq!(who, "server s1");
    let stale = AdvanceCa { expect_epoch: 0, force: false };
    assert_eq!(world.refused(stale), "stale-ca-rotation");
    let forced = advance(&world, true);
    assert_eq!(world.refused(forced), "ca-held-back", "a server is never left behind");
    let said = server_trusts(&world, 1);
    world.ok(said);
    let step = advance(&world, false);
    let Rejected::CaHeldBack { who, .. } = refusal(&mut world, step) else { panic!() };
    assert_eq!(who, "node a");
    let forced = advance(&world, true);
    let events = world.events(forced);
    assert_eq!(events, ["CaTakenOver", "NodeCertificateRevoked", "NodeSessionClosed", "NodeConnectionChanged"]);
    assert!(world.state.node(&node).unwrap().certificate.as_ref().unwrap().revoked_at_ms.is_some());
    assert_eq!(held_back(&world), [("s1".into(), "certificate")]);
}

fn refusal(world: &mut World, command: impl Into<Command>) -> Rejected {
    let entry = world.entry(command);
    world.apply(entry).reply.unwrap_err()
}

#[test]
fn what_another_ca_signed_is_not_recorded() {
    let mut world = lifecycle();
    let node = world.node("a");
    let (old_server, old_node) = (renew_server(&world, 1, 71), renew_node(&world, &node, 72));
    let stale = rotate(&world);
    world.ok(stale.clone());
    let (said, agent) = (server_trusts(&world, 1), node_trusts(&world, &node));
    world.ok(said);
    let early = Certificate { ca: 2, ..certificate(80) };
    let unsaid = RenewServer { certificate: early, ..renew_server(&world, 1, 70) };
    assert_eq!(world.refused(unsaid), "stale-ca", "the next one signs nothing yet");
    world.ok(agent);
    let step = advance(&world, false);
    world.ok(step);
    assert_eq!(world.refused(old_server), "stale-ca");
    assert_eq!(world.refused(old_node), "stale-ca");
    world.ok(mint(90, TokenPurpose::Node));
    world.ok(mint(91, TokenPurpose::Server));
    assert_eq!(world.refused(enroll(90, &"nd_b".into(), "b")), "stale-ca");
    assert_eq!(world.refused(PutServer { server: server(2), token_hash: Some(hash(91)) }), "stale-ca");
    let deaf = Certificate { trusts: 1, ..signed(&world, 90) };
    assert_eq!(world.refused(EnrollNode { certificate: deaf, ..enroll(90, &"nd_b".into(), "b") }), "ca-not-trusted");
    let certificate = signed(&world, 90);
    world.ok(EnrollNode { certificate, ..enroll(90, &"nd_b".into(), "b") });
    assert_eq!(held_back(&world).len(), 2, "who comes now has it all");
    assert_eq!(world.refused(stale), "ca-rotation-running");
}

#[test]
fn what_is_malformed_or_of_nobody_is_refused() {
    let mut world = lifecycle();
    let declared = ApplyNode { node: "nd_d".into(), name: "d".into(), ..Default::default() };
    world.ok(declared);
    let node = world.node("a");
    let begin = rotate(&world);
    assert_eq!(world.refused(RotateCa { expect_ca: 7, ..begin.clone() }), "stale-ca");
    assert_eq!(world.refused(RotateCa { certificate_pem: String::new(), ..begin.clone() }), "invalid-field");
    assert_eq!(world.refused(RotateCa { cross_pem: "x".repeat(9_000), ..begin.clone() }), "invalid-field");
    assert_eq!(world.refused(RotateCa { key_sealed: vec![], ..begin }), "invalid-field");
    let trusts = server_trusts(&world, 1);
    assert_eq!(world.refused(TrustCa { ca: 2, ..trusts.clone() }), "invalid-field", "there is no such CA");
    assert_eq!(world.refused(TrustCa { server: ServerId(9), ..trusts.clone() }), "unknown-server");
    assert_eq!(world.refused(node_trusts(&world, &"nd_x".into())), "unknown-node");
    assert_eq!(world.refused(node_trusts(&world, &"nd_d".into())), "node-not-enrolled");
    world.ok(RevokeCertificate { node: node.clone() });
    assert_eq!(world.refused(node_trusts(&world, &node)), "certificate-revoked");
    let renew = renew_server(&world, 1, 71);
    assert_eq!(world.refused(RenewServer { expect_fingerprint: hash(1), ..renew.clone() }), "server-renewal-lost");
    assert_eq!(world.refused(RenewServer { server: ServerId(9), ..renew.clone() }), "unknown-server");
    assert_eq!(world.refused(RenewServer { presented: "x".into(), ..renew.clone() }), "invalid-field");
    assert_eq!(world.refused(RenewServer { presented_ca: 2, ..renew.clone() }), "invalid-field");
    let taken = world.state.server(ServerId(1)).unwrap().certificate.clone();
    assert_eq!(world.refused(RenewServer { certificate: taken, ..renew }), "fingerprint-taken");
    assert_eq!(world.refused(ConfirmServer { server: ServerId(9), fingerprint: hash(1) }), "unknown-server");
}

#[test]
fn before_every_server_knows_it_nothing_of_it_is_let_in() {
    let mut world = World::moving();
    let renew = renew_server(&world, 1, 71);
    assert_eq!(world.refused(renew), "feature-needed");
    let begin = rotate(&world);
    assert_eq!(world.refused(begin), "feature-needed");
    let step = advance(&world, false);
    assert_eq!(world.refused(step), "feature-needed");
    let said = server_trusts(&world, 1);
    assert_eq!(world.refused(said), "feature-needed");
    let used = confirm(&world, 1);
    assert_eq!(world.refused(used), "feature-needed");
}

#[test]
fn the_certificate_that_a_server_uses_is_needed_until_it_uses_the_next() {
    let mut world = lifecycle();
    let old = world.state.server(ServerId(1)).unwrap().certificate.clone();
    let renew = renew_server(&world, 1, 71);
    assert_eq!(world.events(renew), ["ServerUpdated"]);
    let now = world.state.server(ServerId(1)).unwrap().certificate.clone();
    assert_eq!((now.generation, now.previous.unwrap().fingerprint), (old.generation.next(), old.fingerprint.clone()));
    // The answer was lost: it still presents the old one.
    let again = RenewServer { presented: old.fingerprint.clone(), ..renew_server(&world, 1, 72) };
    world.ok(again);
    let now = world.state.server(ServerId(1)).unwrap().certificate.clone();
    assert_eq!(now.previous.unwrap().fingerprint, old.fingerprint, "the one that got lost is used by nobody");
    assert!(world.events(ConfirmServer { server: ServerId(1), fingerprint: hash(71) }).is_empty(), "it got lost");
    let used = confirm(&world, 1);
    assert_eq!(world.events(used), ["ServerUpdated"]);
    // A word about the level that was looked up before the renewal takes nothing back.
    let word = Server { certificate: old, feature_level: 3, ..world.state.server(ServerId(1)).unwrap().clone() };
    world.ok(PutServer { server: word, token_hash: None });
    assert_eq!(world.state.server(ServerId(1)).unwrap().certificate.fingerprint, hash(72));
}
