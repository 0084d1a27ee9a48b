//! What the agent reports: what really runs, in the words of the wire. Pure.
//!
//! A report must not change while nothing changes, because it is sent on every change: no time of day, no countdown.

use cara_proto::agent::Report;
use cara_proto::workload::{Assignment, Container, Status};

use crate::observed::{Footprint, Observed};
use crate::plan::{has_newer, newest};
use crate::tracker::Tracker;

/// The whole report: a status for each assignment and for each workload of ours that still has containers here, and the
/// uids of what shall go and is proven gone. `busy` workloads are being worked on: nothing is proven about them.
pub(crate) fn report(
    desired: &[Assignment],
    observed: &Observed,
    tracker: &Tracker,
    busy: impl Fn(&str) -> bool,
) -> Report {
    let mut report = Report::default();
    let nothing = Footprint::default();
    let wanted = newest(desired);
    for (uid, assignment) in &wanted {
        let footprint = observed.workloads.get(*uid).unwrap_or(&nothing);
        let gone = footprint.is_gone() && !busy(uid);
        if assignment.remove && (gone || cara_env::planted("stop-not-confirmed")) {
            report.removed.push((*uid).to_owned());
        } else {
            report.statuses.push(status(assignment, footprint, tracker));
        }
    }
    for (uid, footprint) in observed.workloads.iter().filter(|(uid, _)| !wanted.contains_key(uid.as_str())) {
        if !footprint.containers.is_empty() {
            report.statuses.push(leftover(uid, footprint, tracker));
        }
    }
    report
}

/// The last report when the engine can't be asked: what ran may run on, so phases stay, and say why they may be old.
pub(crate) fn engine_away(last: &Report, desired: &[Assignment], message: &str) -> Report {
    let mut statuses = Vec::new();
    for (uid, assignment) in newest(desired) {
        let known = last.statuses.iter().find(|s| s.uid == uid && s.generation == assignment.generation);
        let mut status = known.cloned().unwrap_or_else(|| Status {
            uid: uid.to_owned(),
            generation: assignment.generation,
            spec_revision: assignment.spec_revision,
            phase: "Pending".into(),
            ..Status::default()
        });
        status.reason = "EngineAway".into();
        status.message = message.to_owned();
        statuses.push(status);
    }
    // What was proven gone stays gone.
    Report { statuses, removed: last.removed.clone() }
}

fn status(assignment: &Assignment, footprint: &Footprint, tracker: &Tracker) -> Status {
    let uid = &assignment.uid;
    let alive = footprint.containers.iter().any(|c| c.info.state.is_alive());
    let (phase, reason, message) = if assignment.remove {
        let (reason, message) = trouble(uid, assignment, tracker)
            .unwrap_or_else(|| ("Stopping".into(), "its containers are being removed".into()));
        (if alive { "Running" } else { "Stopped" }, reason, message)
    } else if has_newer(footprint, assignment.generation) {
        let message = "containers of a newer placement exist here; they are left alone".to_owned();
        ("Failed", "StaleAssignment".to_owned(), message)
    } else if let Some((reason, message)) = trouble(uid, assignment, tracker) {
        ("Failed", reason, message)
    } else if all_run(assignment, footprint) {
        ("Running", String::new(), String::new())
    } else {
        ("Pending", "Starting".to_owned(), "its containers are being made".to_owned())
    };
    Status {
        uid: uid.clone(),
        generation: assignment.generation,
        spec_revision: assignment.spec_revision,
        phase: phase.to_owned(),
        reason,
        message,
        containers: containers(uid, footprint, tracker),
    }
}

/// A workload that has no grant here any more and still has containers.
fn leftover(uid: &str, footprint: &Footprint, tracker: &Tracker) -> Status {
    let alive = footprint.containers.iter().any(|c| c.info.state.is_alive());
    Status {
        uid: uid.to_owned(),
        generation: footprint.containers.iter().map(|c| c.generation).max().unwrap_or_default(),
        phase: if alive { "Running" } else { "Stopped" }.to_owned(),
        reason: "NotAssigned".to_owned(),
        message: "this node has no grant for it; its containers are being removed".to_owned(),
        containers: containers(uid, footprint, tracker),
        ..Status::default()
    }
}

/// Does every service run from its current spec under the current generation?
fn all_run(assignment: &Assignment, footprint: &Footprint) -> bool {
    let services = assignment.spec.iter().flat_map(|spec| &spec.services);
    services.into_iter().all(|service| {
        let hash = crate::labels::spec_hash(service);
        footprint.containers.iter().any(|held| {
            held.service == service.name
                && held.generation == assignment.generation
                && held.spec == hash
                && held.info.state.is_alive()
        })
    })
}

/// The first failure that hasn't been overcome: of the whole, then of a service in the order of the spec.
fn trouble(uid: &str, assignment: &Assignment, tracker: &Tracker) -> Option<(String, String)> {
    let services = assignment.spec.iter().flat_map(|spec| &spec.services).map(|service| service.name.as_str());
    std::iter::once("").chain(services).find_map(|part| tracker.get(uid, part)?.error.clone())
}

fn containers(uid: &str, footprint: &Footprint, tracker: &Tracker) -> Vec<Container> {
    let held = footprint.containers.iter();
    held.map(|held| Container {
        service: held.service.clone(),
        id: held.info.id.clone(),
        state: held.info.state.as_str().to_owned(),
        exit_code: held.info.exit_code.unwrap_or_default(),
        restarts: tracker.get(uid, &held.service).map(|a| a.restarts).unwrap_or_default(),
        started_at_ms: held.info.started_at_ms,
    })
    .collect()
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
