//! Nodes: manifests, labels, cordon, deletion.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

fn manifest(name: &str) -> ApplyNode {
    ApplyNode {
        node: NodeId::new(format!("nd_m_{name}")),
        name: name.into(),
        labels: labels(&[("site", "hall-b")]),
        ..Default::default()
    }
}

#[test]
fn a_manifest_may_come_before_its_machine() {
    let mut world = World::new();
    assert_eq!(world.events(manifest("a")), ["NodeDeclared"]);
    assert!(world.events(manifest("a")).is_empty(), "applied again it changes nothing");
    world.ok(mint(1, TokenPurpose::Node));
    let wrong_id = enroll(1, &"nd_other".into(), "a");
    assert_eq!(world.refused(wrong_id), "node-id-taken", "the certificate must carry the id of the declared node");
    let id = NodeId::from("nd_m_a");
    assert_eq!(world.events(enroll(1, &id, "a")), ["JoinTokenSpent", "NodeEnrolled"]);
    let node = world.state.node_by_name("a").unwrap();
    assert_eq!(node.labels, labels(&[("site", "hall-b")]));
    assert!(node.declared && node.certificate.is_some());
}

#[test]
fn a_manifest_cordons_and_a_manifest_without_the_word_leaves_it() {
    let mut world = World::new();
    let cordoned = ApplyNode { unschedulable: Some(true), ..manifest("a") };
    assert_eq!(world.events(cordoned.clone()), ["NodeDeclared", "NodeCordoned"]);
    assert!(world.events(manifest("a")).is_empty());
    assert_eq!(world.state.node_by_name("a").unwrap().view(), NodeView::Draining);
    assert_eq!(world.events(ApplyNode { unschedulable: Some(false), ..cordoned }), ["NodeUncordoned"]);
}

#[test]
fn what_changed_meanwhile_is_not_overwritten() {
    let mut world = World::new();
    let must_be_new = ApplyNode { expect_revision: Some(Revision(0)), ..manifest("a") };
    world.ok(must_be_new.clone());
    assert_eq!(world.refused(must_be_new), "revision-mismatch");
    let id = world.state.node_by_name("a").unwrap().id.clone();
    let read = world.state.node(&id).unwrap().revision;
    let set = |value: &str, expect| SetLabels {
        node: id.clone(),
        labels: labels(&[("site", value)]),
        expect_revision: expect,
    };
    world.ok(set("one", Some(read)));
    assert_eq!(world.refused(set("two", Some(read))), "revision-mismatch");
    world.ok(set("two", None));
    assert_eq!(world.refused(set("no good", None)), "invalid-field");
}

#[test]
fn cordon_twice_is_cordon_once_and_outlives_sessions() {
    let mut world = World::new();
    let id = world.node("a");
    let cordon = Cordon { node: id.clone(), reason: "disk".into() };
    assert_eq!(world.events(cordon.clone()), ["NodeCordoned"]);
    assert!(world.events(cordon).is_empty());
    world.open(&id);
    assert!(!world.state.node(&id).unwrap().schedulable);
    assert_eq!(world.events(Uncordon { node: id.clone(), reason: String::new() }), ["NodeUncordoned"]);
    assert_eq!(world.refused(Cordon { node: "nd_z".into(), reason: String::new() }), "unknown-node");
    let last = world.state.node_events(&id).last().unwrap();
    assert_eq!((last.from.as_str(), last.to.as_str()), ("cordoned", "schedulable"));
}

#[test]
fn a_node_is_deleted_only_when_nothing_is_placed_there() {
    let mut world = World::new();
    let id = world.node("a");
    let app = world.app("web", "nginx");
    assert_eq!(world.refused(DeleteNode { node: id.clone() }), "node-not-empty");
    world.ok(DeleteWorkload { uid: app.uid.clone(), ..Default::default() });
    assert_eq!(world.refused(DeleteNode { node: id.clone() }), "node-not-empty", "it is not proven gone yet");
    let removed = vec![app.uid];
    world.ok(ReportStatus { node: id.clone(), epoch: world.epoch(&id), removed, ..Default::default() });
    assert_eq!(world.events(DeleteNode { node: id.clone() }), ["NodeSessionClosed", "NodeDeleted"]);
    assert_eq!(world.refused(DeleteNode { node: id.clone() }), "unknown-node");
    assert!(world.state.node_events(&id).is_empty());
    world.node("a");
}

#[test]
fn what_a_node_accepts_is_set_whole() {
    let mut world = World::new();
    let id = world.node("a");
    let set = SetAccepts { node: id.clone(), app: false, database: true, build: true };
    assert_eq!(world.events(set.clone()), ["NodeUpdated"]);
    assert!(world.events(set).is_empty());
    let node = world.state.node(&id).unwrap();
    assert!(!node.accepts(WorkloadKind::App) && !node.accepts(WorkloadKind::Project));
    assert!(node.accepts(WorkloadKind::Database));
}
