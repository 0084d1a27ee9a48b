//! The planner's rules, one sentence each, and the properties that hold for everything.
//!
//! The modes of a move have a file of their own (`modes`).
//! The memory engine is the model: what a plan does to it is looked at with the next listing.

use std::sync::Arc;

use cara_proto::workload::{Mount, Port, Service, Spec, Volume};
use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;
use crate::execute::Job;
use crate::labels::{self, Labels};
use crate::runtime::memory::{MemoryHandle, MemoryRuntime};
use crate::runtime::{ContainerRuntime, Listing};
use crate::staged::Staged;
use crate::testing::{ManualClock, env};
use crate::tracker::RETRY_MAX;

fn service(name: &str, image: &str) -> Service {
    Service { name: name.into(), image: image.into(), ..Service::default() }
}

fn assignment(uid: &str, generation: u64, services: Vec<Service>) -> Assignment {
    let spec = Some(Spec { services, volumes: Vec::new() });
    Assignment { uid: uid.into(), name: format!("name-{uid}"), generation, spec, ..Assignment::default() }
}

fn web(generation: u64) -> Assignment {
    assignment("w", generation, vec![service("web", "nginx")])
}

fn with_volumes(generation: u64) -> Assignment {
    let mut db = service("db", "postgres");
    db.mounts = vec![mount("data", "/data"), mount("scratch", "/scratch")];
    let mut assignment = assignment("v", generation, vec![db]);
    let volume = |name: &str, ephemeral| Volume { name: name.into(), ephemeral };
    assignment.spec.as_mut().expect("set").volumes = vec![volume("data", false), volume("scratch", true)];
    assignment
}

fn mount(volume: &str, path: &str) -> Mount {
    Mount { volume: volume.into(), path: path.into() }
}

/// A node: an engine and what the agent remembers.
struct Node {
    clock: Arc<ManualClock>,
    runtime: MemoryRuntime,
    engine: MemoryHandle,
    owner: Owner,
    tracker: Tracker,
    staged: Arc<Staged>,
    /// What an operator has given up here.
    removals: Vec<VolumeRemoval>,
    _folder: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        let clock = ManualClock::new();
        let runtime = MemoryRuntime::new(clock.clone());
        let owner = Owner { cluster_id: "c".into(), node_id: "n".into() };
        let folder = tempfile::tempdir().expect("a folder");
        let staged = Arc::new(Staged::open(Arc::new(cara_env::RealFiles), folder.path().join("staged")));
        let tracker = Tracker::default();
        let removals = Vec::new();
        Self { engine: runtime.handle(), clock, runtime, owner, tracker, staged, removals, _folder: folder }
    }

    fn everything(&self) -> Listing {
        self.runtime.list(&Labels::new()).now_or_never().expect("at once").expect("a listing")
    }

    fn observed(&self) -> Observed {
        Observed::of(&self.owner, &self.everything())
    }

    fn plan(&mut self, desired: &[Assignment]) -> Plan {
        use cara_env::Clock;
        let (observed, now) = (self.observed(), self.clock.monotonic());
        self.tracker.look(desired, &observed, now);
        plan(&self.owner, desired, &self.removals, &observed, &self.tracker, &self.staged.names(), now)
    }

    /// Carries out the first `steps` actions of each list and takes in the outcome.
    fn execute(&mut self, plan: Plan, steps: usize) {
        use cara_env::Clock;
        for (uid, actions) in plan.actions {
            let job = Job {
                generation: 0,
                env: env(self.clock.clone()),
                runtime: Arc::new(self.runtime.clone()),
                staged: self.staged.clone(),
                uid: uid.clone(),
                actions: actions.into_iter().take(steps).collect(),
                stop_grace: Duration::from_secs(1),
                cancel: tokio::sync::watch::channel(false).1,
            };
            let outcome = job.run().now_or_never().expect("the memory engine answers at once");
            let now = self.clock.monotonic();
            for (service, again) in outcome.started {
                if again {
                    self.tracker.restarted(&uid, &service, now)
                } else {
                    self.tracker.started(&uid, &service, now)
                }
            }
            for image in outcome.images {
                self.tracker.image_fetched(&uid, &image);
            }
            for (service, error) in outcome.failures {
                self.tracker.failed(&uid, &service, &error, now);
            }
        }
    }

    /// Plans and executes until there is nothing to do or to wait for.
    fn settle(&mut self, desired: &[Assignment]) -> usize {
        for round in 0..20 {
            let plan = self.plan(desired);
            if plan == Plan::default() {
                return round;
            }
            if plan.actions.is_empty() {
                self.clock.advance(RETRY_MAX);
            }
            self.execute(plan, usize::MAX);
        }
        panic!("no end in 20 rounds: {:?}", self.plan(desired));
    }

    fn running(&self) -> Vec<(String, u64)> {
        self.engine.running().into_iter().map(|r| (r.service, r.generation)).collect()
    }
}

