//! `cara-chaos museum`: rebuilds with the planted bugs, and finds each one.

use std::path::PathBuf;
use std::process::ExitCode;

use comfy_table::{Table, presets};

use crate::child::Job;
use crate::museum::{self, Bug};
use crate::pool::Pool;

/// Which bugs, and how.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these bugs.
    #[arg(long)]
    only: Vec<String>,
    /// Processes at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// The first seed to try.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Say what is planted, and run nothing.
    #[arg(long)]
    list: bool,
    /// Use this binary instead of building one.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Finds every bug; exit code 1 while one isn't found.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut bugs = museum::bugs()?;
    if let Some(unknown) = args.only.iter().find(|name| bugs.iter().all(|bug| bug.name != **name)) {
        anyhow::bail!("no bug {unknown:?} is planted; `cara-chaos museum --list` names them");
    }
    bugs.retain(|bug| args.only.is_empty() || args.only.contains(&bug.name));
    if args.list {
        println!("{}", table(&bugs));
        println!("{} planted bugs", bugs.len());
        return Ok(ExitCode::SUCCESS);
    }
    let binary = args.binary.clone().map_or_else(museum::build, Ok)?;
    let width = bugs.iter().map(|bug| bug.name.len()).max().unwrap_or(0);
    let (mut found, mut seeds) = (0, 0);
    for bug in &bugs {
        let hunt = hunt(bug, &binary, args)?;
        seeds += hunt.seeds;
        match &hunt.found {
            Some((seed, rule)) => {
                found += 1;
                println!("{:<width$}  found by {rule} after {} seeds (seed {seed})", bug.name, hunt.seeds);
            }
            None => {
                println!("{:<width$}  NOT FOUND in {} seeds; {}", bug.name, hunt.seeds, hunt.instead());
                println!("    {}; expected: {}", bug.what, bug.rules.join(", "));
            }
        }
    }
    println!("museum: {found} of {} planted bugs found, {seeds} seeds", bugs.len());
    Ok(ExitCode::from(u8::from(found < bugs.len())))
}

#[derive(Default)]
struct Hunt {
    seeds: u64,
    found: Option<(u64, String)>,
    others: Vec<String>,
}

impl Hunt {
    fn instead(&self) -> String {
        if self.others.is_empty() {
            "every run passed".into()
        } else {
            format!("found {} instead", self.others.join(", "))
        }
    }
}

fn hunt(bug: &Bug, binary: &std::path::Path, args: &Args) -> anyhow::Result<Hunt> {
    let last = args.first_seed + bug.budget_seeds;
    let jobs = (args.first_seed..last).map(|seed| Job {
        seed,
        scenario: bug.scenario.clone(),
        planted: Some(bug.name.clone()),
        binary: Some(binary.to_owned()),
        ..Job::default()
    });
    let pool = Pool { jobs: usize::try_from(args.jobs)?, twice: false, budget: None, bar: true };
    let mut hunt = Hunt::default();
    pool.run(jobs, |done, _| {
        hunt.seeds += 1;
        let outcome = &done.outcome;
        if hunt.found.is_none() && bug.is_found_by(outcome) {
            let rule = outcome.findings.iter().map(|finding| &finding.rule).find(|rule| bug.rules.contains(rule));
            hunt.found = rule.map(|rule| (outcome.seed, rule.clone()));
        }
        for finding in &outcome.findings {
            if !hunt.others.contains(&finding.rule) {
                hunt.others.push(finding.rule.clone());
            }
        }
        Ok(hunt.found.is_none())
    })?;
    Ok(hunt)
}

fn table(bugs: &[Bug]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["BUG", "WHAT IS WRONG", "SEEN AT"]);
    for bug in bugs {
        table.add_row([&bug.name, &bug.what, &bug.source]);
    }
    table
}
