//! What is reported when.

use std::time::Duration;

use cara_proto::workload::{Service, Spec};

use super::*;
use crate::labels::spec_hash;
use crate::observed::{Held, StoredVolume};
use crate::runtime::{ContainerInfo, ContainerState, RuntimeError};

const NOW: Duration = Duration::from_secs(100);

fn service() -> Service {
    Service { name: "web".into(), image: "nginx".into(), ..Service::default() }
}

fn assignment(remove: bool) -> Assignment {
    let spec = Some(Spec { services: vec![service()], volumes: Vec::new() });
    Assignment { uid: "u".into(), generation: 3, spec_revision: 7, spec, remove, ..Assignment::default() }
}

fn observed(generation: u64, state: ContainerState) -> Observed {
    let info = ContainerInfo {
        id: "id".into(),
        name: "n".into(),
        labels: Default::default(),
        state,
        exit_code: (state == ContainerState::Exited).then_some(3),
        started_at_ms: 5,
    };
    let held = Held { service: "web".into(), generation, spec: spec_hash(&service()), info };
    let footprint = Footprint { containers: vec![held], ..Footprint::default() };
    Observed { workloads: [("u".to_owned(), footprint)].into() }
}

/// A report of a node on which nothing else is known.
fn report(desired: &[Assignment], observed: &Observed, tracker: &Tracker, busy: impl Fn(&str) -> bool) -> Report {
    known(desired, observed, tracker, busy, &Verdicts::new())
}

fn known(
    desired: &[Assignment],
    observed: &Observed,
    tracker: &Tracker,
    busy: impl Fn(&str) -> bool,
    verdicts: &Verdicts,
) -> Report {
    super::report(&Known {
        owner: &Owner { cluster_id: "c".into(), node_id: "n".into() },
        desired,
        observed,
        tracker,
        staged: &BTreeSet::new(),
        transfers: &BTreeMap::new(),
        verdicts,
        sizes: &[("cara-x".to_owned(), 42)].into(),
        busy: &desired.iter().map(|a| a.uid.clone()).filter(|uid| busy(uid)).collect(),
    })
}

fn one(desired: &[Assignment], observed: &Observed, tracker: &Tracker) -> (String, String) {
    let report = report(desired, observed, tracker, |_| false);
    assert_eq!((report.statuses.len(), report.removed.len()), (1, 0), "{report:?}");
    (report.statuses[0].phase.clone(), report.statuses[0].reason.clone())
}

#[test]
fn a_workload_is_running_once_every_service_runs_from_the_current_spec() {
    let tracker = Tracker::default();
    let desired = [assignment(false)];
    assert_eq!(one(&desired, &Observed::default(), &tracker), ("Pending".into(), "Starting".into()));
    assert_eq!(one(&desired, &observed(3, ContainerState::Created), &tracker).0, "Pending");
    assert_eq!(one(&desired, &observed(2, ContainerState::Running), &tracker).0, "Pending", "an older placement");
    assert_eq!(one(&desired, &observed(3, ContainerState::Running), &tracker), ("Running".into(), String::new()));
    let report = report(&desired, &observed(3, ContainerState::Running), &tracker, |_| false);
    let status = &report.statuses[0];
    assert_eq!((status.generation, status.spec_revision), (3, 7));
    let container = &status.containers[0];
    assert_eq!((container.service.as_str(), container.state.as_str(), container.started_at_ms), ("web", "running", 5));
}

#[test]
fn a_failure_is_reported_until_it_is_overcome() {
    let mut tracker = Tracker::default();
    let desired = [assignment(false)];
    let error = RuntimeError::ImageMissing { image: "nginx".into(), cause: "no network".into() };
    tracker.failed("u", "web", &error, NOW);
    assert_eq!(one(&desired, &Observed::default(), &tracker), ("Failed".into(), "ImageMissing".into()));
    tracker.look(&desired, &observed(3, ContainerState::Running), NOW);
    assert_eq!(one(&desired, &observed(3, ContainerState::Running), &tracker).0, "Running");
    tracker.look(&desired, &observed(3, ContainerState::Exited), NOW);
    assert_eq!(one(&desired, &observed(3, ContainerState::Exited), &tracker), ("Failed".into(), "Exited".into()));
}

