//! Carries out a workload's actions in order, each with a deadline. Decides nothing: what fails is told to the tracker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use tokio::sync::watch;

use crate::plan::{Action, Step};
use crate::runtime::{ContainerRuntime, RuntimeError};
use crate::staged::Staged;

/// Creating, starting, removing, networks and volumes: a healthy engine needs a second; a busy disk gets a minute.
const STEP_DEADLINE: Duration = Duration::from_secs(60);
/// Pulling an image: a large one over a slow link.
const PULL_DEADLINE: Duration = Duration::from_secs(15 * 60);

/// One workload's actions, to be done in a task of their own.
pub(crate) struct Job {
    pub(crate) env: Env,
    pub(crate) runtime: Arc<dyn ContainerRuntime>,
    pub(crate) staged: Arc<Staged>,
    pub(crate) uid: String,
    /// The placement that it works for; 0 when the workload has none here any more.
    pub(crate) generation: u64,
    pub(crate) actions: Vec<Action>,
    pub(crate) stop_grace: Duration,
    /// Turns true when something else is wanted of the workload: a pull is given up, and nothing new is begun.
    pub(crate) cancel: watch::Receiver<bool>,
}

/// What came of a job.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) uid: String,
    /// Service (empty = the whole) and why it failed.
    pub(crate) failures: Vec<(String, RuntimeError)>,
    /// Services whose container was started, and whether it had run before.
    pub(crate) started: Vec<(String, bool)>,
    /// Images that are on this machine now.
    pub(crate) images: Vec<String>,
    /// False when it was given up in between.
    pub(crate) complete: bool,
}

impl Job {
    pub(crate) async fn run(mut self) -> Outcome {
        let mut outcome = Outcome {
            uid: self.uid.clone(),
            failures: Vec::new(),
            started: Vec::new(),
            images: Vec::new(),
            complete: true,
        };
        let mut failed: BTreeSet<String> = BTreeSet::new();
        cara_env::point("plan.begun", || format!("workload={} generation={}", self.uid, self.generation)).await;
        for action in std::mem::take(&mut self.actions) {
            if *self.cancel.borrow() {
                outcome.complete = false;
                break;
            }
            if failed.contains(&action.service) {
                continue;
            }
            match self.step(&action.step).await {
                Some(Ok(())) => {
                    self.point(&action.step).await;
                    tracing::debug!(uid = %self.uid, service = %action.service, step = ?action.step, "done");
                    match action.step {
                        Step::Start { again, .. } => outcome.started.push((action.service, again)),
                        Step::EnsureImage(image) => outcome.images.push(image),
                        _ => {}
                    }
                }
                Some(Err(error)) => {
                    tracing::warn!(uid = %self.uid, service = %action.service, "{error}");
                    let whole = action.service.is_empty();
                    failed.insert(action.service.clone());
                    outcome.failures.push((action.service, error));
                    if whole {
                        break;
                    }
                }
                None => {
                    outcome.complete = false;
                    break;
                }
            }
        }
        cara_env::point("plan.executed", || format!("workload={} complete={}", self.uid, outcome.complete)).await;
        outcome
    }

    /// Tells the simulator of the steps after which a crash is of interest.
    async fn point(&self, step: &Step) {
        let (name, container) = match step {
            Step::Create(container) => ("container.created", &container.name),
            Step::Start { container, .. } => ("container.started", container),
            Step::Stop(container) => ("container.stopped", container),
            Step::Remove(container) => ("container.removed", container),
            Step::Stage(volume) => return self.volume_point("volume.staged", &volume.name).await,
            Step::RemoveVolume(volume) => return self.volume_point("volume.discarded", volume).await,
            _ => return,
        };
        let detail = || format!("workload={} generation={} container={container}", self.uid, self.generation);
        cara_env::point(name, detail).await;
    }

    async fn volume_point(&self, name: &'static str, volume: &str) {
        let detail = || format!("workload={} generation={} volume={volume}", self.uid, self.generation);
        cara_env::point(name, detail).await;
    }

    /// One step; none when it was given up.
    async fn step(&mut self, step: &Step) -> Option<Result<(), RuntimeError>> {
        let runtime = self.runtime.clone();
        let limit = match step {
            Step::EnsureImage(_) => PULL_DEADLINE,
            Step::Stop(_) => STEP_DEADLINE + self.stop_grace,
            _ => STEP_DEADLINE,
        };
        let grace = self.stop_grace;
        let staged = self.staged.clone();
        let work = async {
            match step {
                Step::EnsureNetwork(network) => runtime.ensure_network(network).await,
                Step::EnsureVolume(volume) => runtime.ensure_volume(volume).await,
                Step::Stage(volume) => {
                    remember(&volume.name, staged.add(&volume.name))?;
                    runtime.ensure_volume(volume).await
                }
                Step::Mounting(volume) => remember(volume, staged.strike(volume)),
                Step::EnsureImage(image) => runtime.ensure_image(image).await,
                Step::Create(container) => runtime.create(container).await,
                Step::Start { container, .. } => runtime.start(container).await,
                Step::Stop(container) => runtime.stop(container, grace).await,
                Step::Remove(container) => runtime.remove(container).await,
                Step::RemoveNetwork(name) => runtime.remove_network(name).await,
                Step::RemoveVolume(name) => {
                    runtime.remove_volume(name).await?;
                    remember(name, staged.strike(name))
                }
            }
        };
        let work = cara_env::timeout(&*self.env.clock, limit, work);
        let done = if matches!(step, Step::EnsureImage(_)) {
            // Only a pull may be given up: any other call could still take effect after the next listing.
            tokio::select! {
                biased;
                done = work => done,
                _ = self.cancel.wait_for(|cancel| *cancel) => return None,
            }
        } else {
            work.await
        };
        Some(done.unwrap_or_else(|_| {
            Err(RuntimeError::Deadline { engine: "the engine".into(), operation: name(step).into(), limit })
        }))
    }
}

fn remember(volume: &str, saved: std::io::Result<()>) -> Result<(), RuntimeError> {
    let failed = |error: std::io::Error| RuntimeError::Failed {
        operation: "remember",
        subject: format!("what volume {volume} is for"),
        cause: error.to_string(),
    };
    saved.map_err(failed)
}

fn name(step: &Step) -> &'static str {
    match step {
        Step::EnsureNetwork(_) => "making a network",
        Step::EnsureVolume(_) | Step::Stage(_) => "making a volume",
        Step::Mounting(_) => "remembering what a volume is for",
        Step::EnsureImage(_) => "pulling an image",
        Step::Create(_) => "making a container",
        Step::Start { .. } => "starting a container",
        Step::Stop(_) => "stopping a container",
        Step::Remove(_) => "removing a container",
        Step::RemoveNetwork(_) => "removing a network",
        Step::RemoveVolume(_) => "removing a volume",
    }
}
