//! What each mode does to a node, and what it never does.

use cara_proto::agent::Report;
use cara_proto::workload::Status;

use super::*;
use crate::status::{Known, report};

/// The workload of [`with_volumes`] in this mode; its data has the same generation unless told otherwise.
pub(super) fn in_mode(mode: &str, generation: u64) -> Assignment {
    Assignment { mode: mode.into(), data_generation: generation, ..with_volumes(generation) }
}

pub(super) fn with_data(data_generation: u64, assignment: Assignment) -> Assignment {
    Assignment { data_generation, ..assignment }
}

impl Node {
    pub(super) fn report(&self, desired: &[Assignment]) -> Report {
        report(&Known {
            owner: &self.owner,
            desired,
            observed: &self.observed(),
            tracker: &self.tracker,
            staged: &self.staged.names(),
            transfers: &BTreeMap::new(),
            verdicts: &BTreeMap::new(),
            sizes: &BTreeMap::new(),
            busy: &BTreeSet::new(),
        })
    }

    pub(super) fn status(&self, desired: &Assignment) -> Status {
        let mut statuses = self.report(std::slice::from_ref(desired)).statuses;
        assert_eq!(statuses.len(), 1, "{statuses:?}");
        statuses.remove(0)
    }

    /// Names of all volumes, in the words of the spec and with the generation of their data.
    pub(super) fn volumes(&self) -> Vec<(String, u64)> {
        let volumes = self.observed().workloads.remove("v").unwrap_or_default().volumes;
        volumes.into_iter().map(|v| (v.volume, v.data_generation)).collect()
    }

    fn counts(&self) -> (usize, usize, usize) {
        let all = self.everything();
        (all.containers.len(), all.networks.len(), all.volumes.len())
    }
}

pub(super) fn volume(name: &str, data_generation: u64) -> (String, u64) {
    (name.to_owned(), data_generation)
}

#[test]
fn stop_ends_the_containers_and_keeps_everything() {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 1)]);
    let stop = in_mode("stop", 1);
    let plan = node.plan(std::slice::from_ref(&stop));
    assert_eq!(steps(&plan, "v"), ["stop"]);
    let before = node.status(&stop);
    assert_eq!((before.phase.as_str(), before.reason.as_str()), ("Running", "Stopping"), "not before it is seen");
    node.execute(plan, usize::MAX);
    assert_eq!(node.plan(std::slice::from_ref(&stop)), Plan::default());
    assert_eq!(node.status(&stop).phase, "Stopped");
    assert_eq!(node.counts(), (1, 1, 2));
}

#[test]
fn what_is_stopped_is_never_started_whatever_happens() {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 1)]);
    // Under a later generation too: the move's own grants.
    for generation in [1, 2] {
        let stop = [with_data(1, in_mode("stop", generation))];
        node.settle(&stop);
        node.engine.exit_all();
        node.tracker = Tracker::default(); // The agent was restarted, and knows only its ledger.
        assert_eq!(node.plan(&stop), Plan::default());
    }
    assert_eq!(node.engine.starts().len(), 1);
    node.settle(&[with_data(1, in_mode("run", 3))]);
    assert_eq!(node.running(), [("db".into(), 3)], "it goes on where it was, with its data");
    assert_eq!(node.volumes(), [volume("data", 1), volume("scratch", 1)]);
}

#[test]
fn a_container_that_can_t_be_stopped_is_tried_again_and_said_to_run() {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 1)]);
    let stop = [in_mode("stop", 1)];
    let plan = node.plan(&stop);
    node.engine.fault(|faults| faults.away = true);
    node.execute(plan, usize::MAX);
    node.engine.clear();
    assert!(node.plan(&stop).actions.is_empty(), "not at once");
    let status = node.status(&stop[0]);
    assert_eq!((status.phase.as_str(), status.reason.as_str()), ("Running", "EngineAway"));
    node.clock.advance(RETRY_MAX);
    node.settle(&stop);
    assert_eq!(node.status(&stop[0]).phase, "Stopped");
}

#[test]
fn stop_leaves_containers_of_a_newer_placement_alone() {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 5)]);
    let stop = in_mode("stop", 4);
    assert_eq!(node.plan(std::slice::from_ref(&stop)), Plan::default());
    assert_eq!(node.status(&stop).reason, "StaleAssignment");
}

#[test]
fn receive_makes_everything_but_a_container() {
    let mut node = Node::new();
    let receive = in_mode("receive", 4);
    let plan = node.plan(std::slice::from_ref(&receive));
    assert_eq!(steps(&plan, "v"), ["network", "stage", "image"], "the scratch volume is made by the run");
    assert!(!node.status(&receive).ready);
    node.execute(plan, usize::MAX);
    assert_eq!(node.plan(std::slice::from_ref(&receive)), Plan::default());
    assert!(node.status(&receive).ready);
    assert_eq!(node.counts(), (0, 1, 1));
    let labels = &node.everything().volumes[0].labels;
    assert_eq!((labels[labels::STAGED].as_str(), labels[labels::DATA_GENERATION].as_str()), ("true", "4"));
    node.tracker = Tracker::default();
    assert_eq!(steps(&node.plan(std::slice::from_ref(&receive)), "v"), ["image"], "a new agent looks again");
    assert!(!node.status(&receive).ready);
}

#[test]
fn a_missing_image_is_said_and_keeps_no_volume_from_being_filled() {
    let mut node = Node::new();
    let mut receive = in_mode("receive", 4);
    receive.spec.as_mut().expect("set").services[0].image = "missing/x".into();
    let plan = node.plan(std::slice::from_ref(&receive));
    node.execute(plan, usize::MAX);
    let status = node.status(&receive);
    assert_eq!((status.phase.as_str(), status.reason.as_str(), status.ready), ("Failed", "ImageMissing", false));
    assert_eq!(node.volumes(), [volume("data", 4)]);
}

