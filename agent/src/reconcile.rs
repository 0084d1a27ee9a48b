//! The loop that makes the node run what the ledger says: look, plan, carry out, report; again on every change, and at
//! least every [`Config::resync`].
//!
//! Workloads are worked on in tasks of their own, at most one at a time each, so that a long pull delays nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use cara_proto::agent::{Desired, HeldVolume, Report};
use cara_proto::workload::Assignment;
use tokio::sync::{mpsc, watch};

use crate::config::Config;
use crate::execute::{Job, Outcome};
use crate::health::Verdicts;
use crate::labels::{Labels, Owner};
use crate::mode::Mode;
use crate::observed::Observed;
use crate::permit::Permit;
use crate::plan::{has_left_over, newest, plan};
use crate::probe::{EngineProbe, Prober};
use crate::runtime::{ContainerRuntime, Listing, RuntimeError};
use crate::sizes::Sizes;
use crate::staged::Staged;
use crate::status::{self, Known};
use crate::tracker::Tracker;
use crate::transfer;
use crate::transfer::desk::{Desk, Statuses};

/// A listing that takes longer means that the engine is away.
const LIST_DEADLINE: Duration = Duration::from_secs(10);
/// Workloads worked on at the same time: an engine does little more in parallel, and pulls share one link.
const JOBS_MAX: usize = 8;
/// The engine's events come in bursts; looks are at least this far apart.
const SETTLE: Duration = Duration::from_millis(50);

/// The loop and what it remembers.
pub(crate) struct Reconciler {
    env: Env,
    runtime: Arc<dyn ContainerRuntime>,
    owner: Owner,
    filter: Labels,
    resync: Duration,
    stop_grace: Duration,
    desired: watch::Receiver<Option<Arc<Desired>>>,
    permit: watch::Receiver<Permit>,
    report: watch::Sender<Option<Report>>,
    tracker: Tracker,
    staged: Arc<Staged>,
    prober: Prober,
    verdicts: watch::Receiver<Verdicts>,
    desk: Desk,
    transfers: watch::Receiver<Statuses>,
    sizes: Sizes,
    /// Stops that were confirmed by a listing: uid and generation.
    stopped: BTreeSet<(String, u64)>,
    /// What is wanted of each workload, as last seen: a change clears waits and gives up a pull.
    seen: BTreeMap<String, Assignment>,
    busy: BTreeMap<String, watch::Sender<bool>>,
    done: (mpsc::Sender<Outcome>, mpsc::Receiver<Outcome>),
    engine_away: bool,
}

impl Reconciler {
    /// `ground` is what transfers need; the loop works on the same engine for the same owner.
    pub(crate) fn new(
        config: &Config,
        ground: transfer::Ground,
        staged: Arc<Staged>,
        report: watch::Sender<Option<Report>>,
        permit: watch::Receiver<Permit>,
    ) -> Self {
        let (env, runtime, owner) = (ground.env.clone(), ground.runtime.clone(), ground.owner.clone());
        let probe = EngineProbe { env: env.clone(), runtime: runtime.clone() };
        let prober = Prober::new(env.clone(), Arc::new(probe));
        let desired = ground.desired.clone();
        let sizes = Sizes::new(env.clone(), runtime.clone());
        let desk = Desk::new(ground);
        Self {
            env,
            runtime,
            filter: owner.labels(),
            owner,
            resync: config.resync,
            stop_grace: config.stop_grace,
            desired,
            permit,
            report,
            tracker: Tracker::default(),
            staged,
            verdicts: prober.subscribe(),
            prober,
            transfers: desk.subscribe(),
            desk,
            sizes,
            stopped: BTreeSet::new(),
            seen: BTreeMap::new(),
            busy: BTreeMap::new(),
            done: mpsc::channel(JOBS_MAX),
            engine_away: false,
        }
    }

    /// Runs until its task is dropped. Containers stay as they are.
    pub(crate) async fn run(mut self) {
        loop {
            let wake_at = self.pass().await;
            self.wait(wake_at).await;
            self.env.clock.sleep(SETTLE).await;
        }
    }

