//! `cara-chaos shrink BUNDLE`: the few faults and operations that a failure needs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use cara_scenario::{Scenario, Shows, duration_text};
use indicatif::{ProgressBar, ProgressStyle};

use super::many::record;
use crate::bundle::{Bundle, Facts};
use crate::child::Job;

/// Which failure, and how hard to try.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The bundle's folder.
    bundle: PathBuf,
    /// Runs at most.
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// Where the small scenario and its bundle go; beside the bundle when not given.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Shrinks; exit code 0 when it could, 1 when the bundle does not fail any more.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let bundle = Bundle::at(&args.bundle);
    let facts = bundle.facts()?;
    let Some(rule) = facts.outcome.findings.first().map(|finding| finding.rule.clone()) else {
        println!("the bundle's run found nothing; there is nothing to shrink");
        return Ok(ExitCode::from(1));
    };
    let text = std::fs::read_to_string(bundle.scenario_file()).context("the bundle has no scenario")?;
    let scenario = Scenario::parse(&text)?;
    let folder = args.out.clone().unwrap_or_else(|| args.bundle.with_extension("shrunk"));
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let bar = ProgressBar::new(args.runs);
    bar.set_style(ProgressStyle::with_template("{bar:30} run {pos} of at most {len}  {msg}")?);
    let candidate = folder.join("candidate.toml");
    let shrunk = cara_scenario::shrink(&scenario, args.runs, |scenario| {
        bar.inc(1);
        let ops = scenario.workload.ops.as_ref().map_or(0, Vec::len);
        bar.set_message(format!("{} faults, {ops} operations", scenario.fault.len()));
        std::fs::write(&candidate, scenario.to_toml())?;
        shows(&facts, &candidate, &rule)
    })?;
    bar.finish_and_clear();
    // It is only in the way now; a leftover harms nobody.
    let _removed = std::fs::remove_file(&candidate);
    let Some(shrunk) = shrunk else {
        println!("the bundle's scenario does not break {rule} any more: the code has changed since it was made");
        return Ok(ExitCode::from(1));
    };
    let small = Bundle::at(&folder);
    std::fs::write(small.scenario_file(), shrunk.scenario.to_toml())?;
    let outcome = record(&small, facts.seed, &without_duration(&facts.args))?;
    println!("{outcome}");
    outcome.findings.iter().take(3).for_each(|finding| println!("  {finding}"));
    println!(
        "{rule}: {} of {} faults and {} of {} operations are needed, in {}; {} runs{}",
        shrunk.faults.1,
        shrunk.faults.0,
        shrunk.ops.1,
        shrunk.ops.0,
        duration_text(shrunk.scenario.run.duration.0),
        shrunk.runs,
        if shrunk.is_least { "; nothing more can be taken away" } else { "; --runs ended it, more may go" }
    );
    println!("  again: cara-chaos replay {0}    edit and run: {0}/scenario.toml", folder.display());
    Ok(ExitCode::SUCCESS)
}

fn shows(facts: &Facts, candidate: &std::path::Path, rule: &str) -> anyhow::Result<Shows> {
    let scenario = Some(candidate.display().to_string());
    let job = Job { seed: facts.seed, scenario, args: without_duration(&facts.args), ..Job::default() };
    let outcome = job.run()?;
    let found = outcome.findings.iter().find(|finding| finding.rule == rule);
    Ok(found.map_or(Shows::Else, |finding| Shows::Same(finding.at)))
}

/// The scenario's own size counts: it is what is being shrunk.
fn without_duration(args: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if ["--duration", "--agents", "--tick-ms"].contains(&arg.as_str()) {
            args.next();
        } else {
            kept.push(arg.clone());
        }
    }
    kept
}
