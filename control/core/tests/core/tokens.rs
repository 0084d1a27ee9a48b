//! Join tokens, API tokens, servers and the cluster itself.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

#[test]
fn nothing_works_before_init_and_init_works_once() {
    let mut world = World::empty();
    assert_eq!(world.refused(Cordon { node: "nd_1".into(), reason: String::new() }), "not-initialised");
    assert_eq!(world.events(init()), ["ClusterInitialised", "ServerAdded", "ApiTokenCreated"]);
    assert!(world.events(init()).is_empty(), "the same init again changes nothing");
    let other = InitCluster { cluster_id: "c2".into(), ..init() };
    assert_eq!(world.refused(other), "already-initialised");
}

#[test]
fn init_needs_a_lasting_root_token() {
    let mut world = World::empty();
    for token in
        [api_token("weak", Ability::Write), ApiToken { expires_at_ms: Some(5), ..api_token("short", Ability::Root) }]
    {
        assert_eq!(world.refused(InitCluster { root_token: token, ..init() }), "invalid-field");
    }
}

#[test]
fn a_join_token_lets_one_machine_in() {
    let mut world = World::new();
    world.ok(mint(1, TokenPurpose::Node));
    assert_eq!(world.events(enroll(1, &"nd_a".into(), "a")), ["JoinTokenSpent", "NodeAdded", "NodeEnrolled"]);
    let thief = EnrollNode { certificate: certificate(99), ..enroll(1, &"nd_b".into(), "b") };
    assert_eq!(world.refused(thief), "join-token-spent");
}

#[test]
fn the_same_key_asking_again_gets_the_same_node_and_certificate() {
    let mut world = World::new();
    world.ok(mint(1, TokenPurpose::Node));
    let first = world.ok(enroll(1, &"nd_a".into(), "a"));
    // The leader signed another certificate for the retry; what is recorded counts. Even after the token's end.
    world.at_ms = 20_000_000;
    let mut again = enroll(1, &"nd_b".into(), "a");
    again.certificate.fingerprint = hash(777);
    let second = world.ok(again);
    assert_eq!(first.answer, second.answer);
    assert!(first.changed && !second.changed);
    assert_eq!(world.state.nodes().len(), 1);
}

#[test]
fn a_refused_enrolment_spends_nothing() {
    let mut world = World::new();
    world.enrolled("taken");
    world.ok(mint(50, TokenPurpose::Node));
    let id = NodeId::from("nd_x");
    assert_eq!(world.refused(enroll(50, &id, "taken")), "node-name-taken");
    assert_eq!(world.refused(enroll(50, &id, "Bad_Name")), "invalid-field");
    let no_key = EnrollNode { certificate: Certificate::default(), ..enroll(50, &id, "x") };
    assert_eq!(world.refused(no_key), "invalid-field");
    let used_cert = EnrollNode { certificate: certificate(1), ..enroll(50, &id, "x") };
    assert_eq!(world.refused(used_cert), "fingerprint-taken");
    world.ok(enroll(50, &id, "x"));
}

#[test]
fn a_join_token_is_for_its_time_its_purpose_and_its_name() {
    let mut world = World::new();
    let id = NodeId::from("nd_x");
    assert_eq!(world.refused(enroll(1, &id, "x")), "join-token-unknown");
    world.ok(mint(1, TokenPurpose::Server));
    assert_eq!(world.refused(enroll(1, &id, "x")), "join-token-purpose");
    world.ok(MintJoinToken { bound_name: Some("y".into()), ..mint(2, TokenPurpose::Node) });
    assert_eq!(world.refused(enroll(2, &id, "x")), "join-token-name");
    world.at_ms = 10_000_000;
    assert_eq!(world.refused(enroll(2, &id, "y")), "join-token-expired");
    assert_eq!(world.refused(mint(3, TokenPurpose::Node)), "invalid-field");
}

#[test]
fn a_join_token_is_minted_once_and_can_be_taken_back() {
    let mut world = World::new();
    world.ok(mint(1, TokenPurpose::Node));
    assert_eq!(world.refused(mint(1, TokenPurpose::Node)), "token-exists");
    assert_eq!(world.refused(MintJoinToken { id: "other".into(), ..mint(1, TokenPurpose::Node) }), "token-exists");
    assert_eq!(world.events(RevokeJoinToken { id: "jt1".into() }), ["JoinTokenRevoked"]);
    assert_eq!(world.refused(RevokeJoinToken { id: "jt1".into() }), "unknown-token");
    assert_eq!(world.refused(enroll(1, &"nd_x".into(), "x")), "join-token-unknown");
    world.enrolled("a");
    assert_eq!(world.refused(RevokeJoinToken { id: "jt1".into() }), "join-token-used");
}