    /// Looks, plans, begins what is to be done, reports. Returns when to look again at the latest.
    async fn pass(&mut self) -> Option<Duration> {
        self.take_outcomes();
        let desired = self.desired.borrow_and_update().clone()?; // Nothing was ever wanted: nothing is touched.
        let assignments = &desired.assignments;
        self.notice_changes(assignments);
        let listing = match self.list().await {
            Ok(listing) => listing,
            Err(_) if cara_env::planted("unknown-listing-taken-as-empty") => Listing::default(),
            Err(error) => {
                if !self.engine_away {
                    tracing::error!("{error}; containers are left as they are, heartbeats go on");
                }
                self.engine_away = true;
                let last = self.report.borrow().clone().unwrap_or_default();
                let report = status::engine_away(&last, assignments, &error.to_string());
                self.publish(report);
                return None;
            }
        };
        if self.engine_away {
            tracing::info!("the container engine answers again");
            self.engine_away = false;
        }
        let observed = Observed::of(&self.owner, &listing);
        let now = self.env.clock.monotonic();
        self.tracker.look(assignments, &observed, now);
        let staged = self.staged.names();
        let plan = plan(&self.owner, assignments, &desired.removals, &observed, &self.tracker, &staged, now);
        let may_start = *self.permit.borrow_and_update() == Permit::Open;
        for (uid, actions) in plan.actions {
            if !may_start && actions.iter().any(|action| action.step.starts_something()) {
                continue;
            }
            if self.busy.len() < JOBS_MAX && !self.busy.contains_key(&uid) {
                self.begin(uid, actions);
            }
        }
        self.prober.follow(&desired, &observed);
        self.desk.follow(assignments, &observed, &staged);
        let report = self.tell(assignments, &observed);
        self.measure(assignments, &observed, &report);
        self.confirm_stops(assignments, &report).await;
        self.publish(report);
        plan.wake_at
    }

    fn tell(&mut self, assignments: &[Assignment], observed: &Observed) -> Report {
        let transfers = self.transfers.borrow_and_update();
        let verdicts = self.verdicts.borrow_and_update();
        let sizes = self.sizes.known();
        status::report(&Known {
            owner: &self.owner,
            desired: assignments,
            observed,
            tracker: &self.tracker,
            // Read again: what a job has done in the meantime is in the book and not in the listing, never the other way.
            staged: &self.staged.names(),
            transfers: &transfers,
            verdicts: &verdicts,
            sizes: &sizes,
            busy: &self.busy.keys().cloned().collect(),
        })
    }

    /// Has the volumes in quarantine measured that nothing writes into any more.
    fn measure(&self, assignments: &[Assignment], observed: &Observed, report: &Report) {
        let wanted = newest(assignments);
        let at_rest = |held: &&HeldVolume| {
            let footprint = observed.workloads.get(&held.uid);
            !footprint.is_some_and(|footprint| has_left_over(wanted.get(held.uid.as_str()).copied(), footprint))
        };
        self.sizes.follow(report.held.iter().filter(at_rest).map(|held| held.engine_name.clone()).collect());
    }

    /// Tells the simulator of each stop that a listing has just proven, before anyone else hears of it.
    async fn confirm_stops(&mut self, assignments: &[Assignment], report: &Report) {
        let wanted = newest(assignments);
        let is_stop = |uid: &str| wanted.get(uid).is_some_and(|assignment| Mode::of(assignment) == Mode::Stop);
        let proven = report.statuses.iter().filter(|status| status.phase == "Stopped" && is_stop(&status.uid));
        let proven: BTreeSet<(String, u64)> = proven.map(|status| (status.uid.clone(), status.generation)).collect();
        for (uid, generation) in proven.difference(&self.stopped) {
            let detail = || format!("workload={uid} generation={generation}");
            cara_env::point("container.stop_confirmed", detail).await;
        }
        self.stopped = proven;
    }

