//! `cara-chaos sim`: seeds in the simulator, one process a seed.
//!
//! A process runs one seed, because libraries keep global state that a second run in the same process would inherit.
//! Several seeds, and `--twice`, run in children of this binary.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use cara_netsim::trace;
use clap::ValueEnum;

use crate::log;
use crate::outcome::Outcome;
use crate::run::{Canary, Plan, run as run_plan};
use crate::world::Size;

/// Of the simulation's thread, in bytes; as a main thread has.
const STACK: usize = 8 << 20;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The seed; one seed is one history.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Many seeds, for example 1..=20.
    #[arg(long, value_parser = parse_range, conflicts_with = "seed")]
    seeds: Option<Range>,
    /// Run each seed in two processes and compare them to the byte.
    #[arg(long)]
    twice: bool,
    /// Processes at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// Write every event to this file, log lines included. Five times slower.
    #[arg(long, conflicts_with_all = ["seeds", "twice"])]
    trace: Option<PathBuf>,
    /// Simulated seconds under faults.
    #[arg(long, default_value_t = 30)]
    duration: u64,
    /// Nodes.
    #[arg(long, default_value_t = 3)]
    agents: usize,
    /// Step of time in ms: 1 is exact, 5 is nearly twice as fast.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=20))]
    tick_ms: u64,
    /// Plant a fault that must make the run fail: proves that the checkers see.
    #[arg(long, value_enum)]
    canary: Option<Canary>,
    /// One JSON object per seed instead of a line for people.
    #[arg(long)]
    json: bool,
}

/// Seeds from..=to.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    from: u64,
    to: u64,
}

fn parse_range(text: &str) -> Result<Range, String> {
    let wrong = || format!("{text:?} is not a range of seeds; write for example 1..=20");
    let (from, to) = text.split_once("..=").ok_or_else(wrong)?;
    let range = Range { from: from.parse().map_err(|_| wrong())?, to: to.parse().map_err(|_| wrong())? };
    if range.from > range.to { Err(wrong()) } else { Ok(range) }
}

/// Runs what was asked for; exit code 1 when a seed fails or differs from itself.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let passed = if args.seeds.is_some() || args.twice { in_children(args)? } else { here(args)? };
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one seed, in a thread of its own: what libraries keep per thread (the keys of hash maps) then begins under the
/// override of libc, and nothing that happened before in this process can show in the run.
fn here(args: &Args) -> anyhow::Result<bool> {
    let size = Size { agents: args.agents, tick: Duration::from_millis(args.tick_ms), ..Size::default() };
    let plan = Plan { seed: args.seed, duration: Duration::from_secs(args.duration), size, canary: args.canary };
    let record = args.trace.clone();
    let run = move || {
        let _active = cara_netsim::libc::activate(plan.seed);
        if let Some(path) = record {
            let file = File::create(&path).with_context(|| format!("can't write the trace {}", path.display()))?;
            trace::record(Box::new(BufWriter::new(file)));
            log::into_the_trace();
        }
        let outcome = run_plan(&plan);
        trace::finish().context("can't finish the trace")?;
        anyhow::Ok(outcome)
    };
    let thread = std::thread::Builder::new().name("simulation".into()).stack_size(STACK).spawn(run)?;
    let outcome = thread.join().map_err(|_| anyhow::anyhow!("the simulation panicked"))??;
    report(args, &outcome)?;
    Ok(outcome.passed())
}

fn report(args: &Args, outcome: &Outcome) -> anyhow::Result<()> {
    if args.json {
        println!("{}", serde_json::to_string(outcome)?);
        return Ok(());
    }
    println!("{outcome}");
    for violation in &outcome.violations {
        println!("  {violation}");
    }
    if !outcome.passed() {
        println!("  again: {}", again(args, outcome.seed));
    }
    Ok(())
}

/// The command that repeats a seed with its trace.
fn again(args: &Args, seed: u64) -> String {
    let Args { duration, agents, tick_ms, .. } = args;
    let canary = args.canary.and_then(|canary| canary.to_possible_value());
    let canary = canary.map_or_else(String::new, |canary| format!(" --canary {}", canary.get_name()));
    format!(
        "cara-chaos sim --seed {seed} --duration {duration} --agents {agents} --tick-ms {tick_ms}{canary} --trace seed-{seed}.trace"
    )
}

fn in_children(args: &Args) -> anyhow::Result<bool> {
    let range = args.seeds.unwrap_or(Range { from: args.seed, to: args.seed });
    let times = if args.twice { 2 } else { 1 };
    let mut waiting: VecDeque<u64> =
        (range.from..=range.to).flat_map(|seed| std::iter::repeat_n(seed, times)).collect();
    let mut running: VecDeque<(u64, Child)> = VecDeque::new();
    let mut first: Option<Outcome> = None;
    let (mut passed, mut failed) = (0_u64, 0_u64);
    loop {
        while running.len() < usize::try_from(args.jobs)? && !waiting.is_empty() {
            let Some(seed) = waiting.pop_front() else { break };
            running.push_back((seed, start(args, seed)?));
        }
        let Some((seed, child)) = running.pop_front() else { break };
        let outcome = outcome_of(seed, child)?;
        if times == 2 && first.is_none() {
            first = Some(outcome);
            continue;
        }
        let is_same = first.take().is_none_or(|first| same(&first, &outcome));
        report(args, &outcome)?;
        if !is_same {
            println!("  again: {}", again(args, seed).replace("--trace", "--twice # --trace"));
        }
        if outcome.passed() && is_same {
            passed += 1;
        } else {
            failed += 1;
        }
    }
    if !args.json && range.from != range.to {
        println!("{passed} seeds passed, {failed} failed");
    }
    Ok(failed == 0)
}

fn same(first: &Outcome, second: &Outcome) -> bool {
    let Some(second_of_time) = first.parts_from(second) else { return true };
    println!(
        "seed {:<6} DIFFERS from itself in simulated second {second_of_time}: hash {} with {} events, then {} with {}",
        first.seed, first.hash, first.events, second.hash, second.events
    );
    false
}

fn start(args: &Args, seed: u64) -> anyhow::Result<Child> {
    let binary = std::env::current_exe().context("can't find this binary to run it again")?;
    let canary = args.canary.and_then(|canary| canary.to_possible_value());
    Command::new(binary)
        .args(["sim", "--json", "--seed", &seed.to_string()])
        .args(canary.iter().flat_map(|canary| ["--canary", canary.get_name()]))
        .args(["--duration", &args.duration.to_string()])
        .args(["--agents", &args.agents.to_string()])
        .args(["--tick-ms", &args.tick_ms.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("can't start a process for a seed")
}

/// A child that died without an outcome has panicked: that is a violation, with its last words.
fn outcome_of(seed: u64, child: Child) -> anyhow::Result<Outcome> {
    let output = child.wait_with_output().context("can't wait for a seed's process")?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if let Some(outcome) = stdout.lines().find_map(|line| serde_json::from_str(line).ok()) {
        return Ok(outcome);
    }
    if output.status.code() == Some(2) {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = words.lines().take(30).collect();
    Ok(Outcome {
        seed,
        violations: vec![format!("the run died: {}", words.join("\n    "))],
        sim_seconds: 0.0,
        events: 0,
        wire_bytes: 0,
        hash: "none".into(),
        seconds: Vec::new(),
        leader_changes: 0,
        acknowledged: 0,
        calls: 0,
        faults: Vec::new(),
    })
}
