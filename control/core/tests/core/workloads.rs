//! Workloads: create, update, report, delete.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

#[test]
fn a_new_workload_is_placed_by_the_entry_that_creates_it() {
    let mut world = World::new();
    let id = world.node("a");
    let answer = world.app("web", "nginx");
    let placement = answer.placement.unwrap();
    assert!(answer.created && placement.auto_placed);
    assert_eq!((placement.node, placement.generation), (id.clone(), Generation(1)));
    let desired = desired_set(&world.state, &id);
    assert_eq!(desired.len(), 1);
    assert_eq!((desired[0].name.as_str(), desired[0].generation, desired[0].remove), ("web", Generation(1), false));
}

#[test]
fn a_new_spec_is_granted_again_on_the_same_node() {
    let mut world = World::new();
    world.node("a");
    let first = world.app("web", "nginx:1");
    world.node("b");
    let second = world.app("web", "nginx:2");
    assert_eq!((&second.uid, second.created), (&first.uid, false));
    let (old, new) = (first.placement.unwrap(), second.placement.unwrap());
    assert_eq!((new.node, new.generation), (old.node, Generation(2)));
}

#[test]
fn the_same_manifest_again_changes_nothing_and_labels_restart_nothing() {
    let mut world = World::new();
    world.node("a");
    let create = world.app_command("web", "nginx");
    world.ok(create.clone());
    assert!(world.events(create.clone()).is_empty());
    let labelled = ApplyWorkload { labels: labels(&[("team", "blue")]), ..create };
    assert_eq!(world.events(labelled), ["WorkloadUpdated"]);
    assert_eq!(world.workload("web").last_generation, Generation(1));
}

#[test]
fn names_are_unique_in_their_kind() {
    let mut world = World::new();
    world.app("web", "nginx");
    let project = ApplyWorkload { kind: WorkloadKind::Project, ..world.app_command("web", "nginx") };
    assert!(world.workload_answer(project).created);
    assert_eq!(world.state.workloads().len(), 2);
}

#[test]
fn what_changed_meanwhile_is_not_overwritten() {
    let mut world = World::new();
    let must_be_new = ApplyWorkload { expect_revision: Some(Revision(0)), ..world.app_command("web", "nginx") };
    world.ok(must_be_new.clone());
    assert_eq!(world.refused(must_be_new), "revision-mismatch");
    let uid = world.workload("web").uid.clone();
    let stale = DeleteWorkload { uid, force: false, expect_revision: Some(Revision(1)) };
    assert_eq!(world.refused(stale), "revision-mismatch");
}

#[test]
fn the_phase_follows_placement_and_report() {
    let mut world = World::new();
    world.app("web", "nginx");
    assert_eq!(world.workload("web").phase(), "Pending");
    let id = world.node("a");
    let uid = world.workload("web").uid.clone();
    world.ok(PlaceWorkload { uid: uid.clone(), expect_generation: Generation(0) });
    assert_eq!(world.workload("web").phase(), "Scheduled");
    let running = world.report(&id, "web", Phase::Running);
    assert_eq!(world.events(running.clone()), ["WorkloadStatusChanged"]);
    assert_eq!(world.workload("web").phase(), "Running");
    world.at_ms += 5_000;
    assert!(world.events(running).is_empty(), "said again, nothing new");
    world.app("web", "nginx:2");
    assert_eq!(world.workload("web").phase(), "Scheduled", "the report is about the grant before");
    world.ok(DeleteWorkload { uid, ..Default::default() });
    assert_eq!(world.workload("web").phase(), "Terminating");
}

#[test]
fn a_report_counts_only_from_the_current_session_about_the_current_grant() {
    let mut world = World::new();
    let (a, b) = (world.node("a"), world.node("b"));
    let app = world.app("web", "nginx");
    assert_eq!(app.placement.unwrap().node, a);
    let old = world.report(&a, "web", Phase::Failed);
    let from_elsewhere = world.report(&b, "web", Phase::Failed);
    assert!(world.events(from_elsewhere).is_empty());
    let mut wrong_grant = old.clone();
    wrong_grant.statuses[0].status.observed_generation = Generation(7);
    assert!(world.events(wrong_grant).is_empty());
    world.open(&a);
    assert_eq!(world.refused(old), "stale-session");
    assert_eq!(world.workload("web").status, None);
}

