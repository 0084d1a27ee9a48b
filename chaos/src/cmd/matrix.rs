//! `cara-chaos matrix`: visits every cell of step x fault x role, and shows what was visited.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use cara_checker::Verdict;
use comfy_table::{Table, presets};

use crate::child::Job;
use crate::matrix::{self, Cell, FAULTS, MOVE_ROLES, Part, ROLES, Row};
use crate::pool::Pool;

/// A step that chance leaves out with one seed comes with the next. One that three leave out needs another scenario.
const SEEDS_MAX: u64 = 3;

/// What to visit.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this part.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Only steps whose name contains this.
    #[arg(long)]
    step: Option<String>,
    /// Processes at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// The seed; where a step was not reached with it, the next ones are tried too.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What the runs so far have shown.
#[derive(Default)]
struct Visits {
    visited: BTreeSet<Cell>,
    failed: usize,
}

/// Runs all scenarios of the matrix; exit code 1 when a run failed or a required cell was not visited.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_meant = |cell: &Cell| args.step.as_ref().is_none_or(|step| cell.0.contains(step.as_str()));
    let mut rows = matrix::rows();
    rows.retain(|row| args.only.is_none_or(|part| part == row.part) && row.cells.iter().any(is_meant));
    let required: BTreeSet<Cell> = rows.iter().flat_map(|row| row.cells.iter().cloned()).collect();
    let folder = std::env::temp_dir().join(format!("cara-chaos-matrix-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let mut visits = Visits::default();
    let ran = (0..SEEDS_MAX).try_for_each(|more| {
        rows.retain(|row| !row.cells.is_subset(&visits.visited));
        let seed = args.seed + more;
        if more > 0 {
            rows.iter()
                .for_each(|row| println!("{}: a step was not reached, again with seed {seed}", row.scenario.name));
        }
        visit(&rows, seed, args, &folder, &mut visits)
    });
    // The scenarios are made anew each time.
    let _removed = std::fs::remove_dir_all(&folder);
    ran?;
    let Visits { visited, failed } = visits;
    println!("{}", table(&required, &visited));
    let missing: Vec<&Cell> = required.difference(&visited).collect();
    for (step, fault, role) in &missing {
        println!("not visited: {fault} of {role} at {step}");
    }
    let all = required.len();
    println!("matrix: {} of {all} cells visited, {failed} runs failed", all - missing.len());
    Ok(ExitCode::from(u8::from(failed > 0 || !missing.is_empty())))
}

/// Runs these rows with this seed.
fn visit(rows: &[Row], seed: u64, args: &Args, folder: &Path, visits: &mut Visits) -> anyhow::Result<()> {
    let mut jobs = Vec::new();
    for row in rows {
        let file = folder.join(format!("{}.toml", row.scenario.name));
        std::fs::write(&file, row.scenario.to_toml()).with_context(|| format!("can't write {}", file.display()))?;
        jobs.push(Job { seed, scenario: Some(file.display().to_string()), ..Job::default() });
    }
    let pool = Pool { jobs: usize::try_from(args.jobs)?, twice: false, budget: None, bar: true };
    pool.run(jobs.into_iter(), |done, bar| {
        visits.visited.extend(done.outcome.cells.iter().cloned());
        if done.outcome.verdict == Verdict::Fail {
            visits.failed += 1;
            bar.suspend(|| {
                println!("{} seed {} FAIL", done.outcome.scenario, done.outcome.seed);
                done.outcome.findings.iter().take(3).for_each(|finding| println!("  {finding}"));
            });
        }
        Ok(true)
    })?;
    Ok(())
}

/// A row for each step, a column for each fault: the roles that it hit there.
fn table(required: &BTreeSet<Cell>, visited: &BTreeSet<Cell>) -> Table {
    let mut table = Table::new();
    let header = std::iter::once("STEP".to_owned()).chain(FAULTS.iter().map(|fault| fault.name().to_uppercase()));
    table.load_style(presets::NOTHING).set_header(header);
    let steps: BTreeSet<&String> = required.iter().map(|(step, ..)| step).collect();
    for step in steps {
        let cells = FAULTS.iter().map(|fault| {
            let of = |role: &str| (step.clone(), fault.name().to_owned(), role.to_owned());
            let roles: BTreeSet<&str> = ROLES.into_iter().chain(MOVE_ROLES).collect();
            let wanted = roles.into_iter().filter(|role| required.contains(&of(role)));
            wanted.map(|role| if visited.contains(&of(role)) { &role[..1] } else { "-" }).collect::<String>()
        });
        table.add_row(std::iter::once(step.clone()).chain(cells));
    }
    table
}