#[test]
fn join_tokens_that_ended_long_ago_make_room() {
    let mut world = World::new();
    for number in 1..=3 {
        world.ok(mint(number, TokenPurpose::Node));
    }
    world.at_ms = 10_000_000 + limits::JOIN_TOKEN_KEPT_MS + 1;
    world.ok(MintJoinToken { expires_at_ms: u64::MAX, ..mint(4, TokenPurpose::Node) });
    let left: Vec<String> = world.state.join_tokens().map(|token| token.id.to_string()).collect();
    assert_eq!(left, ["jt4"]);
}

#[test]
fn a_machine_enrolled_again_keeps_its_id_and_loses_its_session() {
    let mut world = World::new();
    let id = world.node("a");
    world.app("web", "nginx");
    world.ok(RevokeCertificate { node: id.clone() });
    let again = MintJoinToken { bound_name: Some("a".into()), ..mint(70, TokenPurpose::Reenroll) };
    world.ok(again);
    world.ok(enroll(70, &id, "a"));
    let node = world.state.node(&id).unwrap();
    let certificate = node.certificate.as_ref().unwrap();
    assert_eq!((certificate.generation, certificate.revoked_at_ms), (Generation(2), None));
    assert_eq!(node.session, None);
    assert_eq!(world.state.placed_count(&id), 1, "it keeps its placements");
    let unknown = MintJoinToken { bound_name: Some("nobody".into()), ..mint(71, TokenPurpose::Reenroll) };
    assert_eq!(world.refused(unknown), "unknown-node");
}

#[test]
fn a_server_joins_with_a_token_and_its_id_never_returns() {
    let mut world = World::new();
    let join = |number: u64, token: u64| PutServer { server: server(number), token_hash: Some(hash(token)) };
    assert_eq!(world.refused(join(2, 1)), "join-token-unknown");
    world.ok(mint(1, TokenPurpose::Server));
    assert_eq!(world.events(join(2, 1)), ["ServerAdded", "JoinTokenSpent"]);
    assert!(world.events(join(2, 1)).is_empty(), "the same key again");
    assert_eq!(world.refused(join(3, 1)), "join-token-spent");
    world.ok(RemoveServer { server: ServerId(2) });
    assert!(world.events(RemoveServer { server: ServerId(2) }).is_empty());
    world.ok(mint(2, TokenPurpose::Server));
    assert_eq!(world.refused(join(2, 2)), "server-taken");
    assert_eq!(world.state.next_server_id(), ServerId(3));
    assert_eq!(world.refused(RemoveServer { server: ServerId(1) }), "last-server");
}

#[test]
fn a_server_may_change_its_address_but_not_take_anothers() {
    let mut world = World::new();
    world.ok(mint(1, TokenPurpose::Server));
    world.ok(PutServer { server: server(2), token_hash: Some(hash(1)) });
    let moved = Server { address: "10.0.0.2:7001".into(), ..server(2) };
    assert_eq!(world.events(PutServer { server: moved.clone(), token_hash: None }), ["ServerUpdated"]);
    assert!(world.events(PutServer { server: moved, token_hash: None }).is_empty());
    let thief = Server { address: server(1).address, ..server(2) };
    assert_eq!(world.refused(PutServer { server: thief, token_hash: None }), "server-taken");
    assert_eq!(world.refused(PutServer { server: server(9), token_hash: None }), "unknown-server");
}

#[test]
fn the_last_root_token_stays() {
    let mut world = World::new();
    assert_eq!(world.refused(RevokeApiToken { id: "root".into(), forget: false }), "last-root-token");
    let short = ApiToken { expires_at_ms: Some(2_000_000), ..api_token("short", Ability::Root) };
    world.ok(PutApiToken { token: short });
    assert_eq!(world.refused(RevokeApiToken { id: "root".into(), forget: false }), "last-root-token");
    world.ok(PutApiToken { token: api_token("second", Ability::Root) });
    assert_eq!(world.events(RevokeApiToken { id: "root".into(), forget: false }), ["ApiTokenRevoked"]);
    assert!(world.events(RevokeApiToken { id: "root".into(), forget: false }).is_empty());
    assert_eq!(world.events(RevokeApiToken { id: "root".into(), forget: true }), ["ApiTokenForgotten"]);
    assert_eq!(world.refused(RevokeApiToken { id: "second".into(), forget: true }), "last-root-token");
}

#[test]
fn the_feature_level_and_the_incarnation_only_rise() {
    let mut world = World::new();
    let node = world.node("a");
    assert_eq!(world.events(SetFeatureLevel { level: 2 }), ["FeatureLevelRaised"]);
    assert!(world.events(SetFeatureLevel { level: 2 }).is_empty());
    assert_eq!(world.refused(SetFeatureLevel { level: 1 }), "feature-level");
    assert_eq!(world.refused(Incarnate { incarnation: 1 }), "invalid-field");
    let old = world.entry(Cordon { node: node.clone(), reason: String::new() });
    world.ok(Incarnate { incarnation: 2 });
    assert_eq!(world.state.node(&node).unwrap().session, None, "every session is over");
    assert_eq!(world.apply(old).reply.unwrap_err().code(), "wrong-incarnation");
}
