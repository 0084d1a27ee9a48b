//! One process with many agents: `cara-bench agents-worker`, started by the bench itself. It ends with its stdin, so that no
//! worker outlives the bench.

use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cara_agent::runtime::memory::MemoryRuntime;
use cara_env::{Env, Task};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::beats::{Beats, Tally};
use super::host;
use super::tick::{Order, Seat, Setup};
use crate::measure::process::raise_open_files;

/// Between two reports to the parent; a time that is read off them is right to this.
const TICK: Duration = Duration::from_millis(200);
/// How far these processes stand back behind the servers: a third of their share. With none a handshake would never end.
const NICE: i32 = 5;
/// The folder of each agent, in its own files in memory.
const FOLDER: &str = "/agent";
/// A restarted machine is away at least so long.
const AWAY: Duration = Duration::from_millis(200);
/// An agent that is asked to end does so within this.
const END_MAX: Duration = Duration::from_secs(5);

/// Runs the agents of the first line of stdin until stdin ends.
pub async fn work() -> anyhow::Result<()> {
    let env = Env::real();
    let (orders_in, mut orders) = mpsc::channel(64);
    let setup = cara_env::blocking(|| read_line::<Setup>(&mut std::io::stdin().lock()))
        .await?
        .context("the first line on stdin says which agents to run")?;
    // Agents are other machines: their half of ten thousand handshakes must not take the servers' processors away.
    let _ = rustix::process::nice(NICE); // Without it the figures are worse, not wrong.
    drop(raise_open_files(setup.agents.len() as u64)); // The parent has said it already.
    let reading = cara_env::blocking(move || read_orders(&orders_in));
    let tally = Tally::new(env.clock.clone());
    let gate = Arc::new(Semaphore::new(setup.at_once.max(1)));
    let agents = setup.agents.into_iter().enumerate().map(|(index, seat)| {
        let host = host::env(&env, setup.worker, index, &tally);
        Agent::start(Ground { seat, host, beats: Beats::new(&tally), tally: tally.clone(), gate: gate.clone() })
    });
    let agents: Vec<Agent> = agents.collect();
    let reporting = cara_env::spawn(report(env, tally));
    let obeying = async {
        while let Some(Order::Restart(index)) = orders.recv().await {
            if let Some(agent) = agents.get(index) {
                agent.restart.notify_one();
            }
        }
        std::future::pending::<()>().await
    };
    tokio::select! {
        biased;
        () = reading => {}
        () = obeying => {}
        _ = reporting => {} // Nobody reads any more.
    }
    Ok(())
}

/// What an agent needs, over all its lives.
struct Ground {
    seat: Seat,
    host: Env,
    beats: Arc<Beats>,
    tally: Arc<Tally>,
    gate: Arc<Semaphore>,
}

struct Agent {
    restart: Arc<Notify>,
    _life: Task<()>,
}

impl Agent {
    fn start(ground: Ground) -> Self {
        let restart = Arc::new(Notify::new());
        Self { restart: restart.clone(), _life: cara_env::spawn(lives(ground, restart)) }
    }
}

/// One life after the other.
async fn lives(ground: Ground, restart: Arc<Notify>) {
    let Ground { seat, host, beats, tally, gate } = ground;
    let Ok(token) = seat.token.parse::<cara_transport::JoinToken>() else {
        return tally.failed(format!("the token of {} can't be read", seat.name));
    };
    let mut config = cara_agent::Config::new(FOLDER, &seat.name, "127.0.0.1");
    config.token = Some(token);
    config.witness = Some(beats.clone());
    let mut permit = gate.acquire_owned().await.ok();
    loop {
        let (stop, stopped) = watch::channel(false);
        let runtime = Arc::new(MemoryRuntime::new(host.clock.clone()));
        let mut running = Box::pin(cara_agent::run(config.clone(), host.clone(), runtime, stopped));
        let ended = tokio::select! {
            biased;
            ended = &mut running => Some(ended),
            () = restart.notified() => None,
            never = let_next(&mut permit, &beats) => match never {},
        };
        match ended {
            Some(Ok(())) => return,
            Some(Err(error)) => return tally.failed(error.to_string()),
            None => {}
        }
        beats.restarts();
        stop.send_replace(true);
        drop(cara_env::timeout(&*host.clock, END_MAX, running).await);
        host.clock.sleep(AWAY).await;
    }
}

/// The next agent may enrol once this one is online.
async fn let_next(permit: &mut Option<OwnedSemaphorePermit>, beats: &Beats) -> Infallible {
    if permit.is_some() {
        beats.came_online().await;
        *permit = None;
    }
    std::future::pending().await
}

/// Writes ticks until nobody reads them.
async fn report(env: Env, tally: Arc<Tally>) {
    loop {
        env.clock.sleep(TICK).await;
        let Ok(mut line) = serde_json::to_vec(&tally.take()) else { return };
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn read_line<T: serde::de::DeserializeOwned>(input: &mut impl BufRead) -> anyhow::Result<Option<T>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// Until stdin ends, or says what can't be understood.
fn read_orders(orders: &mpsc::Sender<Order>) {
    while let Ok(Some(order)) = read_line::<Order>(&mut std::io::stdin().lock()) {
        if orders.blocking_send(order).is_err() {
            return;
        }
    }
}
