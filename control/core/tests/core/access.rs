//! API tokens: scopes, what a token may give, last uses, room; and what the audit says about who asked.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

fn world() -> World {
    World::that_knows(Feature::Lifecycle)
}

fn by(creator: &str, token: ApiToken) -> PutApiToken {
    PutApiToken { token: ApiToken { created_by: format!("token:{creator}"), ..token } }
}

fn scoped(id: &str, ability: Ability, scopes: &[&str]) -> ApiToken {
    ApiToken { scopes: scopes.iter().map(ToString::to_string).collect(), ..api_token(id, ability) }
}

#[test]
fn scopes_are_read_and_cover_what_they_name() {
    let read = |text: &str| Scope::parse("scopes[0]", text);
    let node = read("node:nd_1").unwrap();
    let shop = read("workload:shop-").unwrap();
    assert_eq!((node.to_string(), shop.to_string()), ("node:nd_1".into(), "workload:shop-".into()));
    assert!(node.covers(&node) && !node.covers(&read("node:nd_12").unwrap()) && !node.covers(&shop));
    assert!(shop.covers(&read("workload:shop-web").unwrap()) && !shop.covers(&read("workload:sho").unwrap()));
    for wrong in ["", "node", "node:", "node:a/b", "workload:", "workload:Shop", "server:1", "*"] {
        assert_eq!(read(wrong).unwrap_err().field, "scopes[0]", "{wrong}");
    }
}

#[test]
fn scopes_wait_for_the_feature_level() {
    let mut world = World::moving();
    assert_eq!(world.refused(PutApiToken { token: scoped("a", Ability::Read, &["workload:a"]) }), "feature-needed");
    assert_eq!(world.refused(by("root", api_token("a", Ability::Read))), "feature-needed");
    assert_eq!(world.refused(CheckpointTokenUse { used: vec![] }), "feature-needed");
}

#[test]
fn a_scope_must_mean_something() {
    let mut world = world();
    world.node("a");
    let refused =
        |world: &mut World, scope: &str| world.refused(PutApiToken { token: scoped("t", Ability::Read, &[scope]) });
    assert_eq!(refused(&mut world, "node:nd_gone"), "unknown-node");
    assert_eq!(refused(&mut world, "nodes:nd_0001"), "invalid-field");
    let many = vec!["workload:a"; limits::SCOPES_MAX + 1];
    assert_eq!(world.refused(PutApiToken { token: scoped("t", Ability::Read, &many) }), "invalid-field");
}

#[test]
fn nobody_gives_more_than_they_have() {
    let mut world = world();
    world.ok(by("root", api_token("writer", Ability::Write)));
    let short = ApiToken { expires_at_ms: Some(5_000_000), ..api_token("short", Ability::Root) };
    world.ok(by("root", short.clone()));
    world.ok(by("root", scoped("shop", Ability::Root, &["workload:shop-"])));
    assert_eq!(world.refused(by("writer", api_token("x", Ability::Root))), "token-exceeds-creator");
    assert_eq!(world.refused(by("short", api_token("x", Ability::Read))), "token-exceeds-creator");
    let longer = ApiToken { expires_at_ms: Some(5_000_001), ..api_token("x", Ability::Read) };
    assert_eq!(world.refused(by("short", longer)), "token-exceeds-creator");
    assert_eq!(world.refused(by("shop", api_token("x", Ability::Read))), "token-exceeds-creator");
    assert_eq!(world.refused(by("shop", scoped("x", Ability::Read, &["workload:sh"]))), "token-exceeds-creator");
    world.ok(by("short", ApiToken { id: "s2".into(), hash: hash(2), ..short }));
    world.ok(by("shop", scoped("x", Ability::Read, &["workload:shop-web"])));
}

#[test]
fn a_token_that_has_ended_leaves_no_other_behind() {
    let mut world = world();
    world.ok(by("root", api_token("admin", Ability::Root)));
    world.ok(RevokeApiToken { id: "admin".into(), forget: false });
    assert_eq!(world.refused(by("admin", api_token("heir", Ability::Root))), "token-ended");
    assert_eq!(world.refused(by("nobody", api_token("heir", Ability::Root))), "token-ended");
    let short = ApiToken { expires_at_ms: Some(2_000_000), ..api_token("short", Ability::Root) };
    world.ok(by("root", short));
    world.at_ms = 2_000_000;
    let heir = ApiToken { expires_at_ms: Some(2_000_000), ..api_token("heir", Ability::Root) };
    assert_eq!(world.refused(by("short", heir)), "invalid-field");
}