#[test]
fn what_was_received_runs_and_is_no_longer_a_copy() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    let plan = node.plan(&[in_mode("run", 4)]);
    assert_eq!(steps(&plan, "v"), ["volume", "image", "create", "mounting", "start"]);
    node.settle(&[in_mode("run", 4)]);
    assert!(node.staged.names().is_empty());
    assert_eq!(node.volumes(), [volume("data", 4), volume("scratch", 4)]);
}

#[test]
fn a_copy_that_the_engine_has_lost_is_not_replaced_by_an_empty_volume() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    let copy = node.everything().volumes[0].name.clone();
    node.runtime.remove_volume(&copy).now_or_never().expect("at once").expect("removed");
    let run = in_mode("run", 4);
    assert_eq!(node.plan(std::slice::from_ref(&run)), Plan::default());
    let status = node.status(&run);
    assert_eq!((status.phase.as_str(), status.reason.as_str()), ("Failed", "VolumeMissing"));
}

#[test]
fn a_volume_that_has_run_is_not_to_be_filled() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    node.settle(&[in_mode("run", 4)]);
    // No leader asks for this; an agent would still not do it.
    let receive = in_mode("receive", 4);
    node.settle(std::slice::from_ref(&receive));
    let status = node.status(&receive);
    assert_eq!((status.phase.as_str(), status.reason.as_str(), status.ready), ("Failed", "VolumeInUse", false));
}

#[test]
fn receiving_touches_no_volume_that_lay_there_before() {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 1)]);
    node.settle(&[in_mode("retire", 1)]);
    let before = node.engine.volume_digest(&node.everything().volumes[0].name);
    node.settle(&[in_mode("receive", 4)]);
    assert_eq!(node.volumes(), [volume("data", 1), volume("data", 4)]);
    let old = node.everything().volumes.into_iter().find(|v| v.labels[labels::DATA_GENERATION] == "1").expect("kept");
    assert_eq!(node.engine.volume_digest(&old.name), before);
}

#[test]
fn discard_deletes_a_copy_that_nothing_has_mounted() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    let discard = [in_mode("discard", 4)];
    let plan = node.plan(&discard);
    assert_eq!(steps(&plan, "v"), ["remove network", "remove volume"]);
    assert!(node.report(&discard).removed.is_empty(), "not before it is gone");
    assert!(node.report(&discard).held.is_empty(), "nobody has to decide about it");
    node.execute(plan, usize::MAX);
    assert_eq!(node.counts(), (0, 0, 0));
    assert_eq!(node.report(&discard).removed, ["v"]);
    assert!(node.staged.names().is_empty());
}

#[test]
fn a_copy_goes_also_when_its_move_was_forgotten_meanwhile_and_what_has_run_stays() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    node.settle(&[]);
    assert_eq!(node.counts(), (0, 0, 0));
    node.settle(&[in_mode("receive", 5)]);
    node.settle(&[in_mode("run", 5)]);
    node.settle(&[]);
    assert_eq!(node.volumes(), [volume("data", 5)]);
}

#[test]
fn discard_keeps_what_has_run() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    node.settle(&[in_mode("run", 4)]);
    let discard = [in_mode("discard", 4)];
    // Also when it is interrupted between the container and the rest.
    let plan = node.plan(&discard);
    assert_eq!(steps(&plan, "v"), ["stop", "remove", "remove network", "remove volume"]);
    node.execute(plan, 2);
    node.settle(&discard);
    assert_eq!(node.volumes(), [volume("data", 4)]);
    let report = node.report(&discard);
    assert_eq!(report.removed, ["v"]);
    let held: Vec<_> =
        report.held.iter().map(|h| (h.workload.as_str(), h.volume.as_str(), h.data_generation)).collect();
    assert_eq!(held, [("name-v", "data", 4)]);
}

#[test]
fn discard_keeps_a_volume_of_which_the_book_knows_nothing() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    let copy = node.everything().volumes[0].name.clone();
    node.staged.strike(&copy).expect("saved"); // As when the file was lost.
    node.settle(&[in_mode("discard", 4)]);
    assert_eq!(node.volumes(), [volume("data", 4)]);
}

#[test]
fn discard_is_of_exactly_its_generation() {
    let mut node = Node::new();
    node.settle(&[in_mode("receive", 4)]);
    node.settle(&[in_mode("receive", 6)]);
    node.settle(&[in_mode("discard", 6)]);
    assert_eq!(node.volumes(), [volume("data", 4)]);
}

#[test]
fn retire_keeps_the_data_and_says_so() {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 1)]);
    let retire = [in_mode("retire", 1)];
    let plan = node.plan(&retire);
    assert_eq!(steps(&plan, "v"), ["stop", "remove", "remove network", "remove volume"]);
    assert!(node.report(&retire).removed.is_empty());
    node.execute(plan, usize::MAX);
    let report = node.report(&retire);
    assert_eq!((report.removed, report.held.len()), (vec!["v".to_owned()], 1));
    assert_eq!(node.volumes(), [volume("data", 1)]);
    assert_eq!(node.report(&[]).held.len(), 1, "and it is still there when the assignment is gone");
}

#[test]
fn a_mode_of_a_newer_server_changes_nothing() {
    let mut node = Node::new();
    node.settle(&[in_mode("run", 1)]);
    let unknown = in_mode("hibernate", 1);
    assert_eq!(node.plan(std::slice::from_ref(&unknown)), Plan::default());
    assert_eq!(node.status(&unknown).reason, "UnknownMode");
}
