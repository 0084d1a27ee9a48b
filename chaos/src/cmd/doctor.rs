//! `cara-chaos doctor`: what this machine and this binary can do.

use std::process::{Command, ExitCode};

use crate::child::Job;

/// Nothing to choose.
#[derive(Debug, clap::Args)]
pub struct Args {}

struct Check {
    what: &'static str,
    is_good: bool,
    detail: String,
    /// Without it simulations can't be trusted; otherwise only a command is missing.
    is_vital: bool,
}

/// Looks at everything; exit code 3 when simulations can't be trusted here.
pub fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    let checks = [determinism()?, museum(), browser(), processors()];
    for check in &checks {
        let mark = match (check.is_good, check.is_vital) {
            (true, _) => "ok     ",
            (false, true) => "BROKEN ",
            (false, false) => "missing",
        };
        println!("{mark}  {:<28} {}", check.what, check.detail);
    }
    let broken = checks.iter().any(|check| check.is_vital && !check.is_good);
    println!("{}", if broken { "doctor: simulations can't be trusted here" } else { "doctor: ready" });
    Ok(ExitCode::from(if broken { 3 } else { 0 }))
}

/// The shortest honest proof: one small world in two processes.
fn determinism() -> anyhow::Result<Check> {
    let args = ["--duration", "2", "--agents", "2", "--tick-ms", "5"].map(str::to_owned).to_vec();
    let job = Job { seed: 1, args, ..Job::default() };
    let (first, second) = (job.run()?, job.run()?);
    let parts = first.parts_from(&second);
    let detail = match parts {
        None => format!("two processes, one history: hash {}", first.hash),
        Some(second) => format!("two runs of seed 1 part in simulated second {second}"),
    };
    Ok(Check { what: "one seed is one history", is_good: parts.is_none(), detail, is_vital: true })
}

fn museum() -> Check {
    let found = Command::new("cargo").arg("--version").output().is_ok_and(|output| output.status.success());
    let detail = if found { "cargo is there, `museum` can rebuild" } else { "no cargo: `museum` can't rebuild" };
    Check { what: "planted bugs", is_good: found, detail: detail.into(), is_vital: false }
}

fn browser() -> Check {
    let names = ["chromium", "chromium-browser", "google-chrome", "firefox"];
    let found = names.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    let detail = match found {
        Some(name) => format!("{name} shows reports"),
        None => "none found; reports open in any browser elsewhere".into(),
    };
    Check { what: "browser", is_good: found.is_some(), detail, is_vital: false }
}

fn processors() -> Check {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    Check { what: "processors", is_good: true, detail: format!("{count}; `--jobs {count}` uses all"), is_vital: false }
}
