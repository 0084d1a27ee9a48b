//! What the agent reports: what really runs, in the words of the wire. Pure.
//!
//! A report must not change while nothing changes, because it is sent on every change: no time of day, no countdown.

use std::collections::{BTreeMap, BTreeSet};

use cara_proto::agent::{HeldVolume, Report};
use cara_proto::workload::{Assignment, Container, Status, TransferStatus};

use crate::health::{Verdict, Verdicts};
use crate::labels::Owner;
use crate::mode::Mode;
use crate::observed::{Footprint, Held, Observed};
use crate::plan::{has_newer, is_ready, lost_volumes, managed_volumes, newest, not_to_be_filled, unmounted_copies};
use crate::tracker::Tracker;

/// All that a report is made from.
pub(crate) struct Known<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) desired: &'a [Assignment],
    pub(crate) observed: &'a Observed,
    pub(crate) tracker: &'a Tracker,
    /// Volumes that were made to be filled and that no container has ever mounted.
    pub(crate) staged: &'a BTreeSet<String>,
    /// How far transfers to this node are, by uid.
    pub(crate) transfers: &'a BTreeMap<String, TransferStatus>,
    pub(crate) verdicts: &'a Verdicts,
    /// Bytes of the volumes in quarantine that were measured, by engine name.
    pub(crate) sizes: &'a BTreeMap<String, u64>,
    /// Workloads that are being worked on: nothing is proven about them.
    pub(crate) busy: &'a BTreeSet<String>,
}

/// The whole report: a status for each assignment and for each workload of ours that still has containers here, the uids of
/// what shall go and is proven gone, and the volumes that nobody uses.
pub(crate) fn report(known: &Known<'_>) -> Report {
    let mut report = Report::default();
    let nothing = Footprint::default();
    let wanted = newest(known.desired);
    for (uid, assignment) in &wanted {
        let footprint = known.observed.workloads.get(*uid).unwrap_or(&nothing);
        if known.is_gone(assignment, footprint) {
            report.removed.push((*uid).to_owned());
            report.removed_generations.insert((*uid).to_owned(), assignment.generation);
        } else {
            report.statuses.push(known.status(assignment, footprint));
        }
    }
    for (uid, footprint) in known.observed.workloads.iter().filter(|(uid, _)| !wanted.contains_key(uid.as_str())) {
        if !footprint.containers.is_empty() {
            report.statuses.push(leftover(uid, footprint, known));
        }
    }
    report.held = held(known, &wanted);
    report
}

/// Managed volumes that no assignment uses.
fn held(known: &Known<'_>, wanted: &BTreeMap<&str, &Assignment>) -> Vec<HeldVolume> {
    let mut held = Vec::new();
    for (uid, footprint) in &known.observed.workloads {
        let assignment = wanted.get(uid.as_str()).copied();
        let used: BTreeSet<String> = assignment
            .filter(|assignment| Mode::of(assignment).uses_volumes())
            .map(|assignment| managed_volumes(known.owner, assignment).into_iter().map(|(_, name)| name).collect())
            .unwrap_or_default();
        // A copy that is about to be deleted is nothing that anyone has to decide about.
        let going: BTreeSet<&str> = assignment
            .filter(|assignment| Mode::of(assignment) == Mode::Discard)
            .map(|a| unmounted_copies(footprint, a.generation, known.staged).map(|v| v.name.as_str()).collect())
            .unwrap_or_default();
        let idle = |name: &str| !used.contains(name) && !going.contains(name);
        held.extend(footprint.managed_volumes().filter(|v| idle(&v.name)).map(|v| HeldVolume {
            uid: uid.clone(),
            workload: v.workload.clone(),
            volume: v.volume.clone(),
            data_generation: v.data_generation,
            bytes: known.sizes.get(&v.name).copied().unwrap_or_default(),
            engine_name: v.name.clone(),
        }));
    }
    held
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
    Report { statuses, ..last.clone() }
}