fn steps(plan: &Plan, uid: &str) -> Vec<&'static str> {
    let actions = plan.actions.get(uid).map(Vec::as_slice).unwrap_or_default();
    let word = |action: &Action| match action.step {
        Step::EnsureNetwork(_) => "network",
        Step::EnsureVolume(_) => "volume",
        Step::Stage(_) => "stage",
        Step::Mounting(_) => "mounting",
        Step::EnsureImage(_) => "image",
        Step::Create(_) => "create",
        Step::Start { again: false, .. } => "start",
        Step::Start { again: true, .. } => "restart",
        Step::Stop(_) => "stop",
        Step::Remove(_) => "remove",
        Step::RemoveNetwork(_) => "remove network",
        Step::RemoveVolume(_) => "remove volume",
    };
    actions.iter().map(word).collect()
}

#[path = "plan_modes_tests.rs"]
mod modes;
#[path = "plan_removal_tests.rs"]
mod removals;

#[test]
fn a_new_workload_is_made_in_order() {
    let mut node = Node::new();
    let plan = node.plan(&[with_volumes(1)]);
    assert_eq!(steps(&plan, "v"), ["network", "volume", "volume", "image", "create", "start"]);
}

#[test]
fn a_converged_node_has_nothing_to_do() {
    let mut node = Node::new();
    let desired = [web(1), with_volumes(1)];
    assert_eq!(node.settle(&desired), 1, "one round is enough");
    assert_eq!(node.plan(&desired), Plan::default());
}

#[test]
fn a_changed_service_is_replaced_and_its_neighbour_left_alone() {
    let mut node = Node::new();
    let two = |image: &str| [assignment("p", 1, vec![service("a", image), service("b", "same")])];
    node.settle(&two("old"));
    let plan = node.plan(&two("new"));
    assert_eq!(steps(&plan, "p"), ["image", "stop", "remove", "create", "start"]);
    assert!(plan.actions["p"].iter().all(|action| action.service == "a"));
}

#[test]
fn the_old_container_runs_on_when_the_new_image_is_missing() {
    let mut node = Node::new();
    node.settle(&[web(1)]);
    let broken = [assignment("w", 1, vec![service("web", "missing/nginx")])];
    let plan = node.plan(&broken);
    node.execute(plan, usize::MAX);
    assert_eq!(node.running(), [("web".into(), 1)]);
    assert!(node.plan(&broken).actions.is_empty(), "it waits");
    assert_eq!(node.tracker.get("w", "web").expect("tracked").error.as_ref().expect("failed").0, "ImageMissing");
}

#[test]
fn a_new_generation_stops_the_old_containers_first() {
    let mut node = Node::new();
    node.settle(&[web(1)]);
    let plan = node.plan(&[web(2)]);
    assert_eq!(steps(&plan, "w"), ["stop", "remove", "image", "create", "start"]);
    node.settle(&[web(2)]);
    assert_eq!(node.running(), [("web".into(), 2)]);
}

