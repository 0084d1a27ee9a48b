//! Sessions, connection and certificates of nodes.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

#[test]
fn a_session_brings_a_node_online_and_its_end_takes_it_offline() {
    let mut world = World::new();
    let id = world.enrolled("a");
    assert_eq!(world.state.node(&id).unwrap().view(), NodeView::NotReady);
    let epoch = world.open(&id);
    assert_eq!((epoch, world.state.node(&id).unwrap().view()), (Epoch(1), NodeView::Ready));
    world.ok(CloseSession { node: id.clone(), epoch, reason: "goodbye".into() });
    assert_eq!(world.state.node(&id).unwrap().connection, Connection::Offline);
    let edges: Vec<_> = world.state.node_events(&id).iter().map(|e| (e.from.as_str(), e.to.as_str())).collect();
    assert_eq!(edges, [("pending", "online"), ("online", "offline")]);
}

#[test]
fn closing_an_old_session_does_not_touch_the_new_one() {
    let mut world = World::new();
    let id = world.enrolled("a");
    let old = world.open(&id);
    let new = world.open(&id);
    assert!(old < new);
    assert!(world.events(CloseSession { node: id.clone(), epoch: old, reason: "late".into() }).is_empty());
    assert_eq!(world.state.node(&id).unwrap().connection, Connection::Online);
    assert_eq!(world.epoch(&id), new);
}

#[test]
fn only_the_judged_session_goes_offline_and_comes_back() {
    let mut world = World::new();
    let id = world.node("a");
    let epoch = world.epoch(&id);
    let to = |to, epoch| TransitionNode { node: id.clone(), epoch, to, reason: "test".into() };
    world.ok(to(Connection::Offline, epoch));
    assert!(world.events(to(Connection::Offline, epoch)).is_empty());
    world.ok(to(Connection::Online, epoch));
    assert_eq!(world.refused(to(Connection::Pending, epoch)), "bad-transition");
    let next = world.open(&id);
    assert_eq!(world.refused(to(Connection::Offline, epoch)), "stale-session");
    world.ok(CloseSession { node: id.clone(), epoch: next, reason: "end".into() });
    assert_eq!(world.refused(to(Connection::Online, next)), "stale-session");
}

#[test]
fn a_session_needs_an_accepted_certificate_and_a_known_server() {
    let mut world = World::new();
    let id = world.enrolled("a");
    let open = world.open_command(&id);
    assert_eq!(world.refused(OpenSession { fingerprint: hash(9), ..open.clone() }), "certificate-unknown");
    assert_eq!(world.refused(OpenSession { server: ServerId(9), ..open.clone() }), "unknown-server");
    assert_eq!(world.refused(OpenSession { node: "nd_z".into(), ..open.clone() }), "unknown-node");
    assert_eq!(
        world.events(RevokeCertificate { node: id.clone() }),
        ["NodeCertificateRevoked"],
        "no session, nothing to end"
    );
    assert_eq!(world.refused(open), "certificate-revoked");
    assert!(world.events(RevokeCertificate { node: id }).is_empty());
}

#[test]
fn revoking_ends_the_session() {
    let mut world = World::new();
    let id = world.node("a");
    let events = world.events(RevokeCertificate { node: id });
    assert_eq!(events, ["NodeCertificateRevoked", "NodeSessionClosed", "NodeConnectionChanged"]);
}

#[test]
fn the_old_certificate_is_good_until_the_new_one_was_seen() {
    let mut world = World::new();
    let id = world.node("a");
    let old = world.open_command(&id);
    let renew = renewal(&old, &id, 500);
    world.ok(renew.clone());
    world.ok(old.clone());
    // The answer was lost: the old certificate asks again with the same key and gets what was recorded.
    let again = RenewCertificate { certificate: Certificate { fingerprint: hash(501), ..certificate(500) }, ..renew };
    match world.ok(again).answer {
        Answer::Certified(certified) => assert_eq!(certified.certificate.fingerprint, hash(500)),
        other => panic!("{other:?}"),
    }
    let new = world.open_command(&id);
    world.ok(new);
    assert_eq!(world.refused(old), "certificate-unknown");
}

#[test]
fn a_renewal_that_lost_the_race_is_refused() {
    let mut world = World::new();
    let id = world.node("a");
    let old = world.open_command(&id);
    world.ok(renewal(&old, &id, 500));
    assert_eq!(world.refused(renewal(&old, &id, 600)), "renewal-lost");
    // From the certificate before, but knowing the current one: the one that nobody used is replaced.
    let again = RenewCertificate { expect_fingerprint: hash(500), ..renewal(&old, &id, 600) };
    world.ok(again);
    let certificate = world.state.node(&id).unwrap().certificate.clone().unwrap();
    assert_eq!(certificate.fingerprint, hash(600));
    assert_eq!(certificate.previous.unwrap().fingerprint, old.fingerprint, "the one in use stays good");
    world.ok(RevokeCertificate { node: id.clone() });
    assert_eq!(world.refused(renewal(&old, &id, 700)), "certificate-revoked");
}

#[test]
fn the_certificate_before_ends_at_its_own_end() {
    let mut world = World::new();
    let id = world.node("a");
    let old = world.open_command(&id);
    world.ok(renewal(&old, &id, 500));
    world.at_ms = 100_000_000;
    assert_eq!(world.refused(old), "certificate-unknown");
}

#[test]
fn a_checkpoint_keeps_last_seen_and_never_goes_back() {
    let mut world = World::new();
    let id = world.node("a");
    let epoch = world.epoch(&id);
    let read = world.state.node(&id).unwrap().revision;
    let seen = |epoch, last_seen_ms| CheckpointSeen { seen: vec![Seen { node: id.clone(), epoch, last_seen_ms }] };
    world.ok(seen(epoch, 3_000_000));
    world.ok(seen(epoch, 2_000_000));
    world.ok(seen(Epoch(99), 9_000_000));
    world.ok(CheckpointSeen { seen: vec![Seen { node: "nd_gone".into(), epoch, last_seen_ms: 1 }] });
    assert_eq!(world.state.node(&id).unwrap().last_seen_ms, 3_000_000);
    assert_eq!(world.state.node(&id).unwrap().revision, read, "who edits the node is not disturbed");
    let too_many = vec![Seen::default(); limits::CHECKPOINT_NODES_MAX + 1];
    assert_eq!(world.refused(CheckpointSeen { seen: too_many }), "invalid-field");
}

#[test]
fn a_flapping_node_keeps_its_newest_events() {
    let mut world = World::new();
    let id = world.node("a");
    let epoch = world.epoch(&id);
    for turn in 0..limits::NODE_EVENTS_MAX {
        let to = if turn % 2 == 0 { Connection::Offline } else { Connection::Online };
        world.ok(TransitionNode { node: id.clone(), epoch, to, reason: format!("turn {turn}") });
    }
    let events = world.state.node_events(&id);
    assert_eq!(events.len(), limits::NODE_EVENTS_MAX);
    assert_eq!((events[0].reason.as_str(), events.last().unwrap().reason.as_str()), ("turn 0", "turn 199"));
}

fn renewal(presented: &OpenSession, id: &NodeId, number: u64) -> RenewCertificate {
    RenewCertificate {
        node: id.clone(),
        presented: presented.fingerprint.clone(),
        expect_fingerprint: presented.fingerprint.clone(),
        certificate: certificate(number),
    }
}
