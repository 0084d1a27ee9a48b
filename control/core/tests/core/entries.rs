//! Entries: time, retries, audit.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

fn with_id(world: &World, id: &str, command: impl Into<Command>) -> Entry {
    Entry { request_id: id.into(), ..world.entry(command) }
}

#[test]
fn a_retry_gets_the_same_answer_and_changes_nothing() {
    let mut world = World::new();
    world.node("a");
    let create = world.app_command("web", "nginx");
    let first = world.apply(with_id(&world, "r1", create));
    // The retry went through another leader, which made another uid.
    let create = world.app_command("web", "nginx");
    let retry = world.apply(with_id(&world, "r1", create));
    assert_eq!(first.reply, retry.reply);
    assert!(retry.events.is_empty() && retry.writes.is_empty());
    // Even when it is gone meanwhile: a late duplicate does not bring it back.
    let uid = world.workload("web").uid.clone();
    world.ok(DeleteWorkload { uid, force: true, expect_revision: None });
    let create = world.app_command("web", "nginx");
    world.apply(with_id(&world, "r1", create)).reply.unwrap();
    assert_eq!(world.state.workloads().len(), 0);
}

#[test]
fn a_request_id_belongs_to_one_request() {
    let mut world = World::new();
    let id = world.node("a");
    let cordon = Cordon { node: id.clone(), reason: String::new() };
    world.apply(with_id(&world, "r1", cordon.clone())).reply.unwrap();
    let other_command = with_id(&world, "r1", Uncordon { node: id, reason: String::new() });
    assert_eq!(world.apply(other_command).reply.unwrap_err().code(), "request-id-reused");
    let other_actor = Entry { actor: "token:other".into(), ..with_id(&world, "r1", cordon.clone()) };
    assert_eq!(world.apply(other_actor).reply.unwrap_err().code(), "request-id-reused");
    let bad = with_id(&world, "with space", cordon);
    assert_eq!(world.apply(bad).reply.unwrap_err().code(), "invalid-field");
}

#[test]
fn a_refusal_is_not_kept() {
    let mut world = World::new();
    let uid = world.app("web", "nginx").uid;
    world.node("a");
    let place = PlaceWorkload { uid, expect_generation: Generation(5) };
    world.apply(with_id(&world, "r1", place.clone())).reply.unwrap_err();
    let right = PlaceWorkload { expect_generation: Generation(0), ..place };
    world.apply(with_id(&world, "r1", right)).reply.unwrap();
}

#[test]
fn replies_are_kept_for_a_day_of_the_logs_time() {
    let mut world = World::new();
    let id = world.node("a");
    let cordon = |reason: &str| Cordon { node: id.clone(), reason: reason.into() };
    world.apply(with_id(&world, "r1", cordon("one"))).reply.unwrap();
    world.at_ms += limits::REPLY_KEPT_MS;
    world.apply(with_id(&world, "r2", cordon("two"))).reply.unwrap();
    assert_eq!(world.state.replies_kept(), 2);
    world.at_ms += 1;
    world.apply(with_id(&world, "r3", cordon("three"))).reply.unwrap();
    assert_eq!(world.state.replies_kept(), 2, "r1 is older than a day");
}

#[test]
fn time_in_the_log_never_goes_back() {
    let mut world = World::new();
    let id = world.node("a");
    world.at_ms = 2_000_000;
    world.ok(Cordon { node: id.clone(), reason: String::new() });
    world.at_ms = 1_500_000;
    world.ok(Uncordon { node: id.clone(), reason: String::new() });
    assert_eq!(world.state.at_ms(), 2_000_000);
    assert_eq!(world.state.node_events(&id).last().unwrap().at_ms, 2_000_000);
}

#[test]
fn each_change_that_somebody_asked_for_has_one_audit_record() {
    let mut world = World::new();
    let id = world.node("a");
    world.app("web", "nginx");
    let before = world.state.audit().count();
    let running = world.report(&id, "web", Phase::Running);
    world.ok(running);
    world.ok(Cordon { node: id.clone(), reason: "one".into() });
    world.ok(Cordon { node: id, reason: "changes nothing".into() });
    assert_eq!(world.state.audit().count(), before + 1);
    let record = world.state.audit().next_back().unwrap();
    assert_eq!((record.command.as_str(), record.subject.as_str()), ("Cordon", "node/a"));
    assert_eq!(record.actor, "token:test");
    assert_eq!(record.revision, world.state.revision());
}

#[test]
fn the_audit_keeps_the_newest() {
    // On the bare state: the checks of the world after each of so many entries would take minutes.
    let mut state = State::default();
    let world = World::empty();
    state.apply_entry(1, world.entry(init())).reply.unwrap();
    let entry = |level: u32| Entry { incarnation: 1, ..world.entry(SetFeatureLevel { level }) };
    for level in 2..limits::AUDIT_RECORDS_MAX as u32 + 10 {
        state.apply_entry(u64::from(level), entry(level)).reply.unwrap();
    }
    assert_eq!(state.audit().count(), limits::AUDIT_RECORDS_MAX);
    assert_eq!(state.audit().next().unwrap().revision, Revision(10));
    assert!(invariant::check(&state).is_empty());
}

#[test]
fn an_entry_writes_exactly_the_objects_that_changed() {
    let mut world = World::new();
    world.node("a");
    world.app("web", "nginx");
    let create = world.app_command("other", "nginx");
    let uid = create.uid.to_string();
    let applied = world.apply(with_id(&world, "r9", create));
    let keys: Vec<String> = applied.writes.iter().map(|(key, _)| String::from_utf8(key.clone()).unwrap()).collect();
    let audit = format!("audit/{:020}", world.revision);
    assert_eq!(keys, [audit, "meta".into(), "reply/r9".into(), format!("workload/{uid}")]);
}

#[test]
fn a_reply_tells_what_the_caller_needs() {
    let mut world = World::new();
    world.ok(mint(1, TokenPurpose::Node));
    let reply = world.ok(enroll(1, &"nd_a".into(), "a"));
    let Answer::Certified(certified) = &reply.answer else { panic!("{reply:?}") };
    assert_eq!((certified.node.as_str(), certified.name.as_str()), ("nd_a", "a"));
    assert_eq!(certified.certificate.generation, Generation(1));
    assert_eq!(reply.revision, world.state.revision());
    let cordoned = world.ok(Cordon { node: "nd_a".into(), reason: String::new() });
    assert!(matches!(&cordoned.answer, Answer::Node(answer) if answer.name == "a"), "{cordoned:?}");
}
