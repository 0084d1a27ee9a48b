//! Asks running services how they are, each in a task of its own, and keeps the verdicts.
//!
//! What is asked goes through [`Probe`]: over the network to the container's address, or through the engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cara_env::{Env, Task};
use cara_proto::agent::Desired;
use cara_proto::workload::{Assignment, HealthCheck};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use crate::health::{Answers, Verdict, Verdicts, interval, timeout};
use crate::labels::spec_hash;
use crate::mode::Mode;
use crate::observed::Observed;
use crate::plan::newest;
use crate::runtime::{ContainerRuntime, Endpoint};

/// The first line of an answer is shorter, or it is no HTTP.
const STATUS_LINE_MAX: usize = 1024;
/// The least time between two questions: a check of 0.001 s must not keep the node busy.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// One question.
#[async_trait::async_trait]
pub(crate) trait Probe: Send + Sync + 'static {
    /// Asks the container; why it didn't answer well, for people. Has no deadline of its own.
    async fn ask(&self, container: &str, check: &HealthCheck) -> Result<(), String>;
}

/// Asks for real.
pub(crate) struct EngineProbe {
    pub(crate) env: Env,
    pub(crate) runtime: Arc<dyn ContainerRuntime>,
}

#[async_trait::async_trait]
impl Probe for EngineProbe {
    async fn ask(&self, container: &str, check: &HealthCheck) -> Result<(), String> {
        match check.probe.as_str() {
            "exec" => match self.runtime.exec(container, &check.command).await {
                Ok(0) => Ok(()),
                Ok(code) => Err(format!("the check's command ended with exit code {code}")),
                Err(error) => Err(error.to_string()),
            },
            "tcp" | "http" => match self.runtime.endpoint(container, check.port).await {
                Ok(Endpoint::Engine { listens: true }) => Ok(()),
                Ok(Endpoint::Engine { listens: false }) => Err(format!("nothing listens on port {}", check.port)),
                Ok(Endpoint::Address(address)) if check.probe == "tcp" => self.dial(&address).await.map(drop),
                Ok(Endpoint::Address(address)) => self.get(&address, &check.path).await,
                Err(error) => Err(error.to_string()),
            },
            other => Err(format!("this agent knows no probe of kind {other:?}; update it")),
        }
    }
}

impl EngineProbe {
    async fn dial(&self, address: &str) -> Result<cara_env::IoStream, String> {
        self.env.net.connect(address).await.map_err(|error| format!("can't connect to {address}: {error}"))
    }

    async fn get(&self, address: &str, path: &str) -> Result<(), String> {
        let path = if path.is_empty() { "/" } else { path };
        let mut stream = self.dial(address).await?;
        let broken = |error: std::io::Error| format!("GET {path} at {address} got no answer: {error}");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: cara-agent\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut answer = Vec::new();
        while !answer.contains(&b'\n') && answer.len() < STATUS_LINE_MAX {
            if stream.read_buf(&mut answer).await.map_err(broken)? == 0 {
                break;
            }
        }
        match status_code(&answer) {
            Some(100..400) => Ok(()),
            Some(code) => Err(format!("GET {path} at {address} was answered with status {code}")),
            None => Err(format!("what listens at {address} speaks no HTTP")),
        }
    }
}

fn status_code(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.trim().parse().ok()
}

/// What is asked: a run of a container, and how. Another one of these is another task.
#[derive(Debug, Clone, PartialEq)]
struct Subject {
    started_at_ms: u64,
    check: HealthCheck,
}

/// The tasks, by container id, and what they have found out.
pub(crate) struct Prober {
    env: Env,
    probe: Arc<dyn Probe>,
    tasks: BTreeMap<String, (Subject, Task<()>)>,
    verdicts: watch::Sender<Verdicts>,
}

impl Prober {
    pub(crate) fn new(env: Env, probe: Arc<dyn Probe>) -> Self {
        Self { env, probe, tasks: BTreeMap::new(), verdicts: watch::Sender::new(Verdicts::new()) }
    }

    /// Changes whenever a verdict does.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Verdicts> {
        self.verdicts.subscribe()
    }

    /// Begins to ask what runs and has a check, and ceases to ask all else.
    pub(crate) fn follow(&mut self, desired: &Desired, observed: &Observed) {
        let subjects = subjects(&desired.assignments, observed);
        let (verdicts, tasks) = (&self.verdicts, &mut self.tasks);
        tasks.retain(|container, (subject, task)| {
            let stays = subjects.get(container) == Some(subject);
            if !stays {
                task.abort();
                verdicts.send_if_modified(|verdicts| verdicts.remove(container).is_some());
            }
            stays
        });
        for (container, subject) in subjects {
            if !self.tasks.contains_key(&container) {
                let asking = Asking {
                    env: self.env.clone(),
                    probe: self.probe.clone(),
                    container: container.clone(),
                    check: subject.check.clone(),
                    verdicts: self.verdicts.clone(),
                };
                let task = cara_env::spawn(asking.run());
                self.tasks.insert(container, (subject, task));
            }
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.tasks.values().for_each(|(_, task)| task.abort());
    }
}

/// The current containers that run and whose service has a check.
fn subjects(desired: &[Assignment], observed: &Observed) -> BTreeMap<String, Subject> {
    let mut subjects = BTreeMap::new();
    for (uid, assignment) in newest(desired).into_iter().filter(|(_, a)| Mode::of(a) == Mode::Run) {
        let Some(footprint) = observed.workloads.get(uid) else { continue };
        for service in assignment.spec.iter().flat_map(|spec| &spec.services) {
            let Some(check) = &service.health_check else { continue };
            let hash = spec_hash(service);
            let current = footprint.containers.iter().filter(|held| {
                let is_current = held.generation == assignment.generation && held.spec == hash;
                held.service == service.name && is_current && held.info.state.is_alive()
            });
            for held in current {
                let subject = Subject { started_at_ms: held.info.started_at_ms, check: check.clone() };
                subjects.insert(held.info.id.clone(), subject);
            }
        }
    }
    subjects
}

/// One task.
struct Asking {
    env: Env,
    probe: Arc<dyn Probe>,
    container: String,
    check: HealthCheck,
    verdicts: watch::Sender<Verdicts>,
}

impl Asking {
    async fn run(self) {
        let mut answers = Answers::new(&self.check, self.env.clock.monotonic());
        loop {
            let limit = timeout(&self.check);
            let asking = self.probe.ask(&self.container, &self.check);
            let answer = cara_env::timeout(&*self.env.clock, limit, asking).await;
            let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {} ms", limit.as_millis())));
            self.tell(answers.take(answer, self.env.clock.monotonic()));
            self.env.clock.sleep(interval(&self.check).max(INTERVAL_MIN)).await;
        }
    }

    fn tell(&self, verdict: Verdict) {
        self.verdicts.send_if_modified(|verdicts| {
            let known = verdicts.get(&self.container).unwrap_or(&Verdict::Unknown);
            let changed = *known != verdict;
            verdicts.insert(self.container.clone(), verdict);
            changed
        });
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