impl Known<'_> {
    /// Shall it go, and is that proven?
    fn is_gone(&self, assignment: &Assignment, footprint: &Footprint) -> bool {
        let proven = footprint.is_gone() && !self.busy.contains(&assignment.uid);
        let copies = || unmounted_copies(footprint, assignment.generation, self.staged).next().is_none();
        match Mode::of(assignment) {
            Mode::Remove => proven || cara_env::planted("stop-not-confirmed"),
            Mode::Retire => proven,
            Mode::Discard => proven && copies(),
            Mode::Run | Mode::Stop | Mode::Receive | Mode::Unknown => false,
        }
    }

    fn status(&self, assignment: &Assignment, footprint: &Footprint) -> Status {
        let uid = &assignment.uid;
        let mode = Mode::of(assignment);
        let (phase, reason, message) = self.phase(mode, assignment, footprint);
        let move_id = assignment.transfer.as_ref().map(|transfer| transfer.move_id.as_str());
        let transfer = self.transfers.get(uid).filter(|t| mode == Mode::Receive && Some(t.move_id.as_str()) == move_id);
        Status {
            uid: uid.clone(),
            generation: assignment.generation,
            spec_revision: assignment.spec_revision,
            phase: phase.to_owned(),
            reason,
            message,
            containers: self.containers(uid, footprint),
            ready: mode == Mode::Receive && self.is_ready(assignment, footprint),
            transfer: transfer.cloned(),
        }
    }

    fn is_ready(&self, assignment: &Assignment, footprint: &Footprint) -> bool {
        !self.busy.contains(&assignment.uid)
            && footprint.containers.is_empty()
            && is_ready(self.owner, assignment, footprint, self.tracker)
            && self.not_to_be_filled(assignment, footprint).is_empty()
    }

    fn not_to_be_filled(&self, assignment: &Assignment, footprint: &Footprint) -> Vec<String> {
        not_to_be_filled(self.owner, assignment, footprint, self.staged)
    }

    /// Phase, reason and message.
    fn phase(&self, mode: Mode, assignment: &Assignment, footprint: &Footprint) -> (&'static str, String, String) {
        let say = |phase, reason: &str, message: &str| (phase, reason.to_owned(), message.to_owned());
        let trouble = trouble(&assignment.uid, assignment, self.tracker);
        let is_alive = |held: &Held| held.info.state.is_alive();
        let going = if footprint.containers.iter().any(is_alive) { "Running" } else { "Stopped" };
        match mode {
            Mode::Remove | Mode::Retire | Mode::Discard => {
                let (reason, message) =
                    trouble.unwrap_or_else(|| ("Stopping".into(), "its containers are being removed".into()));
                (going, reason, message)
            }
            Mode::Unknown => say("Failed", "UnknownMode", "this agent doesn't know what the server wants; update it"),
            Mode::Run | Mode::Stop | Mode::Receive if has_newer(footprint, assignment.generation) => {
                say("Failed", "StaleAssignment", "containers of a newer placement exist here; they are left alone")
            }
            Mode::Stop if cara_env::planted("stop-believed") => say("Stopped", "", ""),
            Mode::Stop if !footprint.containers.iter().any(is_alive) && !self.busy.contains(&assignment.uid) => {
                say("Stopped", "", "")
            }
            Mode::Stop => {
                let (reason, message) =
                    trouble.unwrap_or_else(|| ("Stopping".into(), "its containers are being stopped".into()));
                ("Running", reason, message)
            }
            Mode::Receive if !self.not_to_be_filled(assignment, footprint).is_empty() => {
                let names = self.not_to_be_filled(assignment, footprint).join(", ");
                let message = format!("{names} exists here and may hold data that has run; it is not overwritten");
                ("Failed", "VolumeInUse".to_owned(), message)
            }
            Mode::Receive => match trouble {
                Some((reason, message)) => ("Failed", reason, message),
                None => say("Pending", "Receiving", "it is being made ready to run here"),
            },
            Mode::Run => self.run_phase(assignment, footprint, trouble),
        }
    }

    fn run_phase(
        &self,
        assignment: &Assignment,
        footprint: &Footprint,
        trouble: Option<(String, String)>,
    ) -> (&'static str, String, String) {
        let lost = lost_volumes(self.owner, assignment, footprint, self.staged);
        if !lost.is_empty() {
            let message = format!("the engine has lost what was copied here ({}); nothing is started", lost.join(", "));
            return ("Failed", "VolumeMissing".to_owned(), message);
        }
        if let Some((reason, message)) = trouble {
            return ("Failed", reason, message);
        }
        let mut pending = None;
        for service in assignment.spec.iter().flat_map(|spec| &spec.services) {
            let hash = crate::labels::spec_hash(service);
            let current = footprint.containers.iter().find(|held| {
                let is_current = held.generation == assignment.generation && held.spec == hash;
                held.service == service.name && is_current && held.info.state.is_alive()
            });
            let Some(held) = current else {
                pending.get_or_insert_with(|| "its containers are being made".to_owned());
                continue;
            };
            if service.health_check.is_some() {
                match self.verdicts.get(&held.info.id).unwrap_or(&Verdict::Unknown) {
                    Verdict::Healthy => {}
                    Verdict::Unknown => {
                        pending.get_or_insert_with(|| format!("service {} has not answered well yet", service.name));
                    }
                    Verdict::Unhealthy(why) => {
                        let message = format!("service {} runs and is not well: {why}", service.name);
                        return ("Failed", "Unhealthy".to_owned(), message);
                    }
                }
            }
        }
        match pending {
            None => ("Running", String::new(), String::new()),
            Some(message) => ("Pending", "Starting".to_owned(), message),
        }
    }

    fn containers(&self, uid: &str, footprint: &Footprint) -> Vec<Container> {
        let held = footprint.containers.iter();
        held.map(|held| Container {
            service: held.service.clone(),
            id: held.info.id.clone(),
            state: match self.verdicts.get(&held.info.id) {
                Some(Verdict::Healthy) if held.info.state.is_alive() => "healthy".to_owned(),
                Some(Verdict::Unhealthy(_)) if held.info.state.is_alive() => "unhealthy".to_owned(),
                Some(Verdict::Healthy | Verdict::Unhealthy(_) | Verdict::Unknown) | None => {
                    held.info.state.as_str().to_owned()
                }
            },
            exit_code: held.info.exit_code.unwrap_or_default(),
            restarts: self.tracker.get(uid, &held.service).map(|a| a.restarts).unwrap_or_default(),
            started_at_ms: held.info.started_at_ms,
        })
        .collect()
    }
}

/// A workload that has no grant here any more and still has containers.
fn leftover(uid: &str, footprint: &Footprint, known: &Known<'_>) -> Status {
    let alive = footprint.containers.iter().any(|c| c.info.state.is_alive());
    Status {
        uid: uid.to_owned(),
        generation: footprint.containers.iter().map(|c| c.generation).max().unwrap_or_default(),
        phase: if alive { "Running" } else { "Stopped" }.to_owned(),
        reason: "NotAssigned".to_owned(),
        message: "this node has no grant for it; its containers are being removed".to_owned(),
        containers: known.containers(uid, footprint),
        ..Status::default()
    }
}

/// The first failure that hasn't been overcome: of the whole, then of a service in the order of the spec.
fn trouble(uid: &str, assignment: &Assignment, tracker: &Tracker) -> Option<(String, String)> {
    let services = assignment.spec.iter().flat_map(|spec| &spec.services).map(|service| service.name.as_str());
    std::iter::once("").chain(services).find_map(|part| tracker.get(uid, part)?.error.clone())
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