#[test]
fn containers_of_a_newer_generation_are_not_ours_to_touch() {
    let mut node = Node::new();
    node.settle(&[web(5)]);
    assert_eq!(node.plan(&[web(4)]), Plan::default());
    assert_eq!(node.plan(&[Assignment { remove: true, ..web(4) }]), Plan::default());
    assert_eq!(node.running(), [("web".into(), 5)]);
}

#[test]
fn what_has_no_grant_any_more_goes_but_its_managed_volume_stays() {
    let mut node = Node::new();
    node.settle(&[with_volumes(1)]);
    let plan = node.plan(&[]);
    assert_eq!(steps(&plan, "v"), ["stop", "remove", "remove network", "remove volume"]);
    node.settle(&[]);
    let left = node.everything();
    assert_eq!((left.containers.len(), left.networks.len(), left.volumes.len()), (0, 0, 1));
    assert_eq!(left.volumes[0].labels[labels::VOLUME], "data");
}

#[test]
fn a_workload_that_returns_finds_its_managed_volume() {
    let mut node = Node::new();
    node.settle(&[with_volumes(1)]);
    let before = node.everything().volumes;
    node.settle(&[]);
    let plan = node.plan(&[with_volumes(2)]);
    assert_eq!(steps(&plan, "v"), ["network", "volume", "image", "create", "start"], "only the scratch volume is made");
    node.settle(&[with_volumes(2)]);
    let after = node.everything().volumes;
    let names = |all: &[Object]| all.iter().map(|o| o.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
}

#[test]
fn a_service_that_left_the_spec_goes() {
    let mut node = Node::new();
    node.settle(&[assignment("p", 1, vec![service("a", "i"), service("b", "i")])]);
    node.settle(&[assignment("p", 1, vec![service("b", "i")])]);
    assert_eq!(node.running(), [("b".into(), 1)]);
}

#[test]
fn an_ended_container_is_started_again_with_growing_waits() {
    let mut node = Node::new();
    let desired = [web(1)];
    node.settle(&desired);
    for wait in [5, 10, 20, 40, 80, 160, 300, 300] {
        let container = node.engine.running()[0].container.clone();
        node.engine.exit(&container, 1);
        let plan = node.plan(&desired);
        assert!(plan.actions.is_empty(), "not at once: {plan:?}");
        use cara_env::Clock;
        assert_eq!(plan.wake_at, Some(node.clock.monotonic() + Duration::from_secs(wait)));
        node.clock.advance(Duration::from_secs(wait));
        let plan = node.plan(&desired);
        assert_eq!(steps(&plan, "w"), ["restart"]);
        node.execute(plan, usize::MAX);
    }
    assert_eq!(node.tracker.get("w", "web").expect("tracked").restarts, 8);
}

#[test]
fn a_container_that_ran_for_long_is_forgiven() {
    let mut node = Node::new();
    let desired = [web(1)];
    node.settle(&desired);
    for _ in 0..4 {
        let container = node.engine.running()[0].container.clone();
        node.engine.exit(&container, 1);
        node.settle(&desired);
    }
    node.clock.advance(crate::tracker::STABLE);
    assert_eq!(node.plan(&desired), Plan::default());
    let container = node.engine.running()[0].container.clone();
    node.engine.exit(&container, 1);
    use cara_env::Clock;
    assert_eq!(node.plan(&desired).wake_at, Some(node.clock.monotonic() + crate::tracker::RETRY_MIN));
}

#[test]
fn after_a_restart_of_the_machine_everything_starts_at_once() {
    let mut node = Node::new();
    let desired = [web(1), with_volumes(1)];
    node.settle(&desired);
    node.engine.exit_all();
    node.tracker = Tracker::default(); // The agent was restarted as well.
    let plan = node.plan(&desired);
    assert_eq!((steps(&plan, "w"), steps(&plan, "v")), (vec!["restart"], vec!["restart"]));
}

#[test]
fn a_failed_start_is_tried_again_later_and_only_the_start() {
    let mut node = Node::new();
    node.engine.fail_next_start("no such device");
    let desired = [web(1)];
    let plan = node.plan(&desired);
    node.execute(plan, usize::MAX);
    assert!(node.plan(&desired).actions.is_empty());
    assert_eq!(node.tracker.get("w", "web").expect("tracked").error.as_ref().expect("failed").0, "StartFailed");
    node.clock.advance(RETRY_MAX);
    assert_eq!(steps(&node.plan(&desired), "w"), ["start"]);
}

#[test]
fn ports_are_bound_to_this_machine_unless_the_spec_says_otherwise() {
    let mut node = Node::new();
    let mut service = service("web", "nginx");
    let port = |container, host, bind: &str| Port { container, host, bind_address: bind.into(), ..Port::default() };
    service.ports = vec![port(80, 8080, ""), port(81, 0, ""), port(82, 8082, "0.0.0.0")];
    let plan = node.plan(&[assignment("w", 1, vec![service])]);
    let created = plan.actions["w"].iter().find_map(|action| match &action.step {
        Step::Create(container) => Some(container.ports.clone()),
        _ => None,
    });
    let bound: Vec<_> = created.expect("created").into_iter().map(|p| (p.host, p.bind_address, p.protocol)).collect();
    assert_eq!(bound, [(8080, "127.0.0.1".into(), "tcp".into()), (8082, "0.0.0.0".into(), "tcp".into())]);
}

#[test]
fn of_two_assignments_for_one_workload_the_higher_generation_counts() {
    let mut node = Node::new();
    node.settle(&[web(2), web(1)]);
    assert_eq!(node.running(), [("web".into(), 2)]);
}

/// Sets of up to three workloads whose services, images, volumes, generations and fates vary.
fn desired_sets() -> impl Strategy<Value = Vec<Assignment>> {
    let image = prop_oneof![4 => Just("one"), 4 => Just("two"), 1 => Just("missing/x")];
    let service = (prop::sample::select(vec!["a", "b", "c"]), image, any::<bool>(), any::<bool>());
    let workload = (1..4_u64, prop::collection::vec(service, 0..3), any::<bool>(), any::<bool>());
    let slots = prop::collection::vec(prop::option::weighted(0.7, workload), 3);
    slots.prop_map(|slots| {
        let present = slots.into_iter().enumerate().filter_map(|(n, slot)| Some((n, slot?)));
        present
            .map(|(n, (generation, services, ephemeral, remove))| {
                let mut by_name = BTreeMap::new();
                for (name, image, mounted, published) in services {
                    let mut service = service_of(name, image, n, published);
                    service.mounts = if mounted { vec![mount("data", "/data")] } else { Vec::new() };
                    by_name.insert(name, service);
                }
                let mut assignment = assignment(&format!("u{n}"), generation, by_name.into_values().collect());
                let spec = assignment.spec.as_mut().expect("set");
                spec.volumes = vec![Volume { name: "data".into(), ephemeral }];
                assignment.remove = remove;
                assignment
            })
            .collect()
    })
}

fn service_of(name: &str, image: &str, workload: usize, published: bool) -> Service {
    let mut service = service(name, image);
    if published {
        // Each service has a port of its own: conflicts never converge, and have a test of their own.
        let host = 1000 + 10 * u32::try_from(workload).expect("small") + u32::from(name.as_bytes()[0] - b'a');
        service.ports = vec![Port { container: 80, host, ..Port::default() }];
    }
    service
}

/// Three objects that are not ours, each of another kind.
fn foreigners(node: &Node) {
    let ours = node.owner.assigned(&web(1));
    let mut other_cluster = ours.clone();
    other_cluster.insert(labels::CLUSTER.into(), "another".into());
    let mut other_node = ours;
    other_node.insert(labels::NODE.into(), "another".into());
    for (name, labels) in [("plain", Labels::new()), ("cluster", other_cluster), ("node", other_node)] {
        node.engine.add_foreign(name, labels).now_or_never().expect("at once").expect("added");
    }
}

fn foreign(node: &Node) -> Listing {
    let mut all = node.everything();
    all.containers.retain(|c| !node.owner.owns(&c.labels));
    all.networks.retain(|o| !node.owner.owns(&o.labels));
    all.volumes.retain(|o| !node.owner.owns(&o.labels));
    all
}

proptest! {
    #[test]
    fn from_any_state_the_node_converges_and_foreign_objects_are_never_touched(
        past in desired_sets(), steps in 0..12_usize, exits in 0..3_usize, fail in any::<bool>(), wanted in desired_sets(),
    ) {
        let mut node = Node::new();
        foreigners(&node);
        let before = foreign(&node);
        // Some half-finished past, with ended containers.
        let plan = node.plan(&past);
        node.execute(plan, steps);
        for running in node.engine.running().iter().filter(|r| r.uid.starts_with('u')).take(exits) {
            node.engine.exit(&running.container, 1);
        }
        if fail {
            node.engine.fail_next_start("once");
        }
        // Images that never come keep a workload waiting; that is no converged state, so the last rounds only look.
        let broken = |a: &Assignment| a.spec.iter().flat_map(|s| &s.services).any(|s| s.image.starts_with("missing/"));
        for _ in 0..12 {
            let plan = node.plan(&wanted);
            node.execute(plan, usize::MAX);
            node.clock.advance(RETRY_MAX);
        }
        let plan = node.plan(&wanted);
        let observed = node.observed();
        for assignment in &wanted {
            let uid = assignment.uid.as_str();
            let nothing = Footprint::default();
            let footprint = observed.workloads.get(uid).unwrap_or(&nothing);
            if has_newer(footprint, assignment.generation) {
                prop_assert!(!plan.actions.contains_key(uid));
            } else if assignment.remove {
                prop_assert!(footprint.is_gone(), "{footprint:?}");
            } else if !broken(assignment) {
                prop_assert!(!plan.actions.contains_key(uid), "{plan:?}");
                let services = &assignment.spec.as_ref().expect("set").services;
                prop_assert_eq!(footprint.containers.len(), services.len());
                for held in &footprint.containers {
                    prop_assert!(held.info.state.is_alive() && held.generation == assignment.generation);
                }
            }
        }
        for uid in observed.workloads.keys().filter(|uid| !wanted.iter().any(|a| a.uid == **uid)) {
            prop_assert!(observed.workloads[uid].is_gone(), "{uid}");
        }
        prop_assert_eq!(before, foreign(&node));
    }

    #[test]
    fn two_generations_of_a_service_never_run_at_the_same_time(sets in prop::collection::vec(desired_sets(), 1..5)) {
        let mut node = Node::new();
        let mut rising = 0;
        for set in sets {
            rising += 4; // Generations only rise, as the ledger ensures.
            let set: Vec<_> = set.into_iter().map(|a| Assignment { generation: a.generation + rising, ..a }).collect();
            for _ in 0..3 {
                let plan = node.plan(&set);
                node.execute(plan, usize::MAX);
                node.clock.advance(Duration::from_secs(7));
            }
        }
        let starts = node.engine.starts();
        for (n, one) in starts.iter().enumerate() {
            for other in &starts[n + 1..] {
                if (&one.uid, &one.service) == (&other.uid, &other.service) {
                    let ended = one.ended_at.is_some_and(|ended| ended <= other.started_at);
                    prop_assert!(ended, "{one:?} and {other:?}");
                }
            }
        }
    }
}
