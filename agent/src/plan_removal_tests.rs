//! Volumes that an operator has given up: which of them go, and what is never taken for one of them.

use super::modes::{in_mode, volume, with_data};
use super::*;

/// A node on which a workload has run and of which its volume is left, and the word that gives that volume up.
fn quarantined() -> (Node, VolumeRemoval) {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 1)]);
    node.settle(&[]);
    assert_eq!(node.volumes(), [volume("data", 1)]);
    let held = node.report(&[]).held.remove(0);
    let removal = VolumeRemoval {
        uid: held.uid,
        volume: held.volume,
        data_generation: held.data_generation,
        engine_name: held.engine_name,
    };
    (node, removal)
}

#[test]
fn nothing_goes_without_a_word_and_exactly_the_meant_one_goes_with_it() {
    let (mut node, removal) = quarantined();
    node.settle(&[in_mode("run", 4)]);
    node.settle(&[]);
    assert_eq!(node.plan(&[]), Plan::default());
    node.removals = vec![removal];
    let plan = node.plan(&[]);
    assert_eq!(steps(&plan, "v"), ["remove volume"]);
    node.execute(plan, usize::MAX);
    assert_eq!(node.volumes(), [volume("data", 4)]);
    assert_eq!(node.plan(&[]), Plan::default(), "what is gone is not asked for again");
}

#[test]
fn a_word_that_differs_in_anything_is_about_another_volume() {
    let (mut node, removal) = quarantined();
    let wrong: [fn(&mut VolumeRemoval); 4] = [
        |removal| removal.uid = "w".into(),
        |removal| removal.volume = "scratch".into(),
        |removal| removal.data_generation = 2,
        |removal| removal.engine_name.push('0'),
    ];
    for change in wrong {
        node.removals = vec![removal.clone()];
        change(&mut node.removals[0]);
        assert_eq!(node.plan(&[]), Plan::default(), "{:?}", node.removals);
    }
}

#[test]
fn what_another_owner_has_is_never_removed() {
    let (mut node, removal) = quarantined();
    node.removals = vec![removal];
    node.owner.node_id = "other".into();
    assert_eq!(node.plan(&[]), Plan::default());
}

#[test]
fn data_that_any_role_here_works_with_stay() {
    let (mut node, removal) = quarantined();
    node.removals = vec![removal];
    for mode in ["run", "stop", "receive", "discard", "retire", "hibernate"] {
        let plan = node.plan(&[with_data(1, in_mode(mode, 5))]);
        let removes = |action: &Action| matches!(&action.step, Step::RemoveVolume(name) if name.contains("-data-"));
        assert!(!plan.actions.values().flatten().any(removes), "{mode}: {plan:?}");
    }
    let ends = cara_proto::workload::Transfer { from_data_generation: 1, to_data_generation: 5, ..Default::default() };
    let receive = Assignment { transfer: Some(ends), ..in_mode("receive", 5) };
    node.settle(std::slice::from_ref(&receive));
    assert_eq!(node.volumes(), [volume("data", 1), volume("data", 5)]);
    node.settle(&[in_mode("receive", 5)]);
    assert_eq!(node.volumes(), [volume("data", 5)], "and go once the role is with other data");
}

#[test]
fn nothing_is_removed_while_a_container_of_another_grant_exists() {
    let (mut node, removal) = quarantined();
    node.settle(&[with_data(1, in_mode("run", 2))]);
    node.removals = vec![removal];
    let stop = [in_mode("stop", 5)];
    node.settle(&stop);
    assert_eq!(node.volumes().len(), 2, "the stopped container mounts it");
    assert_eq!(steps(&node.plan(&[]), "v"), ["remove", "remove network", "remove volume"], "its scratch volume");
    node.settle(&[]);
    assert!(node.volumes().is_empty());
}

#[test]
fn a_volume_that_can_t_be_removed_waits_and_is_no_trouble_of_the_workload() {
    let (mut node, removal) = quarantined();
    let run = [in_mode("run", 4)];
    node.settle(&run);
    node.removals = vec![removal];
    let plan = node.plan(&run);
    node.engine.fault(|faults| faults.fail_volumes = true);
    node.execute(plan, usize::MAX);
    node.engine.clear();
    let plan = node.plan(&run);
    assert!(plan.actions.is_empty() && plan.wake_at.is_some(), "not at once: {plan:?}");
    assert_eq!(node.status(&run[0]).phase, "Running");
    node.settle(&run);
    assert_eq!(node.volumes(), [volume("data", 4), volume("scratch", 4)]);
}