    async fn list(&self) -> Result<Listing, RuntimeError> {
        let listing = cara_env::timeout(&*self.env.clock, LIST_DEADLINE, self.runtime.list(&self.filter)).await;
        listing.unwrap_or_else(|_| {
            let (engine, operation) = ("the container engine".to_owned(), "listing containers".to_owned());
            Err(RuntimeError::Deadline { engine, operation, limit: LIST_DEADLINE })
        })
    }

    fn notice_changes(&mut self, assignments: &[Assignment]) {
        let wanted = newest(assignments);
        for (uid, assignment) in &wanted {
            if self.seen.get(*uid) != Some(&without_transfer(assignment)) {
                self.tracker.changed(uid);
                self.cancel(uid);
            }
        }
        for uid in self.seen.keys().filter(|uid| !wanted.contains_key(uid.as_str())) {
            self.cancel(uid);
        }
        self.seen =
            wanted.into_iter().map(|(uid, assignment)| (uid.to_owned(), without_transfer(assignment))).collect();
    }

    fn cancel(&self, uid: &str) {
        if let Some(cancel) = self.busy.get(uid) {
            cancel.send_replace(true);
        }
    }

    fn begin(&mut self, uid: String, actions: Vec<crate::plan::Action>) {
        let (cancel, cancelled) = watch::channel(false);
        let job = Job {
            env: self.env.clone(),
            runtime: self.runtime.clone(),
            staged: self.staged.clone(),
            generation: self.seen.get(&uid).map(|wanted| wanted.generation).unwrap_or_default(),
            uid: uid.clone(),
            actions,
            stop_grace: self.stop_grace,
            cancel: cancelled,
        };
        self.busy.insert(uid, cancel);
        let done = self.done.0.clone();
        drop(cara_env::spawn(async move {
            // The receiver is gone only when the agent ends.
            let _ = done.send(job.run().await).await;
        }));
    }

    fn take_outcomes(&mut self) {
        while let Ok(outcome) = self.done.1.try_recv() {
            self.take(outcome);
        }
    }

    fn take(&mut self, outcome: Outcome) {
        let uid = &outcome.uid;
        let now = self.env.clock.monotonic();
        self.busy.remove(uid);
        for (service, again) in &outcome.started {
            if *again {
                self.tracker.restarted(uid, service, now);
            } else {
                self.tracker.started(uid, service, now);
            }
        }
        for image in &outcome.images {
            self.tracker.image_fetched(uid, image);
        }
        for (service, error) in &outcome.failures {
            self.tracker.failed(uid, service, error, now);
        }
        if outcome.complete && !outcome.failures.iter().any(|(service, _)| service.is_empty()) {
            self.tracker.recovered(uid);
        }
    }

    fn publish(&self, report: Report) {
        self.report.send_if_modified(|last| {
            let changed = last.as_ref() != Some(&report);
            *last = Some(report);
            changed
        });
    }

    async fn wait(&mut self, wake_at: Option<Duration>) {
        let now = self.env.clock.monotonic();
        let longest = wake_at.map_or(self.resync, |at| at.saturating_sub(now).min(self.resync));
        let outcome = tokio::select! {
            biased;
            changed = self.desired.changed() => {
                if changed.is_err() {
                    // The agent is ending; its task is about to be dropped.
                    std::future::pending::<()>().await;
                }
                None
            }
            _ = self.permit.changed() => None,
            outcome = self.done.1.recv() => outcome,
            () = self.runtime.changed() => None,
            // The senders live as long as this loop.
            _ = self.transfers.changed() => None,
            _ = self.verdicts.changed() => None,
            () = self.sizes.changed() => None,
            () = self.env.clock.sleep(longest) => None,
        };
        if let Some(outcome) = outcome {
            self.take(outcome);
        }
    }
}

/// What a workload's containers and waits depend on. The rounds of a transfer are none of that.
fn without_transfer(assignment: &Assignment) -> Assignment {
    Assignment { transfer: None, ..assignment.clone() }
}
