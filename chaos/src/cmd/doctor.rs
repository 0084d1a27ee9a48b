//! `cara-chaos doctor`: what this machine and this binary can do, one line each, with the next step where something is
//! wrong.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use cara_env::{Clock, RealClock, RealRng, Rng};

use crate::child::Job;

/// More than twice what a world with a recording was seen to hold.
const WORLD_BYTES: u64 = 256 << 20;
/// A hundred failures: each leaves every event of its run as text, about ten MiB.
const DISK_BYTES_MIN: u64 = 1 << 30;
/// The same names, in the same order, as deploy/setup/chromium.sh.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Nothing to choose.
#[derive(Debug, clap::Args)]
pub struct Args {}

enum State {
    Ok,
    /// Only the command that needs it is missing; what to do.
    Absent(String),
    /// Simulations can't be trusted, or don't come to their end; what to do.
    Problem(String),
}

struct Check {
    what: &'static str,
    state: State,
    detail: String,
}

impl Check {
    fn new(what: &'static str, detail: impl Into<String>, state: State) -> Self {
        Self { what, state, detail: detail.into() }
    }

    fn tell(&self) {
        let (mark, next) = match &self.state {
            State::Ok => ("ok", None),
            State::Absent(next) => ("absent", Some(next)),
            State::Problem(next) => ("problem", Some(next)),
        };
        println!("{mark:<8} {:<26} {}", self.what, self.detail);
        if let Some(next) = next {
            println!("{:<8} {:<26} next: {next}", "", "");
        }
    }
}

/// Looks at everything; exit code 3 when something must be put right before simulations can be trusted here.
pub fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let quick = [overrides()?, processors(jobs), memory(jobs), disk(), browser(), museum()];
    quick.iter().for_each(Check::tell);
    let slow = worlds(jobs)?;
    slow.iter().for_each(Check::tell);
    let is_broken = quick.iter().chain(&slow).any(|check| matches!(check.state, State::Problem(_)));
    println!("doctor: {}", if is_broken { "simulations can't be trusted here yet" } else { "ready" });
    Ok(ExitCode::from(if is_broken { 3 } else { 0 }))
}

/// Asks for time and chance as libraries do, past all seams, twice with one seed.
fn overrides() -> anyhow::Result<Check> {
    let ask = || {
        let _active = cara_netsim::libc::activate(1);
        let mut bytes = [0; 16];
        RealRng.fill(&mut bytes);
        (bytes, RealClock::new().wall_ms(), cara_netsim::libc::calls())
    };
    // A thread of its own, as a world has: what it asks leaves nothing behind in this one.
    let thread = || std::thread::Builder::new().name("doctor".into()).spawn(ask);
    let asked = || thread()?.join().map_err(|_| std::io::Error::other("the thread panicked"));
    let (first, second) = (asked()?, asked()?);
    let what = "time and chance of libc";
    // The number of calls may differ: libraries ask once in a process what the kernel can do.
    let is_ours = first.0 == second.0 && [first.1, second.1] == [cara_netsim::EPOCH_MS; 2] && second.2 > 0;
    Ok(if is_ours {
        Check::new(what, format!("come from the seed: {} calls answered", second.2), State::Ok)
    } else {
        let next = "build this binary with `deploy/setup/cargo.sh build -p cara-chaos`, linked as usual: its own \
                    getrandom, syscall and clock_gettime must win over libc's";
        Check::new(what, "come from the kernel, so no seed repeats", State::Problem(next.into()))
    })
}

fn processors(jobs: usize) -> Check {
    Check::new("processors", format!("{jobs}; `--jobs {jobs}` uses all"), State::Ok)
}

