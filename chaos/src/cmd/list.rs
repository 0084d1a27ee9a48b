//! `cara-chaos list`: the scenarios that come with the binary.

use std::process::ExitCode;

use comfy_table::{ContentArrangement, Table, presets};

use crate::library;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only scenarios with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// Only names, for scripts.
    #[arg(long)]
    names: bool,
}

/// Shows them.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["SCENARIO", "ABOUT", "TAGS"]);
    let mut count = 0;
    for (name, _) in library::ALL {
        let scenario = library::read(name)?;
        if args.tag.as_ref().is_some_and(|tag| !scenario.tags.contains(tag)) {
            continue;
        }
        count += 1;
        if args.names {
            println!("{name}");
        }
        table.add_row([(*name).to_owned(), scenario.about.clone(), scenario.tags.join(" ")]);
    }
    if !args.names {
        println!("{table}");
        println!(
            "{count} scenarios; run one with `cara-chaos run NAME`, see its timeline with `cara-chaos explain NAME`"
        );
    }
    Ok(ExitCode::SUCCESS)
}
