//! `dev`: starts a cluster on this machine, and shows what happens when its leader is killed.

mod keys;
mod show;

use cara_env::Env;

use super::Context;
use crate::cli::Dev;
use crate::dev::cluster::{Cluster, Plan};
use crate::dev::{Binaries, DevError};
use crate::failure::{Failure, Outcome, exit};

use keys::{Key, Keys};

/// How often the processes are looked at while nobody presses a key.
const TICK: std::time::Duration = std::time::Duration::from_millis(500);

pub(super) async fn run(cx: &Context, args: &Dev) -> Outcome {
    let binaries = Binaries::beside_this_program()
        .map_err(|why| Failure::new(exit::OTHER, "dev", "the cluster's programs are missing").why(why))?;
    let plan = Plan {
        binaries,
        servers: args.servers,
        agents: args.agents,
        runtime: args.runtime.clone(),
        folder: args.dir.clone(),
    };
    let mut cluster = Cluster::new(&cx.env, plan).map_err(failure)?;
    let mut signals = Signals::new()?;
    let started = cx.env.clock.monotonic();
    let (ui, env) = (cx.ui.clone(), cx.env.clone());
    let say = move |text: &str| ui.note(&format!("{:>6.1} s  {text}", (env.clock.monotonic() - started).as_secs_f64()));
    let booted = tokio::select! {
        biased;
        () = signals.any() => None,
        result = cluster.boot(&say) => Some(result),
    };
    let result = match booted {
        None => Err(Failure::new(exit::DETACHED, "interrupted", "ended before the cluster was ready")),
        Some(Err(error)) => Err(failure(error)),
        Some(Ok(())) => {
            let seconds = (cx.env.clock.monotonic() - started).as_secs_f64();
            match show::ready(cx, &cluster, seconds) {
                Ok(()) if args.exit_after_ready => Ok(()),
                Ok(()) => attend(&cx.env, &mut cluster, &mut signals).await,
                Err(failure) => Err(failure),
            }
        }
    };
    cluster.stop().await;
    if result.is_ok() {
        cx.ui.note(&match &args.dir {
            Some(folder) => format!("ended; data and logs stay in {}", folder.display()),
            None => "ended; nothing is left behind".to_owned(),
        });
    }
    result
}

/// Until `q`, Ctrl-C, a signal, or the death of a process.
async fn attend(env: &Env, cluster: &mut Cluster, signals: &mut Signals) -> Outcome {
    let mut keys = Keys::listen(env);
    let out = keys.printer();
    loop {
        let key = tokio::select! {
            biased;
            () = signals.any() => return Ok(()),
            key = keys.next() => key,
            () = env.clock.sleep(TICK) => {
                cluster.check().map_err(failure)?;
                continue;
            }
        };
        let work = async {
            match key {
                Key::KillLeader => show::kill_leader(env, cluster, &out).await,
                Key::Status => show::status(env, cluster, &out).await,
                Key::Help | Key::Quit => {
                    out.line(show::KEYS);
                    Ok(())
                }
            }
        };
        if key == Key::Quit {
            return Ok(());
        }
        let done = tokio::select! {
            biased;
            () = signals.any() => return Ok(()),
            () = keys.quit() => return Ok(()),
            done = work => done,
        };
        match done {
            Err(error @ DevError::Died { .. }) => return Err(failure(error)),
            Err(error) => out.line(&failure(error).to_string()),
            Ok(()) => {}
        }
    }
}

fn failure(error: DevError) -> Failure {
    let said = error.said().to_owned();
    match error {
        DevError::Client(error) => Failure::from(error),
        other => Failure::new(exit::FAILED, "dev", other.to_string()).why(said),
    }
}

/// The signals that end the program.
struct Signals {
    all: [tokio::signal::unix::Signal; 3],
}

impl Signals {
    fn new() -> Outcome<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let one = |kind: SignalKind| {
            signal(kind).map_err(|e| Failure::new(exit::OTHER, "dev", "can't listen to signals").why(e.to_string()))
        };
        Ok(Self { all: [one(SignalKind::interrupt())?, one(SignalKind::terminate())?, one(SignalKind::hangup())?] })
    }

    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.all;
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