#[test]
fn a_deleted_workload_is_gone_when_its_node_has_proven_it() {
    let mut world = World::new();
    let (a, b) = (world.node("a"), world.node("b"));
    let uid = world.app("web", "nginx").uid;
    let proof = |world: &World, node: &NodeId| ReportStatus {
        node: node.clone(),
        epoch: world.epoch(node),
        statuses: Vec::new(),
        removed: vec![uid.clone()],
        ..Default::default()
    };
    let early = proof(&world, &a);
    assert!(world.events(early).is_empty(), "nobody asked for its removal");
    let delete = DeleteWorkload { uid: uid.clone(), ..Default::default() };
    assert_eq!(world.events(delete.clone()), ["WorkloadDeletionStarted"]);
    assert!(world.events(delete).is_empty());
    assert!(desired_set(&world.state, &a)[0].remove);
    let change = world.app_command("web", "nginx:2");
    assert_eq!(world.refused(change), "workload-deleting");
    let foreign = proof(&world, &b);
    assert!(world.events(foreign).is_empty());
    let proven = proof(&world, &a);
    assert_eq!(world.events(proven), ["WorkloadDeleted"]);
    assert_ne!(world.app("web", "nginx").uid, uid, "created again it is another one");
}

#[test]
fn what_no_node_has_is_deleted_at_once_and_force_asks_no_node() {
    let mut world = World::new();
    let uid = world.app("web", "nginx").uid;
    let gone = world.workload_answer(DeleteWorkload { uid: uid.clone(), ..Default::default() });
    assert!(gone.gone);
    assert_eq!(world.refused(DeleteWorkload { uid, ..Default::default() }), "unknown-workload");
    let node = world.node("a");
    let uid = world.app("web", "nginx").uid;
    assert_eq!(world.events(DeleteWorkload { uid, force: true, expect_revision: None }), ["WorkloadDeleted"]);
    assert!(desired_set(&world.state, &node).is_empty());
}

#[test]
fn a_report_that_is_too_long_is_refused() {
    let mut world = World::new();
    let id = world.node("a");
    world.app("web", "nginx");
    let report = world.report(&id, "web", Phase::Running);
    let statuses = vec![report.statuses[0].clone(); limits::STATUSES_PER_REPORT_MAX + 1];
    assert_eq!(world.refused(ReportStatus { statuses, ..report.clone() }), "invalid-field");
}

#[test]
fn a_long_message_is_cut_and_the_report_still_counts() {
    let mut world = World::new();
    let id = world.node("a");
    world.app("web", "nginx");
    let mut report = world.report(&id, "web", Phase::Failed);
    report.statuses[0].status.message = "ä".repeat(limits::MESSAGE_BYTES_MAX);
    report.statuses[0].status.containers = vec![ContainerStatus::default(); limits::CONTAINERS_PER_STATUS_MAX + 1];
    assert_eq!(world.events(report.clone()), ["WorkloadStatusChanged"]);
    assert!(world.events(report).is_empty(), "said again, nothing new");
    let status = world.workload("web").status.clone().unwrap();
    assert_eq!(status.message.len(), limits::MESSAGE_BYTES_MAX);
    assert_eq!(status.containers.len(), limits::CONTAINERS_PER_STATUS_MAX);
    let mut open = world.open_command(&id);
    open.facts.os = "x".repeat(10_000);
    world.ok(open);
    assert_eq!(world.state.node(&id).unwrap().facts.os.len(), limits::TEXT_BYTES_MAX);
}

#[test]
fn another_selector_restarts_nothing_once_all_servers_know_moves() {
    let select = |world: &mut World, disk: &str| {
        let mut command = world.app_command("web", "nginx");
        command.spec.selector = labels(&[("disk", disk)]);
        world.events(command)
    };
    let mut old = World::new();
    old.node("a");
    old.app("web", "nginx");
    assert_eq!(select(&mut old, "ssd"), ["WorkloadUpdated", "WorkloadPlaced"], "as servers from before do it");
    let mut world = World::moving();
    world.node("a");
    let generation = world.app("web", "nginx").placement.unwrap().generation;
    assert_eq!(select(&mut world, "ssd"), ["WorkloadUpdated"]);
    assert_eq!(world.workload("web").placement.as_ref().unwrap().generation, generation);
    let mut both = world.app_command("web", "nginx:2");
    both.spec.selector = labels(&[("disk", "hdd")]);
    assert_eq!(world.events(both), ["WorkloadUpdated", "WorkloadPlaced"]);
}