#[test]
fn a_scoped_root_token_is_not_the_one_that_must_be_left() {
    let mut world = world();
    world.ok(by("root", scoped("shop", Ability::Root, &["workload:shop-"])));
    assert_eq!(world.refused(RevokeApiToken { id: "root".into(), forget: false }), "last-root-token");
    let mut world = World::empty();
    let root_token = scoped("root", Ability::Root, &["workload:a"]);
    assert_eq!(world.refused(InitCluster { root_token, ..init() }), "invalid-field");
}

#[test]
fn the_last_use_only_rises_and_is_no_change_of_the_token() {
    let mut world = world();
    let used = |at_ms| CheckpointTokenUse {
        used: vec![ApiTokenUse { token: "root".into(), at_ms }, ApiTokenUse { token: "gone".into(), at_ms }],
    };
    let before = world.state.api_token(&"root".into()).unwrap().clone();
    let records = world.state.audit().count();
    for at_ms in [2_000_000, 1_500_000] {
        assert!(world.events(used(at_ms)).is_empty());
    }
    let token = world.state.api_token(&"root".into()).unwrap();
    assert_eq!(token, &ApiToken { last_used_ms: 2_000_000, ..before });
    assert_eq!(world.state.audit().count(), records);
    let many = vec![ApiTokenUse::default(); limits::API_TOKENS_MAX + 1];
    assert_eq!(world.refused(CheckpointTokenUse { used: many }), "invalid-field");
}

#[test]
fn ended_tokens_make_room_and_recovery_always_has_some() {
    // On the bare state: the checks of the world after each of so many entries would take minutes.
    let mut state = State::default();
    let world = World::empty();
    let mut revision = 0;
    let mut apply = |state: &mut State, command: Command| {
        revision += 1;
        state.apply_entry(revision, Entry { incarnation: u64::from(revision > 1), ..world.entry(command) })
    };
    apply(&mut state, init().into()).reply.unwrap();
    apply(&mut state, SetFeatureLevel { level: 3 }.into()).reply.unwrap();
    let token = |number: u64| ApiToken {
        id: format!("t{number}").as_str().into(),
        hash: hash(number),
        ..api_token("t", Ability::Read)
    };
    let mut number = 0;
    while state.api_tokens().len() < limits::API_TOKENS_MAX - limits::API_TOKENS_RESERVED {
        number += 1;
        apply(&mut state, by("root", token(number)).into()).reply.unwrap();
    }
    let full = apply(&mut state, by("root", token(5_000)).into()).reply.unwrap_err();
    assert_eq!(full.code(), "too-many");
    let recovered = ApiToken { created_by: "server:1".into(), ..api_token("recovered", Ability::Root) };
    apply(&mut state, PutApiToken { token: recovered }.into()).reply.unwrap();
    apply(&mut state, RevokeApiToken { id: "t7".into(), forget: false }.into()).reply.unwrap();
    let applied = apply(&mut state, by("root", token(5_000)).into());
    let names: Vec<_> = applied.events.iter().map(Event::name).collect();
    assert_eq!(names, ["ApiTokenCreated", "ApiTokenForgotten"]);
    assert!(state.api_token(&"t7".into()).is_none() && invariant::check(&state).is_empty());
}

#[test]
fn a_record_says_who_from_where_and_what_changed() {
    let mut world = world();
    let a = world.node("a");
    let before = world.state.node(&a).unwrap().revision;
    let entry = Entry {
        actor: "token:root".into(),
        request_id: "r1".into(),
        ..world.entry(Cordon { node: a.clone(), reason: String::new() })
    };
    world.apply(entry).reply.unwrap();
    let record = world.state.audit().next_back().unwrap();
    assert_eq!((record.actor.as_str(), record.actor_name.as_str()), ("token:root", "root"));
    assert_eq!((record.caller.as_str(), record.request_id.as_str()), ("10.0.0.9:4711", "r1"));
    assert_eq!((record.subject.as_str(), record.subject_id.as_str()), ("node/a", a.as_str()));
    assert_eq!((record.before, record.after), (Some(before), Some(record.revision)));
    world.ok(DeleteNode { node: a });
    let record = world.state.audit().next_back().unwrap();
    assert_eq!((record.before, record.after), (Some(Revision(world.revision - 1)), None));
    let recovered = ApiToken { created_by: "server:1".into(), ..api_token("r", Ability::Root) };
    let entry = Entry { actor: "server:1".into(), ..world.entry(PutApiToken { token: recovered }) };
    world.apply(entry).reply.unwrap();
    assert_eq!(world.state.audit().next_back().unwrap().actor_name, "s1");
}