fn memory(jobs: usize) -> Check {
    let what = "memory";
    let Some(free) = available_memory() else {
        return Check::new(what, "/proc/meminfo can't be read", State::Absent("look at it with `free -h`".into()));
    };
    let fits = free / WORLD_BYTES;
    let detail = format!("{} available, room for {fits} worlds at a time", gib(free));
    match fits {
        0 => Check::new(what, detail, State::Problem(format!("free {} first", gib(WORLD_BYTES)))),
        fits if fits < jobs as u64 => Check::new(what, detail, State::Absent(format!("run with --jobs {fits}"))),
        _ => Check::new(what, detail, State::Ok),
    }
}

fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Where failures leave their bundles.
fn disk() -> Check {
    let (what, here) = ("disk for bundles", PathBuf::from("."));
    let Ok(stat) = rustix::fs::statvfs(&here) else {
        let next = "run in a folder that this user can read and write";
        return Check::new(what, "the working folder can't be looked at", State::Problem(next.into()));
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let detail = format!("{} free in the working folder", gib(free));
    if free >= DISK_BYTES_MIN {
        return Check::new(what, detail, State::Ok);
    }
    let next = format!("free {}, or send bundles elsewhere with --out", gib(DISK_BYTES_MIN));
    Check::new(what, detail, State::Absent(next))
}

fn browser() -> Check {
    let (what, found) = ("browser for reports", BROWSERS.iter().find_map(|name| in_path(name)));
    match found {
        Some(path) => Check::new(what, path.display().to_string(), State::Ok),
        None => {
            let next = "deploy/setup/chromium.sh; a report also opens in any browser elsewhere";
            Check::new(what, format!("none of {} is in PATH", BROWSERS.join(", ")), State::Absent(next.into()))
        }
    }
}

fn museum() -> Check {
    let what = "museum of planted bugs";
    let beside = std::env::current_exe().map(|own| own.with_file_name("cara-museum")).ok();
    if let Some(binary) = beside.filter(|binary| binary.exists()) {
        return Check::new(what, binary.display().to_string(), State::Ok);
    }
    let can_build = in_path("cargo").is_some() && Path::new("chaos/museum/bugs.toml").exists();
    if can_build {
        let next = "`cara-chaos museum` builds it; that takes minutes the first time";
        return Check::new(what, "not built yet", State::Absent(next.into()));
    }
    let next = "install Rust, and run `cara-chaos museum` in a checkout's top folder: it is built from the sources";
    Check::new(what, "not built, and it can't be built here", State::Absent(next.into()))
}

/// The shortest honest proof, and what it costs: the world of one seed in two processes.
fn worlds(jobs: usize) -> anyhow::Result<[Check; 2]> {
    let clock = RealClock::new();
    let from = clock.monotonic();
    let job = Job { seed: 1, ..Job::default() };
    let first = job.run().context("can't run seed 1")?;
    let took = clock.monotonic() - from;
    let second = job.run().context("can't run seed 1 again")?;
    let what = "one seed is one history";
    let same = match first.parts_from(&second) {
        None => Check::new(what, format!("two processes, the same {} events: {}", first.events, first.hash), State::Ok),
        Some(second) => {
            let next = "cara-chaos sim --seed 1 --twice, then `diff` names the first event that differs";
            let detail = format!("two runs of seed 1 part in simulated second {second}");
            Check::new(what, detail, State::Problem(next.into()))
        }
    };
    Ok([same, Check::new("speed", speed(took, first.sim_seconds, jobs), State::Ok)])
}

fn speed(took: Duration, sim_seconds: f64, jobs: usize) -> String {
    let seconds = took.as_secs_f64().max(0.001);
    let per_hour = 3600.0 / seconds * jobs as f64;
    let hours = per_hour * sim_seconds / 3600.0;
    format!(
        "seed 1: {seconds:.1} s for {sim_seconds:.0} simulated s; with --jobs {jobs} about {per_hour:.0} seeds and \
         {hours:.0} simulated hours an hour"
    )
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_told_as_what_an_hour_gives() {
        let told = speed(Duration::from_secs(9), 45.0, 2);
        assert_eq!(
            told,
            "seed 1: 9.0 s for 45 simulated s; with --jobs 2 about 800 seeds and 10 simulated hours an hour"
        );
    }
}
