//! `cara-chaos diff A B`: the first event in which two runs part, with what went before.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::bundle::Bundle;

/// Lines shown before the first difference.
const BEFORE: usize = 12;
/// Lines of each side shown from the first difference on.
const AFTER: usize = 6;

/// Two runs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A bundle's folder, or a trace file.
    a: PathBuf,
    /// The other one.
    b: PathBuf,
}

/// Shows where they part; exit code 0 when they don't, 1 when they do.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (mut a, mut b) = (events(&args.a)?, events(&args.b)?);
    let mut before = std::collections::VecDeque::with_capacity(BEFORE);
    let mut number = 0_u64;
    loop {
        match (next(&mut a)?, next(&mut b)?) {
            (None, None) => {
                println!("the same: {number} events");
                return Ok(ExitCode::SUCCESS);
            }
            (one, other) if one == other => {
                number += 1;
                if before.len() == BEFORE {
                    before.pop_front();
                }
                before.extend(one);
            }
            (one, other) => {
                println!("they part at event {}; the {} before it:", number + 1, before.len());
                before.iter().for_each(|line| println!("    {line}"));
                side('-', &args.a, one, &mut a)?;
                side('+', &args.b, other, &mut b)?;
                return Ok(ExitCode::from(1));
            }
        }
    }
}

fn side(sign: char, path: &Path, first: Option<String>, rest: &mut Lines) -> anyhow::Result<()> {
    println!("  {}:", path.display());
    let Some(first) = first else {
        println!("  {sign} (ends here)");
        return Ok(());
    };
    println!("  {sign} {first}");
    for _ in 1..AFTER {
        let Some(line) = next(rest)? else { break };
        println!("  {sign} {line}");
    }
    Ok(())
}

type Lines = std::io::Lines<BufReader<File>>;

/// The next event. Log lines of the code under test are no events: they never decide anything.
fn next(lines: &mut Lines) -> anyhow::Result<Option<String>> {
    for line in lines {
        let line = line.context("the trace can't be read on")?;
        if line.split_whitespace().nth(1) != Some("log") && line.split_whitespace().nth(2) != Some("log") {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

fn events(path: &Path) -> anyhow::Result<Lines> {
    let file = if path.is_dir() { Bundle::at(path).trace_file() } else { path.to_owned() };
    let open = File::open(&file);
    let open = open.with_context(|| {
        format!("can't open the trace {}; `cara-chaos sim --seed N --trace FILE` writes one", file.display())
    })?;
    Ok(BufReader::new(open).lines())
}