#[test]
fn removed_is_said_only_when_nothing_is_left_and_nobody_works_on_it() {
    let tracker = Tracker::default();
    let desired = [assignment(true)];
    assert_eq!(one(&desired, &observed(3, ContainerState::Running), &tracker).0, "Running");
    assert_eq!(one(&desired, &observed(3, ContainerState::Exited), &tracker).0, "Stopped");
    let mut network = Observed::default();
    network.workloads.entry("u".into()).or_default().networks.push("net".into());
    assert_eq!(one(&desired, &network, &tracker).0, "Stopped");
    let mut kept = Observed::default();
    let volume = StoredVolume {
        name: "vol".into(),
        workload: "shop".into(),
        volume: "data".into(),
        generation: 3,
        data_generation: 2,
        ephemeral: false,
    };
    kept.workloads.entry("u".into()).or_default().volumes.push(volume);
    assert_eq!(report(&desired, &kept, &tracker, |_| false).removed, ["u"], "managed volumes stay");
    let busy = report(&desired, &Observed::default(), &tracker, |_| true);
    assert_eq!((busy.statuses.len(), busy.removed.len()), (1, 0));
    let gone = report(&desired, &Observed::default(), &tracker, |_| false);
    assert_eq!((gone.statuses.len(), gone.removed), (0, vec!["u".to_owned()]));
}

#[test]
fn what_runs_without_a_grant_is_reported_too() {
    let (phase, reason) = one(&[], &observed(3, ContainerState::Running), &Tracker::default());
    assert_eq!((phase.as_str(), reason.as_str()), ("Running", "NotAssigned"));
}

#[test]
fn newer_containers_make_an_assignment_stale() {
    let (phase, reason) = one(&[assignment(false)], &observed(4, ContainerState::Running), &Tracker::default());
    assert_eq!((phase.as_str(), reason.as_str()), ("Failed", "StaleAssignment"));
}

#[test]
fn an_engine_that_is_away_leaves_the_phase_as_last_seen() {
    let desired = [assignment(false)];
    let seen = report(&desired, &observed(3, ContainerState::Running), &Tracker::default(), |_| false);
    let away = engine_away(&seen, &desired, "it hangs");
    assert_eq!((away.statuses[0].phase.as_str(), away.statuses[0].reason.as_str()), ("Running", "EngineAway"));
    assert_eq!(away.statuses[0].containers, seen.statuses[0].containers);
    assert_eq!(engine_away(&Report::default(), &desired, "it hangs").statuses[0].phase, "Pending", "never seen");
}

#[test]
fn a_service_with_a_check_runs_once_it_has_answered_well() {
    let mut desired = [assignment(false)];
    desired[0].spec.as_mut().expect("set").services[0].health_check = Some(Default::default());
    let observed = observed(3, ContainerState::Running);
    let told = |verdict: Option<Verdict>| {
        let verdicts = verdict.into_iter().map(|verdict| ("id".to_owned(), verdict)).collect();
        let status = known(&desired, &observed, &Tracker::default(), |_| false, &verdicts).statuses.remove(0);
        (status.phase, status.reason, status.containers[0].state.clone())
    };
    let words = |phase: &str, reason: &str, state: &str| (phase.to_owned(), reason.to_owned(), state.to_owned());
    assert_eq!(told(None), words("Pending", "Starting", "running"));
    assert_eq!(told(Some(Verdict::Unknown)), words("Pending", "Starting", "running"));
    assert_eq!(told(Some(Verdict::Healthy)), words("Running", "", "healthy"));
    assert_eq!(told(Some(Verdict::Unhealthy("no".into()))), words("Failed", "Unhealthy", "unhealthy"));
}
