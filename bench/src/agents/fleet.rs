//! The bench's hold on its workers: starts them, hears what they count, ends them.

use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use cara_env::{Env, Task};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::tick::{Order, Seat, Setup, Tick};
use crate::measure::latency::Latency;

/// Between two looks at what the workers have said.
const LOOK: Duration = Duration::from_millis(50);

/// How many agents, and how they are spread.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub agents: usize,
    pub processes: usize,
    /// Agents of the whole fleet that enrol at a time.
    pub at_once: usize,
}

/// What all workers have counted since the last [`Fleet::begin_phase`].
#[derive(Clone, Default)]
pub struct Phase {
    pub sent: u64,
    pub acknowledged: u64,
    pub late: u64,
    pub missed: u64,
    pub round_trips: Latency,
    pub returns: Latency,
}

/// How the fleet stood at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// Of the environment's monotonic clock.
    pub at: Duration,
    pub online: u64,
    /// The longest round trip since the moment before.
    pub longest_ms: f64,
}

#[derive(Default)]
struct Heard {
    /// The last tick of each worker, without its counts.
    last: Vec<Tick>,
    phase: Phase,
    moments: Vec<Moment>,
    /// A worker has ended.
    gone: Option<usize>,
}

/// All workers. Dropping it ends them.
pub struct Fleet {
    env: Env,
    size: Size,
    workers: Vec<Worker>,
    heard: Arc<Mutex<Heard>>,
}

struct Worker {
    /// Killed when dropped.
    child: Child,
    stdin: ChildStdin,
    agents: usize,
    _reading: Task<()>,
}

impl Fleet {
    /// Starts the workers, which begin to enrol their agents at once.
    pub async fn start(env: &Env, size: Size, seats: Vec<Seat>) -> anyhow::Result<Self> {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let mut fleet = Self { env: env.clone(), size, workers: Vec::new(), heard };
        let processes = size.processes.clamp(1, seats.len().max(1));
        let share = seats.len().div_ceil(processes).max(1);
        let mut seats = seats.into_iter();
        for worker in 0..processes {
            let agents: Vec<Seat> = seats.by_ref().take(share).collect();
            let number = u8::try_from(worker).context("at most 250 processes")?;
            let setup = Setup { worker: number, at_once: size.at_once.div_ceil(processes), agents };
            fleet.add(worker, &setup).await?;
        }
        Ok(fleet)
    }

    async fn add(&mut self, index: usize, setup: &Setup) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("can't find out where this program is")?;
        let mut child = Command::new(program)
            .arg("agents-worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("can't start a worker")?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("a worker has no pipes");
        };
        self.heard().last.push(Tick::default());
        let (heard, env) = (self.heard.clone(), self.env.clone());
        let reading = cara_env::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(tick) = serde_json::from_str::<Tick>(&line) else { break };
                heard.lock().unwrap_or_else(PoisonError::into_inner).take(index, tick, env.clock.monotonic());
            }
            heard.lock().unwrap_or_else(PoisonError::into_inner).gone = Some(index);
        });
        let agents = setup.agents.len();
        write_line(&mut stdin, setup).await?;
        self.workers.push(Worker { child, stdin, agents, _reading: reading });
        Ok(())
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Agents in all.
    pub fn agents(&self) -> usize {
        self.size.agents
    }

    /// Enrolled, online, and sessions ever, of all workers.
    pub fn counts(&self) -> Tick {
        let heard = self.heard();
        heard.last.iter().fold(Tick::default(), |sum, one| Tick {
            enrolled: sum.enrolled + one.enrolled,
            online: sum.online + one.online,
            came_online: sum.came_online + one.came_online,
            failed: sum.failed + one.failed,
            failure: if one.failure.is_empty() { sum.failure } else { one.failure.clone() },
            ..Tick::default()
        })
    }

    /// What was counted since this was last called; counting begins anew.
    pub fn begin_phase(&self) -> Phase {
        std::mem::take(&mut self.heard().phase)
    }

    /// How it stood over time.
    pub fn moments(&self) -> Vec<Moment> {
        self.heard().moments.clone()
    }

    /// Waits until the counts are as wanted; `say` is told of them on the way.
    ///
    /// # Errors
    /// When that takes longer than `limit`, or agents or workers end by themselves.
    pub async fn until(
        &self,
        what: &str,
        limit: Duration,
        say: impl Fn(&Tick),
        wanted: impl Fn(&Tick) -> bool,
    ) -> anyhow::Result<Duration> {
        let began = self.env.clock.monotonic();
        loop {
            let counts = self.counts();
            say(&counts);
            let waited = self.env.clock.monotonic().saturating_sub(began);
            if wanted(&counts) {
                return Ok(waited);
            }
            if let Some(worker) = self.heard().gone {
                bail!("worker {worker} has ended while waiting for {what}");
            }
            if counts.failed > 0 {
                bail!("{} agents have ended by themselves while waiting for {what}: {}", counts.failed, counts.failure);
            }
            if waited > limit {
                bail!("{what} took longer than {limit:?}: {} of {} online", counts.online, self.size.agents);
            }
            self.env.clock.sleep(LOOK).await;
        }
    }

    /// Kills all workers and returns once they are gone.
    pub async fn end(mut self) {
        for worker in &mut self.workers {
            drop(worker.child.kill().await); // It is gone already.
        }
    }

    /// Restarts the agent of this number.
    pub async fn restart(&mut self, agent: usize) -> anyhow::Result<()> {
        let mut index = agent;
        for worker in &mut self.workers {
            if index < worker.agents {
                return write_line(&mut worker.stdin, &Order::Restart(index)).await;
            }
            index -= worker.agents;
        }
        bail!("there is no agent {agent}")
    }
}

impl Heard {
    fn take(&mut self, worker: usize, tick: Tick, at: Duration) {
        let phase = &mut self.phase;
        phase.sent += tick.sent;
        phase.acknowledged += tick.acknowledged;
        phase.late += tick.late;
        phase.missed += tick.missed;
        let trips = Latency::of_pairs(&tick.round_trips);
        phase.round_trips.merge(&trips);
        phase.returns.merge(&Latency::of_pairs(&tick.returns));
        self.last[worker] = tick;
        let online = self.last.iter().map(|last| last.online).sum();
        self.moments.push(Moment { at, online, longest_ms: trips.longest_ms().unwrap_or_default() });
    }
}

async fn write_line(stdin: &mut ChildStdin, value: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stdin.write_all(&line).await.context("a worker has ended")?;
    stdin.flush().await.context("a worker has ended")
}
