//! `cara-chaos one`: one world in this process. The other commands start it; people rarely do.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use cara_netsim::trace;
use cara_scenario::Plan;

use super::shape::Shape;
use crate::bundle::{self, Bundle, Facts};
use crate::run::{self, Ran};
use crate::{library, log};

/// Of the simulation's thread, in bytes; as a main thread has.
const STACK: usize = 8 << 20;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The seed; one seed is one history.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A file, or a name from `cara-chaos list`; without it the seed makes its own.
    #[arg(long)]
    scenario: Option<String>,
    #[command(flatten)]
    shape: Shape,
    /// Write every event to this file, log lines included. Several times slower.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Write a whole bundle into this folder.
    #[arg(long, conflicts_with = "trace")]
    bundle: Option<PathBuf>,
}

/// What a seed makes of a scenario, or of nothing, with the changes that the command line asks for.
pub fn plan(scenario: Option<&str>, seed: u64, shape: &Shape) -> anyhow::Result<Plan> {
    let mut scenario = match scenario {
        Some(name_or_file) => library::read(name_or_file)?,
        None => cara_scenario::swarm(seed),
    };
    scenario.resize(
        shape.duration.map(std::time::Duration::from_secs),
        shape.agents.and_then(|agents| usize::try_from(agents).ok()),
        shape.tick_ms.map(std::time::Duration::from_millis),
    );
    Ok(cara_scenario::plan(&scenario, seed))
}

/// Runs it in a thread of its own: what libraries keep per thread (the keys of hash maps) then begins under the
/// override of libc, and nothing that happened before in this process can show in the run.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = plan(args.scenario.as_deref(), args.seed, &args.shape)?;
    let bundle = args.bundle.as_ref().map(Bundle::at);
    if let Some(bundle) = &bundle {
        bundle.create()?;
    }
    let record = bundle.as_ref().map(Bundle::trace_file).or_else(|| args.trace.clone());
    let shape = args.shape.clone();
    let with_recording = bundle.is_some();
    let work = move || {
        let _active = cara_netsim::libc::activate(plan.seed);
        if let Some(path) = record {
            let file = File::create(&path).with_context(|| format!("can't write the trace {}", path.display()))?;
            trace::record(Box::new(BufWriter::new(file)));
            log::into_the_trace();
        }
        let ran = run::run(&plan, shape.engine, shape.canary, with_recording);
        trace::finish().context("can't finish the trace")?;
        anyhow::Ok((plan, ran))
    };
    let thread = std::thread::Builder::new().name("simulation".into()).stack_size(STACK).spawn(work)?;
    let (plan, ran) = thread.join().map_err(|_| anyhow::anyhow!("the simulation panicked"))??;
    if let Some(bundle) = &bundle {
        write(bundle, &plan, &ran, &args.shape)?;
    }
    println!("{}", serde_json::to_string(&ran.outcome)?);
    Ok(ExitCode::from(ran.outcome.verdict.exit_code()))
}

fn write(bundle: &Bundle, plan: &Plan, ran: &Ran, shape: &Shape) -> anyhow::Result<()> {
    let facts = Facts {
        seed: plan.seed,
        revision: bundle::revision(),
        lock: bundle::lock(),
        args: shape.to_args(),
        outcome: ran.outcome.clone(),
    };
    let mut recording = ran.recording.clone();
    recording.revision.clone_from(&facts.revision);
    recording.again = format!("cara-chaos replay {}", bundle.folder().display());
    bundle.write(&plan.to_scenario().to_toml(), &facts, &ran.decisions, &recording)
}
