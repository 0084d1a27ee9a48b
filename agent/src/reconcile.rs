//! The loop that makes the node run what the ledger says: look, plan, carry out, report; again on every change, and at
//! least every [`Config::resync`].
//!
//! Workloads are worked on in tasks of their own, at most one at a time each, so that a long pull delays nobody else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use cara_proto::agent::{Desired, Report};
use cara_proto::workload::Assignment;
use tokio::sync::{mpsc, watch};

use crate::config::Config;
use crate::execute::{Job, Outcome};
use crate::labels::{Labels, Owner};
use crate::observed::Observed;
use crate::plan::{newest, plan};
use crate::runtime::{ContainerRuntime, Listing, RuntimeError};
use crate::status;
use crate::tracker::Tracker;

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
    report: watch::Sender<Option<Report>>,
    tracker: Tracker,
    /// What is wanted of each workload, as last seen: a change clears waits and gives up a pull.
    seen: BTreeMap<String, Assignment>,
    busy: BTreeMap<String, watch::Sender<bool>>,
    done: (mpsc::Sender<Outcome>, mpsc::Receiver<Outcome>),
    engine_away: bool,
}

impl Reconciler {
    pub(crate) fn new(
        env: Env,
        config: &Config,
        runtime: Arc<dyn ContainerRuntime>,
        owner: Owner,
        desired: watch::Receiver<Option<Arc<Desired>>>,
        report: watch::Sender<Option<Report>>,
    ) -> Self {
        Self {
            env,
            runtime,
            filter: owner.labels(),
            owner,
            resync: config.resync,
            stop_grace: config.stop_grace,
            desired,
            report,
            tracker: Tracker::default(),
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
        let plan = plan(&self.owner, assignments, &observed, &self.tracker, now);
        for (uid, actions) in plan.actions {
            if self.busy.len() < JOBS_MAX && !self.busy.contains_key(&uid) {
                self.begin(uid, actions);
            }
        }
        let report = status::report(assignments, &observed, &self.tracker, |uid| self.busy.contains_key(uid));
        self.publish(report);
        plan.wake_at
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
            if self.seen.get(*uid) != Some(*assignment) {
                self.tracker.changed(uid);
                self.cancel(uid);
            }
        }
        for uid in self.seen.keys().filter(|uid| !wanted.contains_key(uid.as_str())) {
            self.cancel(uid);
        }
        self.seen = wanted.into_iter().map(|(uid, assignment)| (uid.to_owned(), assignment.clone())).collect();
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
            outcome = self.done.1.recv() => outcome,
            () = self.runtime.changed() => None,
            () = self.env.clock.sleep(longest) => None,
        };
        if let Some(outcome) = outcome {
            self.take(outcome);
        }
    }
}
